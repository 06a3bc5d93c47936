package component_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pepvault/component/hosttest"
	"pepvault/component/loopback"
	"pepvault/vault"
)

const (
	getNotes = `<pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='notes'/></pubsub>`
	ping     = `<ping xmlns='urn:xmpp:ping'/>`
)

func publishing(id string) string {
	return `<pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='notes'><item id='` + id + `'><n xmlns='urn:example'/></item></publish></pubsub>`
}

// faulty is a real store with a fault in it: before, if set, runs at the
// beginning of every Update and View.
type faulty struct {
	vault.Store
	before atomic.Pointer[func() error]
}

func (f *faulty) fault() error {
	if before := f.before.Load(); before != nil {
		return (*before)()
	}
	return nil
}

func (f *faulty) set(before func() error) { f.before.Store(&before) }

func (f *faulty) Update(ctx context.Context, key vault.Key, fn func(vault.Tx) error) error {
	if err := f.fault(); err != nil {
		return err
	}
	return f.Store.Update(ctx, key, fn)
}

func (f *faulty) View(ctx context.Context, fn func(vault.View) error) error {
	if err := f.fault(); err != nil {
		return err
	}
	return f.Store.View(ctx, fn)
}

func (f *faulty) Glance(ctx context.Context, fn func(vault.View) error) error {
	if err := f.fault(); err != nil {
		return err
	}
	return f.Store.Glance(ctx, fn)
}

func serveFaulty(t *testing.T, host *hosttest.Host, change func(*setup)) (*running, *faulty) {
	t.Helper()
	f := &faulty{Store: openStore(t, t.TempDir()+"/vault.db")}
	return serve(t, host, func(s *setup) {
		s.store = f
		if change != nil {
			change(s)
		}
	}), f
}

func wantError(t *testing.T, got *loopback.StanzaError, kind, condition string) {
	t.Helper()
	if got.Type != kind || got.Condition != condition {
		t.Errorf("answered %s/%s, want %s/%s", got.Type, got.Condition, kind, condition)
	}
}

func TestStorageFailureIsAnsweredAndOver(t *testing.T) {
	t.Parallel()
	host := hosttest.New(t)
	_, store := serveFaulty(t, host, nil)
	d := host.Device("alice/phone")
	d.Asks("set", publishing("a"))
	store.set(func() error { return fmt.Errorf("commit: %w", vault.ErrStorage) })
	wantError(t, d.AsksInVain("set", publishing("b")), "wait", "internal-server-error")
	wantError(t, d.AsksInVain("get", getNotes), "wait", "internal-server-error")
	store.set(func() error { return nil })
	if answer := d.Asks("get", getNotes); strings.Contains(string(answer.Raw), "id='b'") {
		t.Errorf("what was refused is there: %s", answer.Raw)
	}
}

func TestPanicIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	host := hosttest.New(t)
	_, store := serveFaulty(t, host, nil)
	same := host.SameConnection()
	d := host.Device("alice/phone")
	store.set(func() error { panic("made by the test") })
	wantError(t, d.AsksInVain("set", publishing("a")), "wait", "internal-server-error")
	store.set(func() error { return nil })
	d.Asks("set", publishing("a"))
	d.ReceivesNothing()
	same()
}

