package wire

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pepvault/pep"
)

const (
	ver115   = "QgayPKawpkPSDYmwT/WM94uAlu0="
	set256   = "kzBZbkqJ3ADrj7v08reD1qcWUwNGHaidNUgD7nHpiw8="
	set3_256 = "79mdYAfU9rEdTOcWDO7UEAt6E56SUzk/g6TnqUeuD9Q="
)

func presence(content string) string {
	return "<presence from='alice@localhost/phone' to='vault.localhost'>" + content + "</presence>"
}

func c115(attrs string) string { return "<c xmlns='http://jabber.org/protocol/caps' " + attrs + "/>" }

func c390(hashes ...string) string {
	c := "<c xmlns='urn:xmpp:caps'>"
	for i := 0; i < len(hashes); i += 2 {
		c += "<hash xmlns='urn:xmpp:hashes:2' algo='" + hashes[i] + "'>" + hashes[i+1] + "</hash>"
	}
	return c + "</c>"
}

func TestDecodePresence(t *testing.T) {
	t.Parallel()
	modern := pep.CapsHash{Hash: "0390:sha-256:" + set256, Node: "urn:xmpp:caps#sha-256." + set256}
	sponge := pep.CapsHash{Hash: "0390:sha3-256:" + set3_256, Node: "urn:xmpp:caps#sha3-256." + set3_256}
	weak := pep.CapsHash{Hash: "0390:sha-1:" + ver115, Node: "urn:xmpp:caps#sha-1." + ver115}
	single := pep.CapsHash{Hash: "0115:sha-1:" + ver115, Node: "https://example.org/client#" + ver115}
	usual := c115("hash='sha-1' node='https://example.org/client' ver='" + ver115 + "'")
	unhashed := []pep.CapsHash{{}}
	for what, test := range map[string]struct {
		content string
		want    []pep.CapsHash
		silent  bool
	}{
		"nothing":                     {"", nil, true},
		"other content":               {"<show>away</show><x xmlns='vcard-temp:x:update'><photo/></x>", nil, true},
		"XEP-0115":                    {"<priority>1</priority>" + usual, []pep.CapsHash{single}, false},
		"XEP-0390":                    {c390("sha3-256", set3_256, "sha-256", set256), []pep.CapsHash{modern, sponge}, false},
		"both":                        {usual + c390("sha-256", set256), []pep.CapsHash{modern, single}, false},
		"all":                         {c390("sha-1", ver115, "sha-256", set256) + usual, []pep.CapsHash{modern, single, weak}, false},
		"white space":                 {c390("sha-256", "\n "+set256+"\n"), []pep.CapsHash{modern}, false},
		"one algorithm twice":         {c390("sha-256", set256, "sha-256", strings.Replace(set256, "k", "K", 1)), []pep.CapsHash{modern}, false},
		"an unknown algorithm beside": {c390("whirl-1", "AAAA", "sha-256", set256), []pep.CapsHash{modern}, false},
		"XEP-0115 with sha-256": {c115("hash='sha-256' node='n' ver='" + set256 + "'"),
			[]pep.CapsHash{{Hash: "0115:sha-256:" + set256, Node: "n#" + set256}}, false},

		"legacy":                {c115("node='n' ver='1.0' ext='a b'"), unhashed, false},
		"md5":                   {c115("hash='md5' node='n' ver='1B2M2Y8AsgTpgAmY7PhCfg=='"), unhashed, false},
		"unknown algorithms":    {c390("whirl-1", "AAAA", "whirl-2", "AAAA"), unhashed, false},
		"not base64":            {c115("hash='sha-1' node='n' ver='QgayPKawpkPSDYmwT/WM94uAlu0'"), unhashed, false},
		"not canonical base64":  {c115("hash='sha-1' node='n' ver='QgayPKawpkPSDYmwT/WM94uAlu1='"), unhashed, false},
		"another size":          {c115("hash='sha-1' node='n' ver='" + set256 + "'"), unhashed, false},
		"another size in a set": {c390("sha-256", ver115), unhashed, false},

		"no node":      {c115("hash='sha-1' ver='" + ver115 + "'"), nil, true},
		"no ver":       {c115("hash='sha-1' node='n'"), nil, true},
		"huge node":    {c115("hash='sha-1' node='" + strings.Repeat("n", maxCapsNode+1) + "' ver='" + ver115 + "'"), nil, true},
		"empty set":    {c390(), nil, true},
		"other hashes": {"<c xmlns='urn:xmpp:caps'><hash xmlns='urn:xmpp:hashes:1' algo='sha-256'>" + set256 + "</hash></c>", nil, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			got, silent, err := DecodePresence([]byte(presence(test.content)))
			if err != nil || silent != test.silent {
				t.Fatalf("silent %v, %v; want %v", silent, err, test.silent)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestDecodePresenceRefuses(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"", "<presence>", "<message/>", "<presence xmlns='u'/>", "<presence><c></presence></c>"} {
		if caps, silent, err := DecodePresence([]byte(raw)); err == nil {
			t.Errorf("%q: %v, %v", raw, caps, silent)
		}
	}
}

// What a device announces is verified by what it answers.
func TestAnnouncementIsVerified(t *testing.T) {
	t.Parallel()
	info := Info{
		Identities: []Identity{{"client", "pc", "en", "Vault & more"}, {"client", "pc", "", "Vault"}},
		Features:   []string{nsDiscoInfo, nsCaps, nsSync, "notes+notify", "urn:example:a/b+notify"},
		Forms: [][]pep.Field{{{Name: "os", Values: []string{"Linux", "BSD"}},
			{Name: formType, Kind: "hidden", Values: []string{"urn:xmpp:dataforms:softwareinfo"}}}},
	}
	raw := AppendAnnouncement(nil, "alice@localhost/phone", "vault.localhost", "https://example.org/client", info)
	golden(t, "presence caps", raw)
	hashes, silent, err := DecodePresence(raw)
	if err != nil || silent || len(hashes) != 2 {
		t.Fatalf("%v, silent %v, %v", hashes, silent, err)
	}
	for _, hash := range hashes {
		answer := []byte("<iq type='result' from='alice@localhost/phone' to='vault.localhost' id='d1'>")
		answer = append(AppendInfo(answer, hash.Node, info), "</iq>"...)
		golden(t, "info "+hash.Hash[:4], answer)
		got, err := DecodeInfo(answer)
		if err != nil {
			t.Fatal(err)
		}
		if !got.Verify(hash) {
			t.Errorf("%s was not verified", hash.Hash)
		}
		want := pep.Announced{Nodes: []string{"notes", "urn:example:a/b"}, Sync: true}
		if diff := cmp.Diff(want, got.Announced()); diff != "" {
			t.Errorf("announced (-want +got)\n%s", diff)
		}
	}
	if kind, ask := AskInfo(hashes[0].Node); kind != "get" || !strings.Contains(string(ask), "node='"+hashes[0].Node+"'") {
		t.Errorf("asked by %s %s", kind, ask)
	}
	defer func() {
		if recover() == nil {
			t.Error("capabilities without a hash were announced")
		}
	}()
	AppendCaps(nil, "n", Info{Features: []string{"a", "a"}})
}

func TestPresenceOfTheService(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		"":             "<presence from='vault.localhost' to='a@b'/>",
		"unsubscribed": "<presence type='unsubscribed' from='vault.localhost' to='a@b'/>",
	} {
		raw := AppendPresence(nil, "vault.localhost", "a@b", kind)
		checkStanza(t, raw)
		if string(raw) != want {
			t.Errorf("got %s, want %s", raw, want)
		}
	}
}

func TestBounceCondition(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"<message type='error'><error type='cancel'><gone xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></message>": "gone",
		"<message type='error'/>":    "undefined-condition",
		"<message><body/></message>": "",
		"<presence type='error'/>":   "",
		"<message type='error'>":     "",
	} {
		if got := BounceCondition([]byte(raw)); got != want {
			t.Errorf("%s: got %q, want %q", raw, got, want)
		}
	}
}
