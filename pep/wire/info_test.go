package wire

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pepvault/pep"
)

func softwareInfo(fields ...pep.Field) []pep.Field {
	return append([]pep.Field{{Name: formType, Kind: "hidden", Values: []string{"urn:xmpp:dataforms:softwareinfo"}}}, fields...)
}

// The values that the two XEPs publish.
func TestPublishedHashes(t *testing.T) {
	t.Parallel()
	muc := []string{"http://jabber.org/protocol/muc", "http://jabber.org/protocol/disco#info",
		"http://jabber.org/protocol/disco#items", "http://jabber.org/protocol/caps"}
	tests := map[string]struct {
		info   Info
		hashes []string
	}{
		"XEP-0115 simple": {
			Info{Identities: []Identity{{"client", "pc", "", "Exodus 0.9.1"}}, Features: muc},
			[]string{"0115:sha-1:QgayPKawpkPSDYmwT/WM94uAlu0="}},
		"XEP-0115 complex": {
			Info{Identities: []Identity{{"client", "pc", "en", "Psi 0.11"}, {"client", "pc", "el", "Ψ 0.11"}}, Features: muc,
				Forms: [][]pep.Field{softwareInfo(
					pep.Field{Name: "ip_version", Values: []string{"ipv6", "ipv4"}}, pep.Field{Name: "os", Values: []string{"Mac"}},
					pep.Field{Name: "os_version", Values: []string{"10.5.1"}}, pep.Field{Name: "software", Values: []string{"Psi"}},
					pep.Field{Name: "software_version", Values: []string{"0.11"}})}},
			[]string{"0115:sha-1:q07IKJEyjvHSyhy//CH0CxmKi8w="}},
		"XEP-0390 simple": {
			Info{Identities: []Identity{{"client", "mobile", "", "BombusMod"}}, Features: strings.Fields(bombusFeatures)},
			[]string{"0390:sha-256:" + set256, "0390:sha3-256:" + set3_256}},
		"XEP-0390 complex": {
			Info{Identities: []Identity{{"client", "pc", "en", "Tkabber"}, {"client", "pc", "ru", "Ткаббер"}},
				Features: strings.Fields(tkabberFeatures), Forms: [][]pep.Field{softwareInfo(
					pep.Field{Name: "software", Values: []string{"Tkabber"}},
					pep.Field{Name: "software_version", Values: []string{"0.11.1-svn-20111216-mod (Tcl/Tk 8.6b2)"}},
					pep.Field{Name: "os", Values: []string{"Windows"}}, pep.Field{Name: "os_version", Values: []string{"XP"}})}},
			[]string{"0390:sha-256:u79ZroNJbdSWhdSp311mddz44oHHPsEBntQ5b1jqBSY=",
				"0390:sha3-256:XpUJzLAc93258sMECZ3FJpebkzuyNXDzRNwQog8eycg="}},
	}
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			info := answered(t, "", test.info)
			for _, hash := range test.hashes {
				if !info.Verify(pep.CapsHash{Hash: hash}) {
					t.Errorf("%s was not verified", hash)
				}
				for _, other := range tests {
					if !slices.Contains(other.hashes, hash) && other.info.Verify(pep.CapsHash{Hash: hash}) {
						t.Errorf("%s was verified for another info", hash)
					}
				}
			}
			for _, hash := range []string{"", "0115", "0115:", "0115:md5:AAAA", "0115:sha-1:", "sha-1:" + test.hashes[0], ver115} {
				if info.Verify(pep.CapsHash{Hash: hash}) {
					t.Errorf("%q was verified", hash)
				}
			}
		})
	}
}

const bombusFeatures = `http://jabber.org/protocol/si http://jabber.org/protocol/bytestreams http://jabber.org/protocol/chatstates
	http://jabber.org/protocol/disco#info http://jabber.org/protocol/disco#items urn:xmpp:ping jabber:iq:time jabber:iq:privacy
	jabber:iq:version http://jabber.org/protocol/rosterx urn:xmpp:time jabber:x:oob http://jabber.org/protocol/ibb
	http://jabber.org/protocol/si/profile/file-transfer urn:xmpp:receipts jabber:iq:roster jabber:iq:last`

