package wire

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pepvault/pep"
	"pepvault/vault"
)

func TestDownloadRequests(t *testing.T) {
	t.Parallel()
	for what, call := range map[string]pep.Download{
		"download":         {ID: "d1", Node: "notes"},
		"download bounded": {ID: "d&1", Node: "notes", Cursor: "c-41", ChunkBytes: 32768, Window: 4},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			raw := AppendRequest(nil, request, call)
			golden(t, "request "+what, raw)
			got, err := DecodeRequest(raw, testLimits)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(Call(call), got); diff != "" {
				t.Errorf("read again (-want +got)\n%s", diff)
			}
		})
	}
}

func TestDownloadRequestsRefused(t *testing.T) {
	t.Parallel()
	download := func(attrs string) string { return "<download xmlns='urn:pepvault:sync:0' " + attrs + "/>" }
	tests := map[string]struct {
		raw  string
		want error
	}{
		"get":                {iq("get", download("id='d' node='n'")), pep.ErrBadRequest},
		"no node":            {iq("set", download("id='d'")), pep.ErrNodeRequired},
		"no id":              {iq("set", download("node='n'")), pep.ErrBadRequest},
		"empty id":           {iq("set", download("id='' node='n'")), pep.ErrBadName},
		"huge id":            {iq("set", download("node='n' id='"+strings.Repeat("d", vault.MaxNameBytes+1)+"'")), pep.ErrBadName},
		"no window":          {iq("set", download("id='d' node='n' window='0'")), pep.ErrBadRequest},
		"negative window":    {iq("set", download("id='d' node='n' window='-1'")), pep.ErrBadRequest},
		"chunks of nothing":  {iq("set", download("id='d' node='n' chunk-bytes='0'")), pep.ErrBadRequest},
		"chunks of words":    {iq("set", download("id='d' node='n' chunk-bytes='many'")), pep.ErrBadRequest},
		"with content":       {iq("set", "<download xmlns='urn:pepvault:sync:0' id='d' node='n'><item/></download>"), pep.ErrBadRequest},
		"with text":          {iq("set", "<download xmlns='urn:pepvault:sync:0' id='d' node='n'>text</download>"), pep.ErrBadRequest},
		"in a pubsub":        {iq("set", pubsub("<items node='n'/>"+download("id='d' node='n'"))), pep.ErrUnsupported},
		"a chunk as request": {iq("set", "<chunk xmlns='urn:pepvault:sync:0' download='d' seq='0' cursor='c'/>"), pep.ErrBadRequest},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := DecodeRequest([]byte(tt.raw), testLimits); !errors.Is(err, tt.want) {
				t.Errorf("DecodeRequest = %+v, %v; want %v", got, err, tt.want)
			}
		})
	}
}