// A request that finds no place is refused, and every one is answered once.
func TestTooManyRequestsAreRefused(t *testing.T) {
	t.Parallel()
	host := hosttest.New(t)
	_, store := serveFaulty(t, host, func(s *setup) { s.pending = 8 })
	d := host.Device("alice/phone")
	release := make(chan struct{})
	store.set(func() error { <-release; return nil })
	const n = 50
	for i := range n {
		d.Sends(fmt.Sprintf(`<iq type='get' id='%d' to='%s'>%s</iq>`, i, host.Component(), strings.ReplaceAll(getNotes, "notes", "absent")))
	}
	answered := map[string]string{}
	refused := 0
	for len(answered) < n {
		if len(answered) == n-8 {
			close(release)
		}
		s, err := d.Recv(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := answered[s.ID]; twice {
			t.Fatalf("%s was answered twice", s.ID)
		}
		answered[s.ID] = s.Err().Condition
		if s.Err().Condition == "resource-constraint" {
			refused++
			if !strings.Contains(string(s.Raw), "after='2'") {
				t.Errorf("a refusal without a hint: %s", s.Raw)
			}
		}
	}
	if refused != n-8 {
		t.Errorf("%d of %d were refused, want %d", refused, n, n-8)
	}
	d.ReceivesNothing()
}

// One account that waits does not hold up another.
func TestAccountsAreServedInParallel(t *testing.T) {
	t.Parallel()
	host := hosttest.New(t)
	_, store := serveFaulty(t, host, nil)
	alice, bob := host.Device("alice/phone"), host.Device("bob/phone")
	reached, release := make(chan struct{}), make(chan struct{})
	var first sync.Once
	store.set(func() error {
		stuck := false
		first.Do(func() { stuck = true })
		if stuck {
			close(reached)
			<-release
		}
		return nil
	})
	alice.Sends(`<iq type='get' id='a' to='` + host.Component() + `'>` + getNotes + `</iq>`)
	<-reached
	bob.Asks("set", publishing("b"))
	close(release)
	alice.Receives(`<iq type='error' id='a' from='*'>*</iq>`)
}

func TestStopAnswersWhatWasTaken(t *testing.T) {
	t.Parallel()
	host := hosttest.New(t)
	r, store := serveFaulty(t, host, nil)
	d := host.Device("alice/phone")
	reached, release := make(chan struct{}), make(chan struct{})
	store.set(func() error { close(reached); <-release; return nil })
	d.Sends(`<iq type='set' id='taken' to='` + host.Component() + `'>` + publishing("a") + `</iq>`)
	<-reached
	stopped := make(chan error, 1)
	go func() { stopped <- r.front.Stop(context.WithoutCancel(t.Context())) }()
	for {
		// Sooner or later the service refuses; until then a ping is answered.
		s, err := d.IQ(t.Context(), "get", host.Component(), ping)
		if err != nil {
			t.Fatal(err)
		}
		if s.Type == "error" {
			wantError(t, s.Err(), "wait", "resource-constraint")
			break
		}
	}
	close(release)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if err := r.writer.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	d.Receives(`<iq type='result' id='taken' from='*'>*</iq>`)
}

// After a handshake every known resource is asked: one that answers is told
// where its vaults stand, one that is gone is forgotten (PROTOCOL §6).
func TestResourcesAreVerifiedAfterAHandshake(t *testing.T) {
	t.Parallel()
	host := hosttest.New(t)
	serve(t, host, nil)
	phone, tablet := host.Device("alice/phone"), host.Device("alice/tablet")
	phone.Asks("set", publishing("a"))
	subscribes(phone, "alice@localhost")
	for _, d := range []*hosttest.Device{phone, tablet} {
		d.Sends(`<presence to='` + host.Component() + `'/>`)
		d.Receives(`<message type='headline' from='*' id='*'><state xmlns='urn:pepvault:sync:0' owner='*' node='notes' cursor='$now'/></message>`)
	}
	number := host.AwaitAttached()
	host.Down()
	host.Drop()
	host.AwaitDetached()
	tablet.Vanish() // without a word, while the service is away
	host.Up()
	host.AwaitReattached(number)

	phone.Receives(`<presence from='` + host.Component() + `'/>`)
	query := phone.Receives(`<iq type='get' id='*' from='*'><query xmlns='http://jabber.org/protocol/disco#info'/></iq>`)
	if err := phone.Reply(query, `<query xmlns='http://jabber.org/protocol/disco#info'/>`); err != nil {
		t.Fatal(err)
	}
	phone.Receives(`<message type='headline' from='*' id='*'><state xmlns='urn:pepvault:sync:0' owner='*' node='notes' cursor='$now'/></message>`)

	// Who is known hears of the next change, and only that one.
	phone.Sends(`<iq type='set' id='p' to='` + host.Component() + `'>` + publishing("b") + `</iq>`)
	phone.ReceivesInAnyOrder(`<iq type='result' id='p' from='*'>*</iq>`,
		`<message type='headline' from='*' id='*'><event xmlns='http://jabber.org/protocol/pubsub#event'>*</event><state xmlns='urn:pepvault:sync:0' owner='*' node='notes' previous='$now' cursor='*'>*</state></message>`)
}

func TestSilentResourceIsForgotten(t *testing.T) {
	t.Parallel()
	host := hosttest.New(t)
	serve(t, host, func(s *setup) { s.verify = 50 * time.Millisecond })
	phone, other := host.Device("alice/phone"), host.Device("alice/other")
	other.Asks("set", publishing("a"))
	phone.Sends(`<presence to='` + host.Component() + `'/>`)
	subscribes(phone, "alice@localhost/phone")
	number := host.AwaitAttached()
	host.Drop()
	host.AwaitReattached(number)
	phone.Receives(`<presence from='` + host.Component() + `'/>`)
	phone.Receives(`<iq type='get' id='*' from='*'><query xmlns='http://jabber.org/protocol/disco#info'/></iq>`)
	for {
		// Until the silence has lasted long enough, changes still come.
		other.Asks("set", publishing("a"))
		other.Asks("get", ping) // whose answer comes behind the event
		if phone.Waiting() == 0 {
			break
		}
		phone.Messages()
	}
}

// Known resources are bounded: the one that was heard of longest ago is asked,
// and told that it is forgotten if it is still there.
func TestCrowdedAccount(t *testing.T) {
	t.Parallel()
	host := hosttest.New(t)
	serve(t, host, func(s *setup) { s.limits.Resources = 2 })
	devices := make([]*hosttest.Device, 3)
	for i := range devices {
		devices[i] = host.Device(fmt.Sprintf("alice/%d", i))
		devices[i].Sends(`<presence to='` + host.Component() + `'/>`)
	}
	query := devices[0].Receives(`<iq type='get' id='*' from='*'><query xmlns='http://jabber.org/protocol/disco#info'/></iq>`)
	if err := devices[0].Reply(query, `<query xmlns='http://jabber.org/protocol/disco#info'/>`); err != nil {
		t.Fatal(err)
	}
	devices[0].Receives(`<presence type='unavailable' from='` + host.Component() + `'/>`)
	devices[1].ReceivesNothing()
	devices[2].ReceivesNothing()
}

func TestLargeAnswersAreWholeOrRefused(t *testing.T) {
	t.Parallel()
	host := hosttest.New(t)
	serve(t, host, func(s *setup) {
		s.limits.Records, s.limits.RecordBytes, s.limits.AccountBytes = 64, 20_000, 10<<20
	})
	d := host.Device("alice/phone")
	big := strings.Repeat("x", 15_000)
	for i := range 20 {
		d.Asks("set", fmt.Sprintf(`<pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='notes'><item id='%d'><n xmlns='urn:example'>%s</n></item></publish></pubsub>`, i, big))
	}
	answer := d.Asks("get", getNotes)
	if got := strings.Count(string(answer.Raw), big); got != 20 {
		t.Errorf("%d records came, want 20", got)
	}
	// An id that makes the answer larger than the host takes.
	long := strings.Repeat("&apos;", 10_000)
	d.Sends(`<iq type='get' id='` + long + `' to='` + host.Component() + `'>` + getNotes + `</iq>`)
	d.Receives(`<iq type='*' id='*' from='*'>*</iq>`)
	d.Asks("get", ping)
}

// Where nobody waits for an answer, a fault of ours ends nothing either: the
// states that a device is told when it arrives and after a handshake.
func TestPanicBesideRequests(t *testing.T) {
	t.Parallel()
	host := hosttest.New(t)
	_, store := serveFaulty(t, host, nil)
	d := host.Device("alice/phone")
	d.Asks("set", publishing("a"))
	subscribes(d, "alice@localhost")
	store.set(func() error { panic("made by the test") })
	d.Sends(`<presence to='` + host.Component() + `'/>`)
	d.ReceivesNothing()
	number := host.AwaitAttached()
	host.Drop()
	host.AwaitReattached(number)
	same := host.SameConnection()
	d.Receives(`<presence from='` + host.Component() + `'/>`)
	query := d.Receives(`<iq type='get' id='*' from='*'><query xmlns='http://jabber.org/protocol/disco#info'/></iq>`)
	if err := d.Reply(query, ""); err != nil {
		t.Fatal(err)
	}
	d.ReceivesNothing()
	store.set(func() error { return nil })
	d.Asks("get", getNotes)
	same()
}
