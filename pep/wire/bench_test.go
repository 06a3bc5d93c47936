package wire

import (
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"

	"pepvault/pep"
	"pepvault/vault"
)

func benchDecode(b *testing.B, raw string) {
	b.ReportAllocs()
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, err := DecodeRequest([]byte(raw), Limits{RecordBytes: 65536, Foreign: true}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeItems(b *testing.B) {
	benchDecode(b, iq("get", pubsub("<items node='urn:example:notes'><item id='0190a2b4-4d3e-7c1a'/></items>")))
}

func BenchmarkDecodePublishNative(b *testing.B) {
	benchDecode(b, record(" key-version='3'", base64.StdEncoding.EncodeToString(make([]byte, 924))))
}

func BenchmarkDecodePublishForeign(b *testing.B) {
	benchDecode(b, foreign("<record xmlns='urn:inkvault:record' key-version='3'>"+
		base64.StdEncoding.EncodeToString(make([]byte, 924))+"</record>"))
}

func BenchmarkDecodePublishForeignNested(b *testing.B) {
	benchDecode(b, foreign("<note xmlns='urn:example:notes'>"+strings.Repeat("<tag name='a'>some text</tag>", 40)+"</note>"))
}

func benchRecords(n int) []vault.Record {
	records := make([]vault.Record, n)
	for i := range records {
		records[i] = vault.Record{
			ID: fmt.Sprintf("0190a2b4-4d3e-7c1a-%04d", i), KeyVersion: 3, Publisher: "alice@example.org",
			Payload: vault.Payload{Form: vault.Native, Data: make([]byte, 924)},
		}
	}
	return records
}

func benchAppend(b *testing.B, append func(dst []byte) []byte) {
	b.ReportAllocs()
	dst := append(nil)
	b.SetBytes(int64(len(dst)))
	for b.Loop() {
		dst = append(dst[:0])
	}
}

func BenchmarkResultOneRecord(b *testing.B) {
	var page any = pep.ItemsPage{Node: "urn:example:notes", Records: benchRecords(1)}
	benchAppend(b, func(dst []byte) []byte { return AppendResult(dst, request, page) })
}

func BenchmarkResult256Records(b *testing.B) {
	var page any = pep.ItemsPage{Node: "urn:example:notes", Records: benchRecords(256)}
	benchAppend(b, func(dst []byte) []byte { return AppendResult(dst, request, page) })
}

func BenchmarkEvent(b *testing.B) {
	ev := &pep.Event{Owner: "alice@example.org", Node: "urn:example:notes",
		Changes: []vault.Change{{Record: benchRecords(1)[0]}}, State: *testState()}
	b.ReportAllocs()
	for b.Loop() {
		EventBody(ev, Full)
	}
}

func BenchmarkMessage(b *testing.B) {
	body := EventBody(&pep.Event{Owner: "alice@example.org", Node: "urn:example:notes",
		Changes: []vault.Change{{Record: benchRecords(1)[0]}}, State: *testState()}, Full)[0]
	benchAppend(b, func(dst []byte) []byte {
		return AppendMessage(dst, "vault.example.org", "alice@example.org/phone", "m1", body)
	})
}

func BenchmarkDecodeReply256Records(b *testing.B) {
	raw := AppendResult(nil, request, pep.ItemsPage{Node: "urn:example:notes", Records: benchRecords(256)})
	b.ReportAllocs()
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, err := DecodeReply(raw, pep.Items{}); err != nil {
			b.Fatal(err)
		}
	}
}

// The floor under the decoders: encoding/xml's raw tokens and nothing else.
func benchTokens(b *testing.B, raw string) {
	b.ReportAllocs()
	for b.Loop() {
		d := xml.NewDecoder(strings.NewReader(raw))
		for {
			if _, err := d.RawToken(); err != nil {
				break
			}
		}
	}
}

func BenchmarkTokensItems(b *testing.B) {
	benchTokens(b, iq("get", pubsub("<items node='urn:example:notes'><item id='0190a2b4-4d3e-7c1a'/></items>")))
}

func BenchmarkTokensPublish(b *testing.B) {
	benchTokens(b, record(" key-version='3'", base64.StdEncoding.EncodeToString(make([]byte, 924))))
}

// One stanza of the largest size, in as many pieces as it can have: its cost
// must grow with its size and no faster (PROTOCOL §11).
func BenchmarkDecodeHostilePieces(b *testing.B) {
	raw := []byte(publish("<item>" + strings.Repeat("<![CDATA[ ]]>", 2<<20/13) + "</item>"))
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, err := DecodeRequest(raw, testLimits); err == nil {
			b.Fatal("white space was taken for a payload")
		}
	}
}