// A bound that no chunk can reach is the highest there is.
func TestDownloadOfHugeBounds(t *testing.T) {
	t.Parallel()
	raw := iq("set", "<download xmlns='urn:pepvault:sync:0' id='d' node='n' chunk-bytes='99999999999999999999' window='4294967296'/>")
	got, err := DecodeRequest([]byte(raw), testLimits)
	want := pep.Download{ID: "d", Node: "n", ChunkBytes: 1<<31 - 1, Window: 1<<31 - 1}
	if diff := cmp.Diff(Call(want), got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestDownloadsBegun(t *testing.T) {
	t.Parallel()
	begun := pep.DownloadBegun{ID: "d&1", Records: 256, Bytes: 361472, ChunkBytes: 32768, Window: 4}
	lost, first := begun, begun
	lost.Reset, lost.Fork = vault.ResetLost, 41
	first.Reset = vault.ResetNew
	for what, answer := range map[string]pep.DownloadBegun{"download": begun, "download new": first, "download lost": lost} {
		raw := AppendResult(nil, request, answer)
		golden(t, "result "+what, raw)
		got, err := DecodeReply(raw, pep.Download{})
		if diff := cmp.Diff(any(answer), got); diff != "" || err != nil {
			t.Errorf("%s read again: %v (-want +got)\n%s", what, err, diff)
		}
	}
}

func TestChunks(t *testing.T) {
	t.Parallel()
	changes := []vault.Change{
		{Record: vault.Record{ID: "a", Revision: 42, Payload: native("hello"), KeyVersion: 3}},
		{Record: vault.Record{ID: "b&c", Revision: 43}, Gone: true},
		{Record: vault.Record{ID: "z", Revision: 44, Payload: element0("<note xmlns='urn:example:foreign'>text</note>")}},
	}
	for what, chunk := range map[string]pep.Chunk{
		"chunk":       {Download: "d1", Seq: 3, Page: pep.SyncPage{Cursor: "c-44", More: true, Changes: changes}},
		"chunk first": {Download: "d&1", Page: pep.SyncPage{Cursor: "c-44", More: true, Reset: vault.ResetNew, First: true, Changes: changes[:1]}},
		"chunk lost":  {Download: "d1", Seq: 4, Page: pep.SyncPage{Cursor: "c-44", Reset: vault.ResetLost, Fork: 41, Changes: changes[1:]}},
		"chunk last":  {Download: "d1", Seq: 1, Page: pep.SyncPage{Cursor: "c-44"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			raw := AppendChunk(nil, Header{From: "vault.localhost", To: "alice@localhost/phone", ID: "x1"}, chunk)
			golden(t, what, raw)
			got, err := DecodeChunk(raw)
			if diff := cmp.Diff(chunk, got); diff != "" || err != nil {
				t.Errorf("read again: %v (-want +got)\n%s", err, diff)
			}
		})
	}
}

// What a device answers goes to where the chunk came from, with its id.
func TestAcknowledgements(t *testing.T) {
	t.Parallel()
	chunk := Header{From: `alice\40localhost@vault.localhost`, To: "bob@localhost/phone", ID: "x'1", Type: "set", Name: "iq"}
	got, err := ReadHeader(AppendAck(nil, chunk))
	want := Header{To: chunk.From, ID: chunk.ID, Type: "result", Name: "iq"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("taken: %v (-want +got)\n%s", err, diff)
	}
	refusal := AppendError(nil, chunk, ErrUnknownChunk)
	var read *StanzaError
	if _, err := DecodeReply(refusal, Ping{}); !errors.As(err, &read) || read.Condition != "item-not-found" {
		t.Errorf("refused: %s", refusal)
	}
}

func TestUnreadableChunks(t *testing.T) {
	t.Parallel()
	chunk := func(attrs, content string) string {
		return iq("set", "<chunk xmlns='urn:pepvault:sync:0' "+attrs+">"+content+"</chunk>")
	}
	for what, raw := range map[string]string{
		"no chunk":           iq("set", "<sync xmlns='urn:pepvault:sync:0' cursor='c'/>"),
		"result":             iq("result", "<chunk xmlns='urn:pepvault:sync:0' download='d' seq='0' cursor='c'/>"),
		"no download":        chunk("seq='0' cursor='c'", ""),
		"no number":          chunk("download='d' cursor='c'", ""),
		"negative number":    chunk("download='d' seq='-1' cursor='c'", ""),
		"no cursor":          chunk("download='d' seq='0'", ""),
		"unknown reset":      chunk("download='d' seq='0' cursor='c' reset='odd'", ""),
		"lost without fork":  chunk("download='d' seq='0' cursor='c' reset='lost'", ""),
		"bad ciphertext":     chunk("download='d' seq='0' cursor='c'", "<item id='a' revision='1' key-version='1'>a</item>"),
		"something else":     chunk("download='d' seq='0' cursor='c'", "<record id='a' revision='1'/>"),
		"without a revision": chunk("download='d' seq='0' cursor='c'", "<retract id='a'/>"),
	} {
		if got, err := DecodeChunk([]byte(raw)); !errors.Is(err, ErrBadReply) {
			t.Errorf("%s is read as %+v, %v", what, got, err)
		}
	}
}

func TestChunksAreReadAgain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		chunk := pep.Chunk{Download: names.Draw(t, "download"), Seq: rapid.IntRange(0, 1<<31-1).Draw(t, "seq")}
		chunk.Page = drawPass(t)
		got, err := DecodeChunk(AppendChunk(nil, request, chunk))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(chunk, got); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
	})
}
