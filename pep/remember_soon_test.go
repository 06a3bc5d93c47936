package pep_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pepvault/pep"
	"pepvault/vault"
)

// counting is a store that counts the transactions that keep resources.
type counting struct {
	vault.Store
	mu    sync.Mutex
	slow  time.Duration // what each transaction takes
	begun int
	kept  map[string]vault.Resource // by name
}

func (c *counting) Update(_ context.Context, _ vault.Key, fn func(vault.Tx) error) error {
	time.Sleep(c.slow) // not under the mutex: in a bubble time would stand still
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun++
	return fn(keeping{counting: c})
}

type keeping struct {
	vault.Tx
	*counting
}

func (k keeping) KeepResource(r vault.Resource) error {
	k.kept[r.Name] = r
	return nil
}

func (k keeping) DropResource(_ vault.Account, name string) error {
	delete(k.kept, name)
	return nil
}

func (c *counting) transactions() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun
}

func (c *counting) names() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.kept)
}

// saving runs an engine that remembers on a counting store, in a bubble.
func saving(t *testing.T, slow time.Duration, test func(*counting, *pep.Engine)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &counting{slow: slow, kept: map[string]vault.Resource{}}
		bounds := limits
		bounds.Resources = 1000
		e := pep.New(pep.Options{Store: c, Limits: bounds})
		ctx, cancel := context.WithCancel(t.Context())
		var keeping sync.WaitGroup
		keeping.Go(func() { e.KeepRemembering(ctx, func(err error) { t.Error(err) }) })
		test(c, e)
		cancel()
		keeping.Wait()
	})
}

func come(e *pep.Engine, n int) {
	e.Arrive(presence("alice@localhost/"+strconv.Itoa(n), alice, noCaps))
}

// What comes is stored a quarter of a second later at most, so that a kill
// costs nobody more than that.
func TestResourcesAreStoredSoon(t *testing.T) {
	t.Parallel()
	saving(t, 0, func(c *counting, e *pep.Engine) {
		time.Sleep(time.Hour)
		for n := range 10 {
			come(e, n)
			time.Sleep(250 * time.Millisecond)
			synctest.Wait()
			equal(t, "stored", c.names(), n+1)
		}
		equal(t, "transactions", c.transactions(), 10)
		for n := range 10 {
			come(e, n) // they are known: nothing worth a write
			time.Sleep(time.Second)
		}
		equal(t, "transactions for signs of life", c.transactions(), 10)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		equal(t, "transactions for signs of life, later", c.transactions(), 11)
		equal(t, "stored sign of life", c.kept["9"].Seen, time.Now().UTC().Add(-2*time.Minute-time.Second).Truncate(time.Millisecond))
		e.Leave(alice, "3")
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		equal(t, "stored after one left", c.names(), 9)
	})
}

// Those of a storm go together, in transactions that are short.
func TestStormIsStoredTogether(t *testing.T) {
	t.Parallel()
	saving(t, 0, func(c *counting, e *pep.Engine) {
		for n := range 640 {
			come(e, n)
		}
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		equal(t, "stored", c.names(), 640)
		equal(t, "transactions", c.transactions(), 10)
	})
}

// A store that is slow is left nine tenths of its time for the devices.
func TestSlowStoreIsSpared(t *testing.T) {
	t.Parallel()
	saving(t, 100*time.Millisecond, func(c *counting, e *pep.Engine) {
		for n := range 600 {
			come(e, n)
			time.Sleep(20 * time.Millisecond)
		}
		if most := int(12*time.Second/time.Second) + 2; c.transactions() > most {
			t.Errorf("%d transactions of 0.1 s in 12 s", c.transactions())
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		equal(t, "stored", c.names(), 600)
	})
}

// A resource has its verified capabilities again after a restart; what is not
// kept of them has to be learned from the resource.
func TestCapabilitiesSurviveARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *pep.Options) { o.Limits.Capabilities = 2 })
	restart := func() {
		t.Helper()
		w.remembering(func(err error) { t.Error(err) })()
		bounds := limits
		bounds.Capabilities = 2
		w.Engine = pep.New(pep.Options{Store: w.store, Limits: bounds, AnswerBytes: 100_000, InlineBytes: 10_000})
		if err := w.Remember(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.must(laptop, publish("a"))
	w.announce(laptop, alice, "sha-1:old", notes())
	w.announce(phone, alice, hashOne, pep.Announced{Nodes: []string{"notes"}, Sync: true})
	w.announce(carols, carol, hashTwo, pep.Announced{})
	w.must(phone, pep.Subscribe{Node: "notes", JID: phone})
	restart()
	equal(t, "number of capabilities", len(w.capabilities()), 2)
	out := w.must(laptop, publish("a", "b"))
	equal(t, "told", told(out), []string{phone})
	equal(t, "follows states", out.Notices[0].StateOnly, true)
	equal(t, "asked when it comes again", w.Arrive(presence(phone, alice, hashOne)), pep.Arrival{})
	equal(t, "nothing is new to it", w.greet(phone), []string{})

	equal(t, "learned of the laptop", w.Learn(device(laptop), pep.CapsHash{}, notes(), false), pep.Learned{Greet: []pep.Sender{device(laptop)}})
	equal(t, "told then", told(w.must(laptop, publish("a"))), []string{laptop, phone})
	// An answer that may be older than what it announced counts for nothing.
	w.Learn(device(phone), pep.CapsHash{}, pep.Announced{}, false)
	equal(t, "told in the end", told(w.must(laptop, publish("a"))), []string{laptop, phone})
	w.must(phone, pep.Unsubscribe{Node: "notes", JID: phone})
	equal(t, "told by capabilities alone", told(w.must(laptop, publish("a"))), []string{laptop, phone})
	restart()
	// Nothing was announced since the start: what it answers is what it can do.
	w.Learn(device(phone), pep.CapsHash{}, pep.Announced{}, false)
	equal(t, "told after its answer", told(w.must(laptop, publish("a"))), []string{})
}

// A subscription that was acknowledged is stored with the acknowledgement, not
// a moment later.
func TestAcknowledgedSubscriptionsAreStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	w.here(phone)
	w.must(phone, pep.Subscribe{Node: "notes", JID: phone})
	stored := resources(t, w.store)
	if len(stored) != 1 || len(stored[0].Vaults) != 1 || stored[0].Vaults[0].Node != "notes" {
		t.Errorf("stored are %+v", stored)
	}
}
