package wire

import (
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"encoding/base64"
	"strings"

	"golang.org/x/crypto/blake2b"

	"pepvault/pep"
)

// Capabilities in presence: XEP-0115 and XEP-0390. A hash is named by the paper,
// the algorithm and the digest, such as "0115:sha-1:QgayPK…=": the two papers
// hash different texts, so one digest may stand for two things.

const (
	caps115 = "0115"
	caps390 = "0390"
	// maxCapsNode bounds the node of XEP-0115, which names a client's software.
	maxCapsNode = 1024
)

// algorithm is a hash function by its name in XEP-0300.
type algorithm struct {
	name string
	sum  func(data []byte) []byte
}

// algorithms are those that we can compute, the preferred one first. The last
// one is broken where its user wants it so, but it is what XEP-0115 stands on.
var algorithms = [...]algorithm{
	{"sha-256", func(data []byte) []byte { sum := sha256.Sum256(data); return sum[:] }},
	{"sha3-256", func(data []byte) []byte { sum := sha3.Sum256(data); return sum[:] }},
	{"sha-512", func(data []byte) []byte { sum := sha512.Sum512(data); return sum[:] }},
	{"sha3-512", func(data []byte) []byte { sum := sha3.Sum512(data); return sum[:] }},
	{"blake2b-256", func(data []byte) []byte { sum := blake2b.Sum256(data); return sum[:] }},
	{"blake2b-512", func(data []byte) []byte { sum := blake2b.Sum512(data); return sum[:] }},
	{"sha-1", func(data []byte) []byte { sum := sha1.Sum(data); return sum[:] }},
}

func (a algorithm) digest(data []byte) string { return base64.StdEncoding.EncodeToString(a.sum(data)) }

// hash names a digest of this algorithm, "" if it can't be one.
func (a algorithm) hash(paper, digest string) string {
	data, ok := decodeBase64([]byte(digest))
	if !ok || len(data) != len(a.sum(nil)) {
		return ""
	}
	return paper + ":" + a.name + ":" + digest
}

func algorithmOf(name string) (algorithm, bool) {
	for _, a := range algorithms {
		if a.name == name {
			return a, true
		}
	}
	return algorithm{}, false
}

// DecodePresence reads what a <presence/> says of its sender's capabilities:
// the hashes that we can compute, the preferred one first. What was announced
// without such a hash is one zero CapsHash: only asking this very client tells
// what it can do. silent says that there is no caps element; one that is not
// as its XEP has it counts as none. The error is as of [DecodeRequest].
func DecodePresence(raw []byte) (caps []pep.CapsHash, silent bool, err error) {
	presence, err := newReader(raw, Limits{}).tree()
	if err != nil {
		return nil, false, err
	}
	if presence.name != (name{nsClient, "presence"}) && presence.name != (name{nsComponent, "presence"}) {
		return nil, false, pep.Refuse(pep.ErrBadRequest, "not a presence")
	}
	sets, announced := hashSet(presence.child(name{nsHashSets, "c"}))
	single, legacy := singleHash(presence.child(name{nsCaps, "c"}))
	// The algorithm of XEP-0115 stands above sha-1 in a set only.
	weak := len(sets)
	if weak > 0 && strings.HasPrefix(sets[weak-1].Hash, caps390+":sha-1:") {
		weak--
	}
	caps = append(append(append(caps, sets[:weak]...), single...), sets[weak:]...)
	switch {
	case len(caps) > 0:
		return caps, false, nil
	case announced || legacy:
		return []pep.CapsHash{{}}, false, nil
	}
	return nil, true, nil
}

// hashSet reads a <c/> of XEP-0390; announced says that it has hashes at all.
func hashSet(c *element) (caps []pep.CapsHash, announced bool) {
	if c == nil {
		return nil, false
	}
	for _, a := range algorithms {
		for _, e := range c.children {
			if e.name != (name{nsHashes, "hash"}) {
				continue
			}
			announced = true
			if e.attr("algo") != a.name {
				continue
			}
			digest := strings.TrimSpace(string(e.text))
			if hash := a.hash(caps390, digest); hash != "" {
				caps = append(caps, pep.CapsHash{Hash: hash, Node: hashNode(a.name, digest)})
				break
			}
		}
	}
	return caps, announced
}

func hashNode(algorithm, digest string) string { return nsHashSets + "#" + algorithm + "." + digest }

// singleHash reads a <c/> of XEP-0115; announced says that it is one.
func singleHash(c *element) (caps []pep.CapsHash, announced bool) {
	if c == nil || c.attr("node") == "" || c.attr("ver") == "" || len(c.attr("node")) > maxCapsNode {
		return nil, false
	}
	if a, ok := algorithmOf(c.attr("hash")); ok {
		if hash := a.hash(caps115, c.attr("ver")); hash != "" {
			return []pep.CapsHash{{Hash: hash, Node: c.attr("node") + "#" + c.attr("ver")}}, true
		}
	}
	return nil, true
}

// AppendCaps appends what announces a client in its presence, for XEP-0115 and
// XEP-0390. node is a URI of its software, info what it answers to disco#info
// requests. It panics if that has no hash: a field or identity stands there
// twice.
func AppendCaps(dst []byte, node string, info Info) []byte {
	single, ok := info.input115("")
	set, also := info.input390("")
	if !ok || !also {
		panic("wire: these capabilities have no hash")
	}
	old, _ := algorithmOf("sha-1")
	dst = appendAttr(append(dst, "<c xmlns='"+nsCaps+"' hash='sha-1'"...), "node", node)
	dst = append(appendAttr(dst, "ver", old.digest(single)), "/>"...)
	dst = append(dst, "<c xmlns='"+nsHashSets+"'><hash xmlns='"+nsHashes+"'"...)
	dst = append(appendAttr(dst, "algo", algorithms[0].name), '>')
	return append(append(dst, algorithms[0].digest(set)...), "</hash></c>"...)
}

// AppendAnnouncement appends an available <presence/> that announces a client
// as [AppendCaps] does.
func AppendAnnouncement(dst []byte, from, to, node string, info Info) []byte {
	dst = appendAttr(appendAttrIf(append(dst, "<presence"...), "from", from), "to", to)
	return append(AppendCaps(append(dst, '>'), node, info), "</presence>"...)
}