const tkabberFeatures = `games:board http://jabber.org/protocol/activity http://jabber.org/protocol/activity+notify
	http://jabber.org/protocol/bytestreams http://jabber.org/protocol/chatstates http://jabber.org/protocol/commands
	http://jabber.org/protocol/disco#info http://jabber.org/protocol/disco#items http://jabber.org/protocol/evil
	http://jabber.org/protocol/feature-neg http://jabber.org/protocol/geoloc http://jabber.org/protocol/geoloc+notify
	http://jabber.org/protocol/ibb http://jabber.org/protocol/iqibb http://jabber.org/protocol/mood
	http://jabber.org/protocol/mood+notify http://jabber.org/protocol/rosterx http://jabber.org/protocol/si
	http://jabber.org/protocol/si/profile/file-transfer http://jabber.org/protocol/tune
	http://www.facebook.com/xmpp/messages http://www.xmpp.org/extensions/xep-0084.html#ns-metadata+notify
	jabber:iq:avatar jabber:iq:browse jabber:iq:dtcp jabber:iq:filexfer jabber:iq:ibb jabber:iq:inband jabber:iq:jidlink
	jabber:iq:last jabber:iq:oob jabber:iq:privacy jabber:iq:roster jabber:iq:time jabber:iq:version jabber:x:data
	jabber:x:event jabber:x:oob urn:xmpp:avatar:metadata+notify urn:xmpp:ping urn:xmpp:receipts urn:xmpp:time`

