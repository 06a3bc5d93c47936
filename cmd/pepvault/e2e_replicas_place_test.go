package main_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pepvault/component/loopback"
	"pepvault/vault/device/c2s"
)

var (
	replicaSeed   = flag.Uint64("replica-seed", 0, "the seed of TestReplicas; 0 = a new one")
	replicaRounds = flag.Int("replica-rounds", 22, "how often TestReplicas lets everybody come to rest")
)

// replicaLimits let records, room and memory for removals be short.
const replicaLimits = "[limits]\nmax_records = 6\nmax_batch_records = 6\ntombstones_factor = 1\nmass_delete_share = 0.5\nmass_delete_min = 1\n"

// place is a service, its host, and what happens to both.
type place struct {
	*station
	*fleet
	t           *testing.T
	restartHost func()
	killing     bool
	ending      bool // the service was told to end
	copies      int
	copied      map[uint32]string // the keys of the latest copy
}

func newReplicaSeed() uint64 {
	if *replicaSeed != 0 {
		return *replicaSeed
	}
	return rand.Uint64()
}

// TestReplicas has devices that follow the rules work on the real program with
// its store on a disk, behind the embedded host.
func TestReplicas(t *testing.T) {
	t.Parallel()
	program := buildProgram(t)
	for name, test := range map[string]func(*testing.T, string){
		"histories":                     testHistories,
		"two edits (C26)":               testTwoEdits,
		"restored behind devices (C29)": testRestoredBehind,
		"a large import (C50)":          testLargeImport,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, program)
		})
	}
}

// testHistories: whatever is cut, killed, rolled back or rotated meanwhile, all
// end with what the service has, and nothing that was acknowledged is lost.
func testHistories(t *testing.T, program string) {
	p := newPlace(t, program, 4, replicaLimits)
	p.live(*replicaRounds,
		p.killSoon, p.restartAll, p.purge, p.rotate, p.rotateAndKill, p.backup,
		p.restore, p.copyBack, p.rotateAndRestore, p.deleteVault, p.restart)
}

// testReplicas is testHistories behind a real server, in a smaller number.
func (h *host) testReplicas(t *testing.T) {
	seed := newReplicaSeed()
	t.Logf("-replica-seed %d", seed)
	s := newService(t, h.program, replicasJID, h.server.Component(replicasJID), secret, replicaLimits)
	p := &place{
		station: &station{service: s, dir: filepath.Dir(s.config)},
		fleet:   newFleet(t, seed, replicasJID, 3), t: t,
	}
	p.tend = p.revive
	p.dial = func(name string, take func(arrival)) (session, error) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return c2s.Dial(ctx, c2s.Options{
			Server: h.server.Addr, JID: alice, Resource: name, Password: password, TLS: h.server.TLS(),
			Handle: func(s c2s.Stanza) bool {
				take(arrival{s.Name, s.Type, s.From, s.ID, slices.Clone(s.Raw)})
				return true
			},
		})
	}
	p.restartHost = func() {
		if err := h.server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	p.live(6, p.killSoon, p.rotateAndKill, p.rotateAndRestore, p.purge, p.copyBack, p.restartAll)
	for _, d := range append(p.devices, p.tool) {
		d.cut()
	}
}

