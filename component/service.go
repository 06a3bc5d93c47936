package component

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"pepvault/component/lane"
	"pepvault/component/link"
	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault"
)

// Options are what a Service works with. All but Logger are required.
type Options struct {
	JID     string   // of the component: a domain
	Domains []string // whose accounts are served, prepared
	Name    string   // of the service, for people
	Version string   // of the program
	Engine  *pep.Engine
	Writer  *lane.Writer
	Wire    wire.Limits
	// MaxStanza bounds what is sent, in bytes: hosts close the stream above
	// their own limit.
	MaxStanza int
	// Request sends an IQ of ours and waits for its answer (link.Link.Request).
	Request func(ctx context.Context, kind, to string, payload []byte) (link.Stanza, error)
	// VerifyTimeout is how long a resource may stay silent when it is asked
	// whether it is still there.
	VerifyTimeout time.Duration
	// MaxPending bounds the requests of one account that wait to be served.
	MaxPending int
	// Logger hears of faults of the service. Default: discards.
	Logger *slog.Logger
}

// Service answers the stanzas of one component. It is the Handler of a
// link.Link.
type Service struct {
	addresses addresses
	name      string
	version   string
	engine    *pep.Engine
	writer    *lane.Writer
	wire      wire.Limits
	maxStanza int
	log       *slog.Logger
	queues    queues
	messages  messageIDs
	verifier  verifier
	missed    missed
	stopping  atomic.Bool
}

var _ link.Handler = (*Service)(nil)

// New makes a Service.
func New(o Options) *Service {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Service{
		addresses: newAddresses(o.JID, o.Domains),
		name:      o.Name,
		version:   o.Version,
		engine:    o.Engine,
		writer:    o.Writer,
		wire:      o.Wire,
		maxStanza: o.MaxStanza,
		log:       o.Logger,
		queues:    newQueues(o.MaxPending),
		messages:  newMessageIDs(),
		missed:    missed{resources: map[string]bool{}},
		verifier: verifier{
			request:  o.Request,
			timeout:  o.VerifyTimeout,
			places:   make(chan struct{}, verifying),
			thinning: map[vault.Account]bool{},
		},
	}
}

// Attached has the known resources verified, since nobody tells us who left
// while we were away.
func (s *Service) Attached(ctx context.Context, _ link.Stream) {
	known := s.engine.Known() // before anybody arrives on this stream
	s.verifier.begin(ctx)
	s.beside(func(ctx context.Context) { s.verifyAll(ctx, known) })
}

// Detached gives up what waits for a device. Requests that were taken are
// carried out, and their answers wait for the next connection.
func (s *Service) Detached(error) { s.verifier.end() }

// Stanza takes one stanza from the reader. It waits only while the writer has
// no room, which is how the host is slowed down.
func (s *Service) Stanza(ctx context.Context, st link.Stanza) {
	if s.writer.Full() && s.writer.Room(ctx) != nil {
		return // the connection ended, and with it whoever could be answered
	}
	defer s.guard() // of the reader: what one stanza does must not end it
	if !s.addresses.complete(&st) {
		return
	}
	switch st.Name.Local {
	case "iq":
		s.request(ctx, st)
	case "presence":
		s.presence(ctx, st)
	case "message":
		s.message(st)
	}
}

// Stop refuses further requests and waits until every one that was taken is
// answered, or until ctx ends.
func (s *Service) Stop(ctx context.Context) error {
	s.stopping.Store(true)
	defer s.queues.end()
	return s.queues.wait(ctx)
}

// request takes a get or set: it reserves the place of an answer and puts the
// request on its account's queue, or refuses it.
func (s *Service) request(ctx context.Context, st link.Stanza) {
	place, ok := s.writer.Reserve(lane.SmallAnswer)
	if !ok {
		s.refuse(ctx, st, overloaded("the service has too much to do"))
		return
	}
	r := &reply{service: s, stanza: st, place: place}
	defer r.guard()
	if s.stopping.Load() {
		r.fail(overloaded("the service is stopping"))
		return
	}
	from, err := s.addresses.from(st.From)
	if err != nil {
		r.fail(err)
		return
	}
	name := string(from.sender.Account)
	if from.host != "" {
		name = from.host // has no "@", so it can't be an account's
	}
	if !s.queues.push(name, func() {
		// Events need no place, so who makes them waits while the host takes
		// less than there is to say. Without a host nobody waits: who is known
		// is told anyway when it is back.
		_ = s.writer.Room(ctx)
		// A request that was taken is carried out, whatever becomes of the link.
		s.serve(context.WithoutCancel(ctx), from, r)
	}) {
		r.fail(overloaded("this account has too many requests waiting"))
	}
}