// answered is info as it comes over the wire, on an iq with such attributes.
func answered(t interface{ Fatal(...any) }, attrs string, info Info) Info {
	raw := append(AppendInfo([]byte("<iq type='result' id='1' "+attrs+">"), "n", info), "</iq>"...)
	got, err := DecodeInfo(raw)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// hashesOf are the names of the hashes of an info, where it has one.
func hashesOf(info Info) (hashes []string) {
	for paper, input := range map[string]func(Info, string) ([]byte, bool){caps115: Info.input115, caps390: Info.input390} {
		for _, a := range algorithms {
			if data, ok := input(info, ""); ok {
				hashes = append(hashes, paper+":"+a.name+":"+a.digest(data))
			}
		}
	}
	return hashes
}

func TestDecodeInfo(t *testing.T) {
	t.Parallel()
	got, err := DecodeInfo([]byte("<iq type='result'><query xmlns='http://jabber.org/protocol/disco#info'>" +
		"<identity category='client' type='pc' xml:lang='de'/><feature var='b'/><feature var='a'/>" +
		"<x xmlns='jabber:x:data' type='result'><field var='FORM_TYPE' type='hidden'><value>t</value></field><field var='v'/></x></query></iq>"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Identity{{"client", "pc", "de", ""}}, got.Identities); diff != "" {
		t.Errorf("identities (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"b", "a"}, got.Features); diff != "" {
		t.Errorf("features (-want +got)\n%s", diff)
	}
	want := [][]pep.Field{{{Name: formType, Kind: "hidden", Values: []string{"t"}}, {Name: "v"}}}
	if diff := cmp.Diff(want, got.Forms); diff != "" {
		t.Errorf("forms (-want +got)\n%s", diff)
	}
	for _, raw := range []string{
		"", "<iq type='result'/>", "<message/>",
		"<iq type='get'><query xmlns='http://jabber.org/protocol/disco#info'/></iq>",
		"<iq type='result'><query xmlns='http://jabber.org/protocol/disco#items'/></iq>",
	} {
		if got, err := DecodeInfo([]byte(raw)); !errors.Is(err, ErrBadReply) {
			t.Errorf("%q: %+v, %v", raw, got, err)
		}
	}
	refused := new(StanzaError)
	_, err = DecodeInfo([]byte("<iq type='error'><error type='cancel'><item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>"))
	if !errors.As(err, &refused) || refused.Condition != "item-not-found" {
		t.Errorf("an error: %v", err)
	}
}

func TestAnnouncedIsBounded(t *testing.T) {
	t.Parallel()
	info := Info{Features: []string{"+notify", "z+notify", "z+notify", "notify", "a+notify+notify"}}
	if diff := cmp.Diff(pep.Announced{Nodes: []string{"a+notify", "z"}}, info.Announced()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for i := range 2 * maxAnnounced {
		info.Features = append(info.Features, fmt.Sprintf("%04d+notify", i))
	}
	if got := info.Announced().Nodes; len(got) != maxAnnounced || got[0] != "0000" {
		t.Errorf("%d nodes from %q", len(got), got[0])
	}
}

// What XEP-0115 §5.4 has ill-formed, what XEP-0390 §4.1 has no hash for, and
// what would let two different infos have one text.
func TestInfoWithoutHash(t *testing.T) {
	t.Parallel()
	base := Info{Identities: []Identity{{"client", "pc", "", "x"}}, Features: []string{"a", "b"}}
	with := func(change func(i *Info)) Info {
		i := Info{Identities: slices.Clone(base.Identities), Features: slices.Clone(base.Features)}
		change(&i)
		return i
	}
	plainForm := []pep.Field{{Name: "os", Values: []string{"Mac"}}}
	for what, test := range map[string]struct {
		info   Info
		has115 bool
		has390 bool
	}{
		"nothing odd":              {base, true, true},
		"nothing":                  {Info{}, true, true},
		"identity twice":           {with(func(i *Info) { i.Identities = append(i.Identities, i.Identities[0]) }), false, true},
		"feature twice":            {with(func(i *Info) { i.Features = append(i.Features, "a") }), false, true},
		"form twice":               {with(func(i *Info) { i.Forms = [][]pep.Field{softwareInfo(), softwareInfo()} }), false, true},
		"two form types":           {with(func(i *Info) { i.Forms = [][]pep.Field{{{Name: formType, Kind: "hidden", Values: []string{"a", "b"}}}} }), false, false},
		"two fields of form type":  {with(func(i *Info) { i.Forms = [][]pep.Field{append(softwareInfo(), softwareInfo()...)} }), false, false},
		"form without type":        {with(func(i *Info) { i.Forms = [][]pep.Field{plainForm} }), true, false},
		"form type in sight":       {with(func(i *Info) { i.Forms = [][]pep.Field{{{Name: formType, Values: []string{"a"}}}} }), true, false},
		"separator in a feature":   {with(func(i *Info) { i.Features = append(i.Features, "c<d") }), false, true},
		"separator in an identity": {with(func(i *Info) { i.Identities[0].Name = "x<y" }), false, true},
		"separator in a form":      {with(func(i *Info) { i.Forms = [][]pep.Field{softwareInfo(pep.Field{Name: "os", Values: []string{"a<b"}})} }), false, true},
		"node in a form":           {with(func(i *Info) { i.Forms = [][]pep.Field{softwareInfo(pep.Field{Name: "n+notify"})} }), false, true},
		"node in a value": {with(func(i *Info) {
			i.Forms = [][]pep.Field{softwareInfo(pep.Field{Name: "a", Values: []string{"n+notify"}})}
		}), false, true},
		"node in a form's type": {with(func(i *Info) {
			i.Forms = [][]pep.Field{{{Name: formType, Kind: "hidden", Values: []string{"n+notify"}}}}
		}), false, true},
		"node in an identity":        {with(func(i *Info) { i.Identities[0].Name = "n+notify" }), false, true},
		"states in a form":           {with(func(i *Info) { i.Forms = [][]pep.Field{softwareInfo(pep.Field{Name: nsSync})} }), false, true},
		"an element of another kind": {with(func(i *Info) { i.odd = true }), true, false},
		"a table":                    {with(func(i *Info) { i.odd, i.table = true, true }), false, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			if _, ok := test.info.input115(""); ok != test.has115 {
				t.Errorf("XEP-0115 hashes it: %v", ok)
			}
			if _, ok := test.info.input390(""); ok != test.has390 {
				t.Errorf("XEP-0390 hashes it: %v", ok)
			}
		})
	}
	for content, want := range map[string]Info{
		"<set xmlns='http://jabber.org/protocol/rsm'/>": {odd: true},
		"<x xmlns='u'/>": {odd: true},
		"<x xmlns='jabber:x:data'><reported/></x>":           {odd: true, table: true, Forms: [][]pep.Field{{}}},
		"<x xmlns='jabber:x:data'><item><field/></item></x>": {odd: true, table: true, Forms: [][]pep.Field{{}}},
	} {
		got, err := DecodeInfo([]byte(iq("result", "<query xmlns='http://jabber.org/protocol/disco#info'>"+content+"</query>")))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(Info{})); diff != "" {
			t.Errorf("%s (-want +got)\n%s", content, diff)
		}
	}
}

// One text of XEP-0115 can be read as several infos. None that moves a node
// among the features or away from them is taken for what a client announced.
func TestPoisonedCapsAreNotVerified(t *testing.T) {
	t.Parallel()
	honest := Info{Identities: []Identity{{"client", "pc", "", "x"}}, Features: []string{"a", "http://u/v/w+notify", "n+notify", nsSync}}
	hashes := hashesOf(honest)
	for what, liar := range map[string]Info{
		"node moved into a form": {Identities: honest.Identities, Features: honest.Features[:2],
			Forms: [][]pep.Field{{{Name: formType, Kind: "hidden", Values: []string{"n+notify"}}, {Name: nsSync}}}},
		"node joined to another": {Identities: honest.Identities, Features: []string{"a<http://u/v/w+notify", "n+notify", nsSync}},
		"node in an identity":    {Identities: []Identity{honest.Identities[0], {"http:", "", "u", "v/w+notify"}}, Features: []string{"a", "n+notify", nsSync}},
		"feature in an identity": {Identities: []Identity{{"client", "pc", "", "x<a"}}, Features: honest.Features[1:]},
	} {
		for _, hash := range hashes {
			if liar.Verify(pep.CapsHash{Hash: hash}) {
				t.Errorf("%s: %s was verified", what, hash)
			}
		}
	}
}

// A language that the iq or the query has counts for the identities, whether
// the client reckoned with it or its host put it there.
func TestInheritedLanguage(t *testing.T) {
	t.Parallel()
	bare := Info{Identities: []Identity{{"client", "pc", "", "x"}, {"client", "web", "de", "x"}}, Features: []string{"a"}}
	full := Info{Identities: []Identity{{"client", "pc", "en", "x"}, {"client", "web", "de", "x"}}, Features: []string{"a"}}
	for _, hash := range append(hashesOf(bare), hashesOf(full)...) {
		if !answered(t, "xml:lang='en'", bare).Verify(pep.CapsHash{Hash: hash}) {
			t.Errorf("%s was not verified", hash)
		}
	}
	for _, hash := range hashesOf(full) {
		if answered(t, "xml:lang='ru'", bare).Verify(pep.CapsHash{Hash: hash}) {
			t.Errorf("%s was verified in another language", hash)
		}
	}
}

var infos = rapid.Custom(func(t *rapid.T) Info {
	word := rapid.StringMatching(`[a-z:/#é <&'+]{0,8}`)
	info := Info{Features: rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z:/#é]{1,6}(\+notify)?`), 1, 6, rapid.ID).Draw(t, "features")}
	for range rapid.IntRange(0, 2).Draw(t, "identities") {
		info.Identities = append(info.Identities, Identity{word.Draw(t, "category"), word.Draw(t, "type"), word.Draw(t, "lang"), word.Draw(t, "name")})
	}
	for range rapid.IntRange(0, 2).Draw(t, "forms") {
		fields := []pep.Field{{Name: formType, Kind: "hidden", Values: []string{word.Draw(t, "form type")}}}
		for _, name := range rapid.SliceOfNDistinct(word, 0, 3, rapid.ID).Draw(t, "fields") {
			fields = append(fields, pep.Field{Name: name, Values: rapid.SliceOfN(word, 1, 2).Draw(t, "values")})
		}
		info.Forms = append(info.Forms, fields)
	}
	return info
})

// Whatever the order in which a client lists what it can do, its hash is
// verified; with a feature more, less or other it never is.
func TestOnlyTheSameInfoIsVerified(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		info := infos.Draw(t, "info")
		hashes := hashesOf(info)
		same := answered(t, "", Info{
			Identities: rapid.Permutation(info.Identities).Draw(t, "identities"),
			Features:   rapid.Permutation(info.Features).Draw(t, "features"),
			Forms:      rapid.Permutation(info.Forms).Draw(t, "forms"),
		})
		other := answered(t, "", info)
		at := rapid.IntRange(0, len(info.Features)-1).Draw(t, "which")
		switch rapid.IntRange(0, 2).Draw(t, "change") {
		case 0:
			other.Features[at] += rapid.SampledFrom([]string{"+notify", "x", " "}).Draw(t, "more")
		case 1:
			other.Features = slices.Delete(other.Features, at, at+1)
		default:
			other.Features = append(other.Features, "new+notify")
		}
		for _, hash := range hashes {
			if !same.Verify(pep.CapsHash{Hash: hash}) {
				t.Fatalf("%s was not verified for %+v", hash, same)
			}
			if other.Verify(pep.CapsHash{Hash: hash}) {
				t.Fatalf("%s was verified for %+v", hash, other)
			}
		}
	})
}