// newPlace prepares a service on the embedded host, and devices.
func newPlace(t *testing.T, program string, devices int, config string) *place {
	t.Helper()
	seed := newReplicaSeed()
	t.Logf("-replica-seed %d", seed)
	host, err := loopback.Start(loopback.Options{Domain: operatorDomain, Component: operatorJID, Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	s := newService(t, program, operatorJID, host.Addr(), secret, config)
	p := &place{
		station: &station{service: s, host: host, dir: filepath.Dir(s.config)},
		fleet:   newFleet(t, seed, operatorJID, devices), t: t,
	}
	p.dial = func(name string, take func(arrival)) (session, error) {
		d, err := host.ConnectFunc(operatorOwner+"/"+name, func(_ *loopback.Device, s loopback.Stanza) {
			take(arrival{s.Name, s.Type, s.From, s.ID, slices.Clone(s.Raw)})
		})
		return loopbackSession{d, p.one(2)}, err
	}
	p.restartHost = host.Drop
	p.tend = p.revive
	return p
}

// loopbackSession is a session with the embedded host.
type loopbackSession struct {
	*loopback.Device
	told bool // the host tells that the device has gone
}

func (s loopbackSession) Cut() {
	if s.told {
		_ = s.Close()
		return
	}
	s.Vanish()
}

// live begins the service and has everybody go through that many rounds of
// trouble.
func (p *place) live(rounds int, troubles ...func()) {
	p.start()
	for round := range rounds {
		if round%len(troubles) == 0 {
			p.chance.Shuffle(len(troubles), func(i, j int) { troubles[i], troubles[j] = troubles[j], troubles[i] })
		}
		p.note("round %d", round)
		p.edits(20)
		troubles[round%len(troubles)]()
		p.edits(20)
		p.until("the kill", p.pump, func() bool { return !p.killing })
		p.calm()
		p.judge()
		if p.wrong > 0 {
			p.t.FailNow()
		}
		p.clearConflicts()
	}
	p.terminate()
	p.must("verify", filepath.Join(p.dir, storeName))
	p.t.Logf("%d rounds, %d requests, %d contents", rounds, p.requests, p.count)
}

// edits has people work on their devices, which come and go.
func (p *place) edits(n int) {
	for range n {
		d := p.devices[p.chance.IntN(len(p.devices))]
		switch {
		case d.session == nil && p.one(2):
			d.connect()
		case d.session != nil && p.one(12):
			d.cut()
		case p.one(20):
			d.crash()
		case p.one(10):
			d.together(fmt.Sprint("r", p.chance.IntN(3)), fmt.Sprint("r", 3+p.chance.IntN(3)))
		default:
			d.edit(fmt.Sprint("r", p.chance.IntN(6)), p.one(6))
		}
		if !p.pump() && p.one(3) {
			p.wait()
		}
	}
}

// revive has the service begin again after it was killed. It may be called at
// any time.
func (p *place) revive() {
	if p.ending || p.cmd == nil {
		return
	}
	select {
	case <-p.exited:
	default:
		return
	}
	if !p.killing {
		p.t.Fatal("the service ended by itself")
	}
	p.killing, p.cmd = false, nil
	p.note("the service was killed")
	p.beginAmidWork()
}

// beginAmidWork has the service begin again while everybody works: what they
// ask before it is there, the host refuses for now.
func (p *place) beginAmidWork() {
	p.ending = true
	p.loseAnswers()
	p.edits(10)
	// A host that has not noticed the end yet passes a request on to nobody, and
	// never answers it.
	noticed := time.Now().Add(time.Second)
	p.until("an answer", p.take, func() bool { return p.answered() || time.Now().After(noticed) })
	p.begin()
}

// begin has the service begin again. What was asked of the one before is not
// answered any more.
func (p *place) begin() {
	p.loseAnswers()
	p.start()
	p.ending = false
	p.note("the service is there")
}

func (p *place) loseAnswers() {
	for _, d := range append(slices.Clone(p.devices), p.tool) {
		if d.id != "" {
			d.lose()
		}
	}
}

// end has the service end properly.
func (p *place) end() {
	p.until("the kill", p.pump, func() bool { return !p.killing })
	p.ending = true
	p.terminate()
	p.take()
}

// killSoon kills the service at some moment that is to come.
func (p *place) killSoon() {
	cmd := p.cmd
	p.killing = true
	time.AfterFunc(time.Duration(p.chance.Int64N(int64(60*time.Millisecond))), func() { _ = cmd.Process.Kill() })
}

// restart has the service end and begin.
func (p *place) restart() {
	p.end()
	p.beginAmidWork()
}

// restartAll has the host restart: everybody is cut off.
func (p *place) restartAll() {
	for _, d := range append(slices.Clone(p.devices), p.tool) {
		d.cut()
	}
	attached := p.log.count("msg=attached")
	p.restartHost()
	p.awaitAttached(attached + 1)
}
