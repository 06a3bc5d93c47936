package main_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"pepvault/vault/device/c2s"
)

// testHostile has an ordinary device say what hosts let through, and more. The
// service must stay on its connection and serve others, also where the host
// ends the device's stream.
func (h *host) testHostile(t *testing.T) {
	s := h.serve(t, hostileJID, "[limits]\nmax_vaults = 1000\n")
	w := &witness{mustConnectRaw(t, h.server, bob, "desk", hostileJID), s}
	w.check("nothing yet")
	odd := mustConnectRaw(t, h.server, alice, "odd", hostileJID)
	for _, c := range hostileCases {
		if c.at != "" && c.at != h.kind {
			continue
		}
		want := c.want
		if other, found := c.but[h.kind]; found {
			want = other
		}
		heard, ended := odd.says(c.raw)
		if got := outcomes(t, heard, ended); got != want && (got != "" || !c.orNothing) {
			t.Errorf("%s: %q, want %q", c.name, got, want)
		}
		if ended != nil {
			odd = mustConnectRaw(t, h.server, alice, "odd", hostileJID)
		}
		w.check(c.name)
	}
	h.checkSpellings(t)
	h.checkResources(t)
	h.checkLogins(t)
	w.check("odd names of devices")
	h.checkForgery(t, s)
}

// checkSpellings holds that all spellings of an account that the host lets in
// are one account with one vault (case C41).
func (h *host) checkSpellings(t *testing.T) {
	t.Helper()
	const composed, decomposed = "caf\u00e9@localhost", "cafe\u0301@localhost"
	for account, spellings := range map[string][]string{
		alice:    {"alice@localhost", "ALICE@localhost", "aLiCe@localhost"},
		composed: {composed, decomposed, "CAF\u00c9@localhost", "CAFE\u0301@localhost", "\uff43afe\u0301@localhost"},
	} {
		var devices []*rawDevice
		for i, spelling := range spellings {
			d := mustConnectRaw(t, h.server, spelling, fmt.Sprintf("Device %d", i), hostileJID)
			d.knowsItself()
			d.must("set", publish("spellings", strconv.Itoa(i), record(1, spelling)))
			devices = append(devices, d)
		}
		for _, d := range devices {
			read := d.must("get", items("spellings", "", "")).child(nsPubsub, "pubsub").child(nsPubsub, "items").Children
			for i, one := range read {
				if one.attr("id") != strconv.Itoa(i) || one.attr("publisher") != account {
					t.Errorf("%s reads %s of %s", d.JID(), one.attr("id"), one.attr("publisher"))
				}
			}
			if len(read) != len(spellings) {
				t.Errorf("%s reads %d records, want %d", d.JID(), len(read), len(spellings))
			}
		}
	}
}

// knowsItself holds that the host's answer about the account is taken for
// one, in whose spelling it may come.
func (d *rawDevice) knowsItself() {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	for _, to := range []string{"", d.account} {
		answer, err := d.IQ(ctx, "get", to, []byte("<query xmlns='"+nsDisco+"info'/>"))
		if err != nil || answer.Type != "result" {
			d.t.Errorf("%s asks %q: %s, %v", d.JID(), to, answer.Raw, err)
		}
	}
}

// checkResources holds that a device is told of changes whatever its resource
// is called, in the spelling that its host makes of that.
func (h *host) checkResources(t *testing.T) {
	t.Helper()
	const telephone = "\U0001F4F1\u200d\u2665" // ejabberd takes no character that is younger than its stringprep
	for _, resource := range []string{
		telephone, "two  spaces", "a/b//c", "@", "\u2665", `'"<>&`, "Tablet", "tablet", "$", `\40`, "%s%n", "]]>",
		"\u212b\uff21\u00a0\u00ad", "e\u0301", strings.Repeat("r", 1023), strings.Repeat("\u20ac", 341),
	} {
		d, err := connectRaw(t, h.server, alice, resource, hostileJID)
		if (err != nil) != (resource == telephone && h.kind == ejabberd) {
			t.Errorf("resource %.50q: %v", resource, err)
		}
		if err != nil {
			continue
		}
		d.listens("resources")
		d.must("set", publish("resources", "a", record(1, resource)))
		heard, _ := d.says("")
		told := 0
		for _, s := range heard {
			if s.Name == "message" && s.To == d.JID() {
				told++
			}
		}
		if told == 0 {
			t.Errorf("%.50q is told nothing: %v", d.JID(), heard)
		}
		d.Cut()
	}
}

