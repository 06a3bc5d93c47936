package wire

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pepvault/pep"
)

func TestBatchRequests(t *testing.T) {
	t.Parallel()
	item := pep.Item{ID: "a", KeyVersion: 4, Namespace: nsRecord, Payload: native("hello")}
	ref := &pep.BatchRef{ID: "b&1", Cursor: "c-41"}
	for what, call := range map[string]Call{
		"begin":            pep.BeginBatch{Node: "notes", ID: "b&1", Cursor: "c-41"},
		"begin rotation":   pep.BeginBatch{Node: "notes", ID: "b&1", Cursor: "c-41", RotateTo: 4},
		"stage":            pep.Publish{Node: "notes", Items: []pep.Item{item}, Batch: ref},
		"stage retract":    pep.Retract{Node: "notes", IDs: []string{"a"}, Batch: ref},
		"unstage":          pep.Unstage{ID: "b&1", IDs: []string{"a", "b&c"}},
		"commit":           pep.CommitBatch{ID: "b&1", Cursor: "c-41"},
		"commit confirmed": pep.CommitBatch{ID: "b&1", Cursor: "c-41", Changes: 3, Confirm: true},
		"abort":            pep.AbortBatch{ID: "b&1"},
		"retract confirm":  pep.Retract{Node: "notes", IDs: []string{"a", "b"}, Confirm: true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			raw := AppendRequest(nil, request, call)
			golden(t, "request "+what, raw)
			got, err := DecodeRequest(raw, testLimits)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(call, got); diff != "" {
				t.Errorf("read again (-want +got)\n%s", diff)
			}
		})
	}
}

// Both ways to unstage mean the same.
func TestUnstageInPubsub(t *testing.T) {
	t.Parallel()
	const unstage = "<batch xmlns='urn:pepvault:batch:0' id='i' cursor='c'><unstage><item id='a'/></unstage></batch>"
	for _, raw := range []string{iq("set", unstage), iq("set", pubsub(unstage))} {
		got, err := DecodeRequest([]byte(raw), testLimits)
		if diff := cmp.Diff(Call(pep.Unstage{ID: "i", IDs: []string{"a"}}), got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", raw, err, diff)
		}
	}
}

