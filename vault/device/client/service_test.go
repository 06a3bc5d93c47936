package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/store"
	"pepvault/vault"
	"pepvault/vault/device/c2s"
	"pepvault/vault/device/cache"
	"pepvault/vault/seal"
)

const (
	alice   = vault.Account("alice@localhost")
	vaultID = "vault.localhost"
	node    = "notes"
)

// service is the engine with a real store, without a host.
type service struct {
	t      testing.TB
	dir    string
	store  vault.Store
	engine *pep.Engine
	mu     sync.Mutex
	// change may put another answer in the place of one; cut, called before a
	// request is carried out and after, tells whether the connection ends there.
	change func(answer any) any
	cut    func(op any, done bool) bool
	// heard is called with each request, as it came.
	heard  func(raw []byte)
	opened int
}

func newService(t testing.TB) *service {
	w := &service{t: t, dir: t.TempDir()}
	w.open("store.db")
	t.Cleanup(func() { _ = w.store.Close() })
	return w
}

// open has the service work on that file.
func (w *service) open(name string) {
	w.t.Helper()
	if w.store != nil {
		if err := w.store.Close(); err != nil {
			w.t.Fatal(err)
		}
	}
	s, err := store.Open(context.Background(), w.options(name))
	if err != nil {
		w.t.Fatal(err)
	}
	w.store = s
	w.engine = pep.New(pep.Options{
		Store: s, Domains: []string{"localhost"}, AnswerBytes: 20_000, InlineBytes: 1 << 20, BatchRecords: 64,
		Limits: vault.Limits{
			Records: 64, RecordBytes: 8192, Vaults: 4, AccountBytes: 1 << 24, TombstonesFactor: 4, Subscriptions: 16, Affiliations: 4,
			Resources: 32, Capabilities: 16, Batches: 2, StagedBytes: 1 << 22, BatchExpiry: 24 * 3600e9, MassDeleteShare: 0.9, MassDeleteMin: 8,
		},
	})
}

func (w *service) options(name string) store.Options {
	return store.Options{Driver: "sqlite", Path: filepath.Join(w.dir, name), Logger: slog.New(slog.DiscardHandler)}
}

// do carries out a request of the account.
func (w *service) do(resource string, op pep.Op) (answer any, err error) {
	sender := pep.Sender{Account: alice, Address: string(alice) + "/" + resource, Resource: resource}
	err = w.engine.Do(context.Background(), pep.Request{Sender: sender, Owner: alice, Op: op}, func(out pep.Outcome) { answer = out.Answer })
	if later, large := answer.(pep.Later); large && err == nil {
		return later.Read()
	}
	return answer, err
}

// tool does what somebody with the rights of the account, or the service, could.
func (w *service) tool(op pep.Op) any {
	w.t.Helper()
	answer, err := w.do("tool", op)
	if err != nil {
		w.t.Fatalf("%T: %v", op, err)
	}
	return answer
}

// stream is one connection to the service.
type stream struct {
	w        *service
	resource string
	handle   func(c2s.Stanza) bool
	done     chan struct{}
	once     sync.Once
}

func (w *service) dial(_ context.Context, handle func(c2s.Stanza) bool) (Stream, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opened++
	return &stream{w: w, resource: fmt.Sprint("r", w.opened), handle: handle, done: make(chan struct{})}, nil
}

func (s *stream) Done() <-chan struct{} { return s.done }
func (s *stream) Err() error            { return c2s.ErrEnded }
func (s *stream) Close() error          { s.once.Do(func() { close(s.done) }); return nil }

func (s *stream) Send(raw []byte) error {
	header, err := wire.ReadHeader([]byte(strings.Replace(string(raw), "<iq", "<iq xmlns='jabber:client'", 1)))
	if err != nil || header.Name != "iq" || header.Type != "get" && header.Type != "set" {
		return err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if s.w.heard != nil {
		s.w.heard(raw)
	}
	request := wire.Header{From: string(alice) + "/" + s.resource, To: vaultID, ID: header.ID}
	call, err := wire.DecodeRequest(raw, wire.Limits{RecordBytes: 8192})
	if err == nil && s.w.cut != nil && s.w.cut(call, false) {
		return s.Close()
	}
	var answer any
	if err == nil {
		answer, err = s.w.do(s.resource, call.(pep.Op))
	}
	if s.w.cut != nil && s.w.cut(call, true) {
		return s.Close()
	}
	kind, reply := "result", []byte(nil)
	if err != nil {
		kind, reply = "error", wire.AppendError(nil, request, err)
	} else {
		if s.w.change != nil {
			answer = s.w.change(answer)
		}
		reply = wire.AppendResult(nil, request, answer)
	}
	s.handle(c2s.Stanza{Name: "iq", Type: kind, From: vaultID, To: request.From, ID: header.ID, Raw: reply})
	return nil
}

// person is a device with its folder, that can be stopped and begun again.
type person struct {
	*Device
	w      *service
	dir    string
	phrase string
}

func (w *service) person(phrase string) *person {
	return &person{w: w, dir: filepath.Join(w.t.TempDir(), "state"), phrase: phrase}
}

func (p *person) options() Options {
	p.w.t.Helper()
	s, err := cache.Acquire(p.dir)
	if err != nil {
		p.w.t.Fatal(err)
	}
	p.w.t.Cleanup(func() { _ = s.Close() })
	return Options{
		Account: alice, Service: vaultID, Node: node, Store: s, Source: Source{Kind: seal.KeyFile},
		Secret: func(seal.LockKind) ([]byte, error) {
			return []byte(p.phrase + strings.Repeat(".", seal.MinKeyFile)), nil
		},
	}
}

// join sets the device up.
func (p *person) join() error {
	p.Device = Join(p.options())
	err := p.Run(context.Background(), p.w.dial, Once)
	if err != nil {
		_ = p.Store.Close()
	}
	return err
}

func (p *person) mustJoin() *person {
	p.w.t.Helper()
	if err := p.join(); err != nil {
		p.w.t.Fatal(err)
	}
	return p
}

// again ends the device as kill -9 does, and begins it anew.
func (p *person) again() {
	p.w.t.Helper()
	if err := p.Store.Close(); err != nil {
		p.w.t.Fatal(err)
	}
	d, err := Open(p.options())
	if err != nil {
		p.w.t.Fatal(err)
	}
	p.Device = d
}

func (p *person) sync() error { return p.Run(context.Background(), p.w.dial, Once) }

func (p *person) mustSync() {
	p.w.t.Helper()
	if err := p.sync(); err != nil {
		p.w.t.Fatal(err)
	}
}

func (p *person) put(name, content string) {
	p.w.t.Helper()
	if err := p.Put(name, []byte(content)); err != nil {
		p.w.t.Fatal(err)
	}
}

// shown is what a device shows, by name.
func (p *person) shown() map[string]string {
	list, locked := p.List()
	shown := map[string]string{}
	if locked > 0 {
		shown["locked"] = fmt.Sprint(locked)
	}
	for _, e := range list {
		if !e.Removed && (e.Conflict == nil || !e.Conflict.Gone) {
			shown[e.Name] = string(e.Content)
		}
	}
	return shown
}

var errCut = []error{c2s.ErrEnded, io.EOF}

func isCut(err error) bool { return isAny(err, errCut...) || errors.Is(err, c2s.ErrClosed) }
