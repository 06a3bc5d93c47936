package main_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testPayloads holds that what a device publishes means the same to the
// device that asks for it, to the one that is told of it, and after a restart
// of the service.
func (h *host) testPayloads(t *testing.T) {
	s := h.serve(t, payloadJID, "")
	laptop := mustConnectRaw(t, h.server, alice, "laptop", payloadJID)
	phone := mustConnectRaw(t, h.server, alice, "phone", payloadJID)
	phone.listens("payloads")
	phone.listens("names")

	want := make(map[string]string) // infosets by record id
	for _, c := range payloadCases {
		altered, isAltered := c.but[h.kind]
		switch {
		case isAltered && altered == "":
			c.refused = unsurvivable
		case isAltered:
			c.arrives = altered
		}
		if c.refused == "" {
			want[c.name] = c.arriving(t)
		}
		c.checkPublish(t, laptop, phone, want[c.name])
	}
	wantNames := checkOddNames(t, laptop, phone)
	for run := range 2 {
		if run > 0 {
			s.terminate()
			s.start()
		}
		for _, c := range payloadCases {
			checkRead(t, laptop, "payloads", c.name, want, c.prefixes)
		}
		for _, id := range oddIDs {
			checkRead(t, laptop, "names", id, wantNames, nil)
			checkRead(t, laptop, id, id, wantNames, nil)
		}
	}
}

// listens has the device told of each change of the node, which a first record
// makes.
func (d *rawDevice) listens(node string) {
	d.t.Helper()
	heard, ended := d.says(d.set("first", publish(escaped(node), "first", record(1, "first"))) +
		"<presence to='" + d.service + "'/>" +
		d.set("subscribe", "<pubsub xmlns='"+nsPubsub+"'><subscribe node='"+escaped(node)+"' jid='"+escaped(d.JID())+"'/></pubsub>"))
	if ended != nil {
		d.t.Fatal(ended)
	}
	for _, one := range heard {
		if one.Name == "iq" && one.Type != "result" {
			d.t.Fatalf("%s: %s", d.JID(), one.Raw)
		}
	}
}

func (d *rawDevice) set(id, payload string) string {
	return "<iq type='set' id='" + id + "' to='" + d.service + "'>" + payload + "</iq>"
}

func escaped(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&apos;", `"`, "&quot;").Replace(text)
}

// stanza is the publish of the case.
func (c payloadCase) stanza(payload string) string {
	return "<iq type='set' id='publish' to='" + payloadJID + "'" + c.iq + "><pubsub xmlns='" + nsPubsub + "'" + c.pubsub + "><publish node='payloads'" +
		c.publish + "><item id='" + c.name + "'" + c.item + ">" + payload + "</item></publish></pubsub></iq>"
}

// arriving is the infoset that devices have to get.
func (c payloadCase) arriving(t *testing.T) string {
	t.Helper()
	payload := c.payload
	if c.arrives != "" {
		payload = c.arrives
	}
	return payloads(t, []byte(c.stanza(payload)), c.prefixes...)[c.name]
}

// checkPublish publishes and holds what the phone is told.
func (c payloadCase) checkPublish(t *testing.T, laptop, phone *rawDevice, want string) {
	t.Helper()
	heard, ended := laptop.says(c.stanza(c.payload))
	if ended != nil || len(heard) != 1 {
		t.Fatalf("%s: answers %v, stream %v", c.name, heard, ended)
	}
	if c.refused != "" {
		if got := fault(outcome(t, heard[0])); got != c.refused {
			t.Errorf("%s: %s, want %s", c.name, got, c.refused)
		}
		return
	}
	if got := outcome(t, heard[0]); got != "result" {
		t.Errorf("%s: %s", c.name, got)
		return
	}
	if diff := difference(want, payloads(t, phone.hears().Raw, c.prefixes...)[c.name]); diff != "" {
		t.Errorf("%s, as an event: %s", c.name, diff)
	}
}

// checkRead asks for a record by its id. One that is not wanted is not there.
func checkRead(t *testing.T, d *rawDevice, node, id string, want map[string]string, prefixes []string) {
	t.Helper()
	// A big answer may come behind that to a later request.
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	answer, err := d.IQ(ctx, "get", d.service, []byte(items(escaped(node), "", "<item id='"+escaped(id)+"'/>")))
	if err != nil || answer.Type != "result" {
		t.Fatalf("%.50q of %.50q: %s, %v", id, node, answer.Raw, err)
	}
	wantAll := make(map[string]string)
	if text, found := want[id]; found {
		wantAll[id] = text
	}
	got := payloads(t, answer.Raw, prefixes...)
	if diff := difference(wantAll[id], got[id]); diff != "" || len(got) != len(wantAll) {
		t.Errorf("%.50q of %.50q: %d records: %s", id, node, len(got), diff)
	}
}

// checkOddNames publishes records with odd ids in one node, and in nodes with
// odd names. It returns their infosets.
func checkOddNames(t *testing.T, laptop, phone *rawDevice) map[string]string {
	t.Helper()
	want := make(map[string]string)
	for i, id := range oddIDs {
		name := escaped(id)
		payload := fmt.Sprintf("<n xmlns='urn:example' a='%s'>%d %s</n>", name, i, name)
		for _, node := range []string{"names", name} {
			stanza := laptop.set("publish", publish(node, name, payload))
			want[id] = payloads(t, []byte(stanza))[id]
			heard, ended := laptop.says(stanza)
			if ended != nil || len(heard) != 1 || heard[0].Type != "result" {
				t.Fatalf("%.50q in %.50q: answers %v, stream %v", id, node, heard, ended)
			}
		}
		if diff := cmp.Diff(map[string]string{id: want[id]}, payloads(t, phone.hears().Raw)); diff != "" {
			t.Errorf("event (-want +got):\n%s", diff)
		}
	}
	return want
}

// difference tells where two texts part, "" if nowhere.
func difference(want, got string) string {
	if want == got {
		return ""
	}
	i := 0
	for i < len(want) && i < len(got) && want[i] == got[i] {
		i++
	}
	excerpt := func(s string) string { return s[max(0, i-100):min(len(s), i+100)] }
	return fmt.Sprintf("%d bytes, want %d; around byte %d:\n got %q\nwant %q", len(got), len(want), i, excerpt(got), excerpt(want))
}

// sealed is a native record with that ciphertext.
func sealed(ciphertext []byte) string {
	return "<record xmlns='" + nsRecord + "' key-version='1'>" + base64.StdEncoding.EncodeToString(ciphertext) + "</record>"
}

func everyByte() []byte {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return all
}

func manyAttributes(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, " a%d='%d'", i, i)
	}
	return b.String()
}