func TestBatchRequestsRefused(t *testing.T) {
	t.Parallel()
	batch := func(local, attrs, content string) string {
		return "<" + local + " xmlns='urn:pepvault:batch:0' " + attrs + ">" + content + "</" + local + ">"
	}
	const publish, retract = "<publish node='n'><item id='a'><x xmlns='u'/></item></publish>", "<retract node='n'><item id='a'/></retract>"
	const unstage = "<unstage><item id='a'/></unstage>"
	for what, tt := range map[string]struct {
		raw  string
		want error
	}{
		"begin as get":              {iq("get", batch("begin", "id='i' node='n' cursor='c'", "")), pep.ErrBadRequest},
		"begin without node":        {iq("set", batch("begin", "id='i' cursor='c'", "")), pep.ErrNodeRequired},
		"begin without id":          {iq("set", batch("begin", "node='n' cursor='c'", "")), pep.ErrBadRequest},
		"begin without cursor":      {iq("set", batch("begin", "id='i' node='n'", "")), pep.ErrBadRequest},
		"begin with content":        {iq("set", batch("begin", "id='i' node='n' cursor='c'", "<x/>")), pep.ErrBadRequest},
		"rotation to nothing":       {iq("set", batch("begin", "id='i' node='n' cursor='c' rotate-to='0'", "")), pep.ErrBadRequest},
		"rotation out of bounds":    {iq("set", batch("begin", "id='i' node='n' cursor='c' rotate-to='2147483648'", "")), pep.ErrBadRequest},
		"commit without cursor":     {iq("set", batch("commit", "id='i'", "")), pep.ErrBadRequest},
		"commit unsure":             {iq("set", batch("commit", "id='i' cursor='c' confirm='maybe'", "")), pep.ErrBadRequest},
		"abort without id":          {iq("set", batch("abort", "", "")), pep.ErrBadRequest},
		"unknown element":           {iq("set", batch("undo", "id='i'", "")), pep.ErrBadRequest},
		"batch alone":               {iq("set", batch("batch", "id='i' cursor='c'", "")), pep.ErrBadRequest},
		"batch alone in pubsub":     {iq("set", pubsub(batch("batch", "id='i' cursor='c'", ""))), pep.ErrBadRequest},
		"unstage as get":            {iq("get", pubsub(batch("batch", "id='i'", unstage))), pep.ErrBadRequest},
		"unstage of nothing":        {iq("set", batch("batch", "id='i'", "<unstage/>")), pep.ErrItemRequired},
		"unstage of one twice":      {iq("set", batch("batch", "id='i'", "<unstage><item id='a'/><item id='a'/></unstage>")), pep.ErrBadRequest},
		"unstage with a publish":    {iq("set", pubsub(publish+batch("batch", "id='i' cursor='c'", unstage))), pep.ErrBadRequest},
		"stage without cursor":      {iq("set", pubsub(publish+batch("batch", "id='i'", ""))), pep.ErrBadRequest},
		"stage without id":          {iq("set", pubsub(publish+batch("batch", "cursor='c'", ""))), pep.ErrBadRequest},
		"stage in two":              {iq("set", pubsub(publish+batch("batch", "id='i' cursor='c'", "")+batch("batch", "id='j' cursor='c'", ""))), pep.ErrBadRequest},
		"stage of a subscription":   {iq("set", pubsub("<subscribe node='n' jid='j'/>"+batch("batch", "id='i' cursor='c'", ""))), pep.ErrBadRequest},
		"confirmed publish":         {iq("set", pubsub(publish+batch("confirm", "", ""))), pep.ErrBadRequest},
		"confirmed twice":           {iq("set", pubsub(retract+batch("confirm", "", "")+batch("confirm", "", ""))), pep.ErrBadRequest},
		"unknown element of ours":   {iq("set", pubsub(retract+batch("undo", "", ""))), pep.ErrUnsupported},
		"batch with something else": {iq("set", pubsub(retract+batch("batch", "id='i' cursor='c'", "<x/>"))), pep.ErrBadRequest},
	} {
		call, err := DecodeRequest([]byte(tt.raw), testLimits)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, %v; want %v", what, call, err, tt.want)
		}
	}
}

func TestBatchResults(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		call   Call
		answer any
	}{
		"begun":     {pep.BeginBatch{}, pep.Begun{ID: "b&1", Expires: time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)}},
		"unstaged":  {pep.Unstage{}, pep.Unstaged{}},
		"committed": {pep.CommitBatch{}, pep.Committed{State: pep.State{Owner: "alice@localhost", Node: "notes", Previous: "c-41", Cursor: "c-44"}}},
		"aborted":   {pep.AbortBatch{}, pep.Aborted{}},
		"staged":    {pep.Publish{}, pep.Published{Node: "notes", IDs: []string{"a"}}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			raw := AppendResult(nil, request, tt.answer)
			golden(t, "result "+what, raw)
			got, err := DecodeReply(raw, tt.call)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.answer, got); diff != "" {
				t.Errorf("read again (-want +got)\n%s", diff)
			}
		})
	}
	for _, content := range []string{"", "<batch xmlns='urn:pepvault:batch:0' id='i' expires='soon'/>", "<batch xmlns='urn:pepvault:batch:0' expires='2026-12-01T10:00:00Z'/>"} {
		if got, err := DecodeReply([]byte(iq("result", content)), pep.BeginBatch{}); !errors.Is(err, ErrBadReply) {
			t.Errorf("%q: %v, %v", content, got, err)
		}
	}
	const half = "<state xmlns='urn:pepvault:sync:0' owner='o' node='n' cursor='c'/>"
	if got, err := DecodeReply([]byte(iq("result", half)), pep.CommitBatch{}); !errors.Is(err, ErrBadReply) {
		t.Errorf("%v, %v", got, err)
	}
}