// checkLogins holds that a subscription to the service's presence is declined
// each time; hosts ask at every login until somebody answers.
func (h *host) checkLogins(t *testing.T) {
	t.Helper()
	for range 5 {
		d := mustConnectRaw(t, h.server, alice, "login", hostileJID)
		heard, ended := d.says("<iq type='get' id='roster'><query xmlns='jabber:iq:roster'/></iq><presence/>" +
			"<presence type='subscribe' to='" + hostileJID + "'/>")
		if got := outcomes(t, heard, ended); !strings.Contains(got, "presence unsubscribed") {
			t.Errorf("a subscription is answered %q", got)
		}
		d.Cut()
	}
}

// outcomes are all that a device heard, in short.
func outcomes(t *testing.T, heard []c2s.Stanza, ended error) string {
	t.Helper()
	var all []string
	for _, s := range heard {
		all = append(all, outcome(t, s))
	}
	if ended != nil {
		all = append(all, closed)
	}
	return strings.Join(all, ", ")
}

// witness is another account, which is to feel nothing.
type witness struct {
	*rawDevice
	service *service
}

// check holds that the service has never left its connection and serves the
// witness.
func (w *witness) check(after string) {
	w.t.Helper()
	payload := "<n xmlns='urn:example'>" + escaped(after) + "</n>"
	heard, ended := w.says(w.set("write", publish("witness", "a", payload)) +
		"<iq type='get' id='read' to='" + hostileJID + "'>" + items("witness", "", "") + "</iq>")
	if got := outcomes(w.t, heard, ended); got != "result, result" {
		w.t.Fatalf("%s: another account gets %q", after, got)
	}
	want := payloads(w.t, []byte(w.set("write", publish("witness", "a", payload))))["a"]
	if got := payloads(w.t, heard[1].Raw)["a"]; got != want {
		w.t.Errorf("%s: another account reads %q, want %q", after, got, want)
	}
	if n := w.service.log.count("msg=attached"); n != 1 {
		w.t.Fatalf("%s: the service has attached %d times", after, n)
	}
	if n := w.service.log.count("level=ERROR"); n > 0 {
		w.t.Fatalf("%s: the service reports %d errors", after, n)
	}
}

// checkForgery holds that nobody but the device itself answers the service's
// question whether it is still there. The service is started anew for that.
func (h *host) checkForgery(t *testing.T, s *service) {
	t.Helper()
	phone := mustConnectRaw(t, h.server, alice, "asked", hostileJID)
	mallory := mustConnectRaw(t, h.server, "mallory@localhost", "pc", hostileJID)
	phone.listens("forgery")
	phone.says("")
	s.terminate()
	s.start()
	if asked := phone.hears(); asked.Name != "presence" || asked.Type != "" {
		t.Errorf("the first word of the service is %s", asked.Raw)
	}
	question := phone.hears()
	if question.Name != "iq" || question.Type != "get" {
		t.Fatalf("the service asks %s", question.Raw)
	}
	answer := func(typ, id string) string {
		return "<iq type='" + typ + "' id='" + escaped(id) + "' to='" + hostileJID + "'/>"
	}
	for _, d := range []*rawDevice{mallory, phone} {
		id := question.ID
		if d == phone {
			id += "x"
		}
		heard, ended := d.says(answer("error", id) + answer("result", id))
		if got := outcomes(t, heard, ended); got != "" {
			t.Errorf("%s forges an answer and hears %q", d.JID(), got)
		}
	}
	if heard, _ := phone.says(""); len(heard) > 0 {
		t.Errorf("a forged answer has counted: %s", heard[0].Raw)
	}
	if err := phone.Send([]byte(answer("result", question.ID))); err != nil {
		t.Fatal(err)
	}
	if state := phone.hears(); parse(t, state.Raw).child(nsSync, "state").attr("node") != "forgery" {
		t.Errorf("after its answer the device hears %s", state.Raw)
	}
}