func overloaded(why string) error {
	return &pep.Refusal{Err: pep.ErrOverloaded, Text: why, RetryAfter: 2}
}

// refuse answers a request that got no place.
func (s *Service) refuse(ctx context.Context, st link.Stanza, err error) {
	refusal := wire.AppendError(nil, header(st), err)
	for !s.writer.Refuse(refusal) {
		if s.writer.Room(ctx) != nil {
			return
		}
	}
}

// serve decodes and carries out one request, in the turn of its account.
func (s *Service) serve(ctx context.Context, from party, r *reply) {
	defer r.guard()
	if r.stanza.Skipped != link.Whole {
		r.fail(skipped(r.stanza))
		return
	}
	call, err := wire.DecodeRequest(r.stanza.Raw, s.wire)
	r.stanza.Raw = nil
	if err != nil {
		r.fail(err)
		return
	}
	switch call := call.(type) {
	case wire.Ping:
		r.answer(wire.Pong{})
	case wire.Version:
		r.answer(wire.VersionInfo{Name: "pepvault", Version: s.version})
	case wire.ItemNames:
		r.namesOnly = true
		s.ask(ctx, from, call.Items, r)
	case pep.Op:
		s.ask(ctx, from, call, r)
	default:
		r.fail(pep.ErrUnknownNamespace)
	}
}

// ask puts a request to the engine.
func (s *Service) ask(ctx context.Context, from party, op pep.Op, r *reply) {
	if from.host != "" {
		// A server may look at the service, but has no vaults.
		switch op.(type) {
		case pep.DescribeService:
		case pep.ListVaults:
			r.answer(pep.VaultList{})
			return
		default:
			r.fail(notServed())
			return
		}
	} else if from.sender.Resource == "" {
		r.fail(pep.Refuse(pep.ErrBadRequest, "a request comes from a full JID"))
		return
	}
	owner, err := s.addresses.owner(r.stanza.To, from.sender.Account)
	if err != nil {
		r.fail(err)
		return
	}
	req := pep.Request{Sender: from.sender, Owner: owner, Op: op}
	err = s.engine.Do(ctx, req, func(out pep.Outcome) {
		defer r.guard() // this may be the store's commit loop
		r.answer(out.Answer)
		s.notify(out.Notices)
	})
	if err != nil {
		r.fail(err)
	}
}

const nsPubSub = "http://jabber.org/protocol/pubsub"

// skipped is the refusal of a stanza of which only the start was read.
func skipped(st link.Stanza) error {
	if st.Child.Space == nsPubSub && st.Type == "set" {
		return pep.Refuse(pep.ErrPayloadTooBig, "the request is %s", st.Skipped)
	}
	return pep.Refuse(pep.ErrPolicy, "the request is %s", st.Skipped)
}

func header(st link.Stanza) wire.Header {
	return wire.Header{From: st.From, To: st.To, ID: st.ID, Type: st.Type, Name: st.Name.Local}
}

// notify sends events, each serialised once for all who get it.
func (s *Service) notify(notices []pep.Notice) {
	var bodies [][]byte
	var event *pep.Event
	var quiet bool
	for _, n := range notices {
		if n.Event != event || n.Quiet != quiet {
			event, quiet = n.Event, n.Quiet
			bodies = wire.EventBody(event, quiet)
		}
		for _, body := range bodies {
			message := wire.AppendMessage(make([]byte, 0, len(body)+256), s.addresses.service, n.To, s.messages.next(), body)
			if len(message) > s.maxStanza {
				panic(fmt.Sprintf("component: an event of %d bytes was let in", len(message)))
			}
			if !s.writer.Small(message) {
				s.catchUp(n.To)
			}
		}
	}
}
