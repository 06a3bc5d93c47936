package live_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pepvault/component"
	"pepvault/component/lane"
	"pepvault/component/link"
	"pepvault/component/loopback"
	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/store/storetest"
	"pepvault/vault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// never is longer than any test: no stanza has to hurry, on a busy machine too.
const never = time.Hour

// serve runs a service that will attach to the host.
func serve(f *testing.F, host *loopback.Host, log *slog.Logger) {
	f.Helper()
	limits := vault.Limits{
		Records: 4, RecordBytes: 2000, Vaults: 4, AccountBytes: 1 << 20, TombstonesFactor: 4,
		Subscriptions: 4, Resources: 3, ForeignPayloads: true,
	}
	writer := lane.New(lane.Options{Logger: log, WriteTimeout: never})
	var line *link.Link
	front := component.New(component.Options{
		JID: host.Component(), Domains: []string{host.Domain()}, Name: "Vaults", Version: "1.2.3",
		// Some answers are large and leave on the other lane.
		Engine: pep.New(pep.Options{Store: &memory{model: storetest.NewModel(1)}, Limits: limits, AnswerBytes: 100_000, InlineBytes: 1000}),
		Writer: writer, Wire: wire.Limits{RecordBytes: limits.RecordBytes, Foreign: true},
		MaxStanza: 150_000, MaxPending: 64, Rate: component.Rate{PerSecond: 1_000_000, Burst: 1_000_000}, VerifyTimeout: never, Logger: log,
		Request: func(ctx context.Context, kind, to string, payload []byte, within time.Duration) (link.Stanza, error) {
			return line.Request(ctx, kind, to, payload, within)
		},
		Expect: func(to string, within time.Duration, done func(link.Stanza, error)) (string, func()) {
			return line.Expect(to, within, done)
		},
		Ping:      func(within time.Duration, done func(error)) []byte { return line.Ping(within, done) },
		Downloads: component.Downloads{OfAccount: 2, Overall: 8, AckTimeout: never},
	})
	var err error
	line, err = link.New(link.Options{
		Server: host.Addr(), JID: host.Component(), Secret: link.Secret(host.Secret()),
		Serve: writer.Serve, Send: writer.Small, Logger: log,
		KeepAlive: link.KeepAlive{Idle: never, Answer: never}, ConnectTimeout: never,
	}, front)
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = line.Run(ctx) // the arena sees a lost connection
	}()
	f.Cleanup(func() {
		cancel()
		<-ended
		if err := front.Stop(context.WithoutCancel(f.Context())); err != nil {
			f.Error(err)
		}
	})
}

// tape keeps what is written to it.
type tape struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *tape) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.Write(p)
}

// take empties the tape.
func (t *tape) take() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.buf.Reset()
	return t.buf.String()
}

const (
	ping     = `<ping xmlns='urn:xmpp:ping'/>`
	getNotes = `<pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='notes'/></pubsub>`
)

func publication(node, id, payload string) string {
	return `<pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node="` + node + `"><item id="` + id + `">` + payload + `</item></publish></pubsub>`
}

func publishing(id string) string { return publication("notes", id, foreign("x")) }

func native(ciphertext string) string {
	return `<record xmlns='urn:pepvault:record:0' key-version='1'>` + base64.StdEncoding.EncodeToString([]byte(ciphertext)) + `</record>`
}

func foreign(text string) string { return `<n xmlns='urn:example'>` + text + `</n>` }

var fuzzSeeds = []string{
	ping, getNotes, strings.ReplaceAll(getNotes, "notes", "absent"), publishing("a"), publishing("e"), publication("more", "a", foreign("x")),
	publication("notes", "a", native("x")), publication("notes", "a", foreign("x<![CDATA[y]]>&#65;")),
	`<pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='notes'><item><n/></item><item id='b'><p:n xmlns:p='urn:p' p:a='1'/></item></publish><state xmlns='urn:pepvault:sync:0'/></pubsub>`,
	`<pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='notes' max_items='2'/></pubsub>`,
	`<pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='notes'><item id='a'/><item id='z'/></items></pubsub>`,
	`<pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='notes'/><set xmlns='http://jabber.org/protocol/rsm'><max>1</max><after>x</after></set></pubsub>`,
	`<pubsub xmlns='http://jabber.org/protocol/pubsub'><retract node='notes' notify='true'><item id='a'/></retract></pubsub>`,
	`<pubsub xmlns='http://jabber.org/protocol/pubsub'><subscribe node='notes' jid='alice@localhost'/></pubsub>`,
	`<pubsub xmlns='http://jabber.org/protocol/pubsub'><subscribe node='notes' jid='alice@localhost/phone'/></pubsub>`,
	`<pubsub xmlns='http://jabber.org/protocol/pubsub'><unsubscribe node='notes' jid='alice@localhost'/></pubsub>`,
	`<pubsub xmlns='http://jabber.org/protocol/pubsub#owner'><delete node='notes'/></pubsub>`,
	`<pubsub xmlns='http://jabber.org/protocol/pubsub#owner'><configure node='notes'/></pubsub>`,
	`<pubsub xmlns='http://jabber.org/protocol/pubsub'><create node='x'/><configure/></pubsub>`,
	`<query xmlns='http://jabber.org/protocol/disco#info'/>`, `<query xmlns='http://jabber.org/protocol/disco#info' node='notes'/>`,
	`<query xmlns='http://jabber.org/protocol/disco#items'/>`, `<query xmlns='http://jabber.org/protocol/disco#items' node='notes'/>`,
	`<query xmlns='jabber:iq:version'/>`, `<sync xmlns='urn:pepvault:sync:0' node='notes'/>`, `<begin xmlns='urn:pepvault:batch:0'/>`,

	// What hosts forward since users want it to.
	`<stream:features/>`, `<x:error xmlns:x='http://etherx.jabber.org/streams'><x:stream/></x:error>`, `<x></stream:stream>`,
	publication("notes", "a", `<stream:stream><stream:error/></stream:stream>`),
	publication("notes", "a", `<n xmlns='urn:example'>&#xD800;&nbsp;&#0;]]></n>`), publication("notes", "a", `<n xmlns='urn:example' a='&#9;'>&#13;</n>`),
	publication("notes", "a", `<!-- a --><?x y?><![CDATA[<n/>]]>`), publication("notes", "a", `<a><b></a></b>`), publication("notes", "a", `<p:n/>`),
	publication("notes", "a", `<n xmlns:xmlns='u' xmlns:p='u' xmlns:q='u' p:a='1' q:a='2' a='1' a='2'/>`), publication("notes", "a", "\xc3\x28\x01"),
	publication("notes", "a", `<record xmlns='urn:pepvault:record:0' key-version='-1'>Zm ly\n</record>`), publication("]]>", "%s'--", ``), "text", "",
	ping + ping, ping + "text", `<!DOCTYPE x [<!ENTITY a "b">]>`, `<iq type='get' id='x'>`, `</iq><iq type='set' id='y' from='bob@localhost/phone' to='vault.localhost'>`,
	strings.Repeat("<x>", 150) + strings.Repeat("</x>", 150),
}
