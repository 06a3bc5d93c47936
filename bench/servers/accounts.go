package servers

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"strings"
)

// scramIterations is the least that RFC 5802 and 7677 allow: the devices of a
// benchmark pay for it on the same machine.
const scramIterations = 4096

// writeProsodyAccounts writes account files of Prosody's internal storage for
// SCRAM-SHA-256. Users of the same password share a salt, which makes
// thousands of test accounts quick.
func writeProsodyAccounts(data, domain string, users []User) error {
	dir := filepath.Join(data, prosodyName(domain), "accounts")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	accounts := make(map[string][]byte) // by password
	for _, u := range users {
		text, found := accounts[u.Password]
		if !found {
			var err error
			if text, err = prosodyAccount(u.Password); err != nil {
				return err
			}
			accounts[u.Password] = text
		}
		if err := os.WriteFile(filepath.Join(dir, prosodyName(u.Name)+".dat"), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func prosodyAccount(password string) ([]byte, error) {
	k, err := scram(sha256.New, password)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "return {\n\t[\"iteration_count\"] = %d;\n\t[\"salt\"] = %q;\n"+
		"\t[\"stored_key\"] = %q;\n\t[\"server_key\"] = %q;\n};\n",
		scramIterations, k.salt, hex.EncodeToString(k.stored), hex.EncodeToString(k.server)), nil
}

// ejabberdAccounts returns Erlang terms that are rows of ejabberd's password
// table, for SCRAM-SHA-1.
func ejabberdAccounts(domain string, users []User) ([]byte, error) {
	var text []byte
	keys := make(map[string]scramKeys) // by password
	for _, u := range users {
		k, found := keys[u.Password]
		if !found {
			var err error
			if k, err = scram(sha1.New, u.Password); err != nil {
				return nil, err
			}
			keys[u.Password] = k
		}
		b64 := base64.StdEncoding.EncodeToString
		text = fmt.Appendf(text, "{passwd, {<<\"%s\"/utf8>>, <<\"%s\"/utf8>>}, {scram, <<\"%s\">>, <<\"%s\">>, <<\"%s\">>, sha, %d}}.\n",
			u.Name, domain, b64(k.stored), b64(k.server), b64([]byte(k.salt)), scramIterations)
	}
	return text, nil
}

// scramKeys is what a server keeps of a password (RFC 5802 §3).
type scramKeys struct {
	salt           string
	stored, server []byte
}

func scram(newHash func() hash.Hash, password string) (scramKeys, error) {
	salt := rand.Text()
	salted, err := pbkdf2.Key(newHash, password, []byte(salt), scramIterations, newHash().Size())
	if err != nil {
		return scramKeys{}, err
	}
	sign := func(text string) []byte {
		h := hmac.New(newHash, salted)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	stored := newHash()
	stored.Write(sign("Client Key"))
	return scramKeys{salt: salt, stored: stored.Sum(nil), server: sign("Server Key")}, nil
}

// prosodyName is a name as Prosody's internal storage writes it in a path.
func prosodyName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	return b.String()
}
