package component

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"pepvault/component/lane"
	"pepvault/component/link"
	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault"
)

// Options are what a Service works with. All but Logger and Meter are required.
type Options struct {
	JID     string   // of the component: a domain
	Domains []string // whose accounts are served, prepared
	Name    string   // of the service, for people
	// Contact is a URI under which users reach the operator; "" = none.
	Contact string
	Admins  []vault.Account // who may use the operator's commands
	Version string          // of the program
	Engine  *pep.Engine
	Writer  *lane.Writer
	Wire    wire.Limits
	// MaxStanza bounds what is sent, in bytes: hosts close the stream above
	// their own limit.
	MaxStanza int
	Request   Request
	Expect    Expect
	Ping      Ping
	Downloads Downloads
	// VerifyTimeout is how long a resource may stay silent when it is asked
	// whether it is still there.
	VerifyTimeout time.Duration
	// Rate bounds the requests of one account in time.
	Rate Rate
	// MaxPending bounds the requests of one account that wait to be served.
	MaxPending int
	// Logger hears of faults of the service. Default: discards.
	Logger *slog.Logger
	// Meter counts. Default: nothing is counted.
	Meter Meter
}

// Request sends an IQ of ours and waits for its answer; link.Link.Request is
// one, and says which errors there are.
type Request func(ctx context.Context, kind, to string, payload []byte, within time.Duration) (link.Stanza, error)

// Expect announces an IQ of ours that the caller sends with the returned id,
// and Ping makes one to the host that the caller sends; link.Link.Expect and
// link.Link.Ping are such, and say what they promise.
type (
	Expect func(to string, within time.Duration, done func(link.Stanza, error)) (id string, cancel func())
	Ping   func(within time.Duration, done func(error)) []byte
)

// Service answers the stanzas of one component. It is the Handler of a
// link.Link.
type Service struct {
	addresses addresses
	name      string
	contact   string
	version   string
	commands  commands
	engine    *pep.Engine
	writer    *lane.Writer
	wire      wire.Limits
	maxStanza int
	log       *slog.Logger
	meter     Meter
	rates     rates // of the reader
	queues    queues
	messages  messageIDs
	verifier  verifier
	missed    missed
	downloads downloads
	expect    Expect
	ping      Ping
	stopping  atomic.Bool
}

var _ link.Handler = (*Service)(nil)

// New makes a Service.
func New(o Options) *Service {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Meter == nil {
		o.Meter = silence{}
	}
	return &Service{
		addresses: addresses{service: o.JID, served: o.Domains},
		name:      o.Name,
		contact:   o.Contact,
		version:   o.Version,
		commands:  newCommands(o.Admins),
		engine:    o.Engine,
		writer:    o.Writer,
		wire:      o.Wire,
		maxStanza: o.MaxStanza,
		log:       o.Logger,
		meter:     o.Meter,
		rates:     newRates(o.Rate),
		queues:    newQueues(o.MaxPending),
		messages:  newMessageIDs(),
		missed:    missed{addresses: map[missing]bool{}},
		downloads: downloads{bounds: o.Downloads, all: map[vault.Account]map[course]*download{}},
		expect:    o.Expect,
		ping:      o.Ping,
		verifier: verifier{
			request:  o.Request,
			timeout:  o.VerifyTimeout,
			places:   make(chan struct{}, verifying),
			arrivals: o.Engine.Arrivals,
			asked:    map[string]*question{},
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
	for _, what := range s.missed.all() {
		s.tellLater(what)
	}
}

// Detached gives up what waits for a device. Requests that were taken are
// carried out, and their answers wait for the next connection. Downloads end:
// what was on its way is lost.
func (s *Service) Detached(error) {
	s.downloads.endAll(false)
	s.verifier.end()
}

// Stanza takes one stanza from the reader. It waits only while the writer has
// no room for answers, or none for the refusal of this one, which is how the
// host is slowed down.
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

// Stop refuses further requests, ends downloads, and waits until every request
// that was taken is answered, or until ctx ends.
func (s *Service) Stop(ctx context.Context) error {
	s.stopping.Store(true)
	s.downloads.endAll(true)
	defer s.queues.end()
	return s.queues.wait(ctx)
}

// request takes a get or set and puts it on its account's queue, or refuses it.
func (s *Service) request(ctx context.Context, st link.Stanza) {
	r := &reply{service: s, stanza: st, op: opUnread, began: time.Now()}
	defer func() {
		if fault := recover(); fault != nil {
			s.turnAway(ctx, r, s.panicked(fault))
		}
	}()
	from, err := s.addresses.from(st.From)
	if err != nil {
		s.meter.Rejected(NotServed)
		s.turnAway(ctx, r, err)
		return
	}
	name := string(from.sender.Account)
	if from.host != "" {
		name = from.host // has no "@", so it can't be an account's
	}
	if why, err := s.admit(name, from, r); err != nil {
		s.meter.Rejected(why)
		s.turnAway(ctx, r, err)
		return
	}
	r.queue = name
	s.queues.push(name, func() {
		// Events need no place, so who makes them waits while the host takes
		// less than there is to say. Without a host nobody waits: who is known
		// is told anyway when it is back.
		_ = s.writer.Room(ctx)
		// A request that was taken is carried out, whatever becomes of the link.
		s.serve(context.WithoutCancel(ctx), from, r)
	})
}

// admit lets a request in and reserves the place of its answer, or says why
// not. What is the account's own doing comes before what is not: its rate, then
// what of it waits, then the room that the service has for all.
func (s *Service) admit(name string, from party, r *reply) (Rejection, error) {
	if s.stopping.Load() {
		return IsStopping, overloaded("the service is stopping")
	}
	if from.host == "" && !s.rates.allow(from.sender.Account, r.began) {
		return TooOften, tooOften()
	}
	waiting := s.queues.waiting(name)
	if waiting >= s.queues.bound {
		return TooMany, overloaded("this account has too many requests waiting")
	}
	reserve := s.writer.Reserve
	if waiting >= few {
		reserve = s.writer.ReserveMore
	}
	place, ok := reserve(lane.SmallAnswer)
	if !ok {
		return NoRoom, overloaded("the service has too much to do")
	}
	r.place = place
	return "", nil
}

// few requests of an account may wait for it to be one that asks for little: in
// a storm it finds room where others find none.
const few = 4

func overloaded(why string) error {
	return &pep.Refusal{Err: pep.ErrOverloaded, Text: why, RetryAfter: 2}
}

// turnAway refuses a request in the reader, which waits while as many refusals
// wait as may: so the host is slowed down, and others' answers keep their room.
func (s *Service) turnAway(ctx context.Context, r *reply, err error) {
	if r.place != nil {
		r.fail(err)
		return
	}
	r.answered(wire.Condition(err))
	// An error means that the connection has ended, and with it who could hear.
	_ = s.writer.Refuse(ctx, wire.AppendError(nil, header(r.stanza), err))
}

// serve decodes and carries out one request, in the turn of its account.
func (s *Service) serve(ctx context.Context, from party, r *reply) {
	defer r.guard()
	if r.stanza.Skipped != link.Whole {
		s.meter.Rejected(TooLarge)
		r.fail(skipped(r.stanza))
		return
	}
	r.op = opUnknown
	call, err := wire.DecodeRequest(r.stanza.Raw, s.wire)
	r.stanza.Raw = nil
	if err != nil {
		r.fail(err)
		return
	}
	r.op = operationOf(call)
	switch call := call.(type) {
	case wire.Ping:
		r.answer(wire.Pong{})
	case wire.Version:
		r.answer(wire.VersionInfo{Name: "pepvault", Version: s.version})
	case wire.ItemNames:
		r.namesOnly = true
		s.carryOut(ctx, from, call.Items, r)
	case pep.Op:
		s.carryOut(ctx, from, call, r)
	case wire.Command, wire.ListCommands, wire.DescribeCommands, wire.DescribeCommand:
		s.command(ctx, from, call, r)
	default:
		r.fail(pep.ErrUnknownNamespace)
	}
}

// carryOut puts a request to the engine.
func (s *Service) carryOut(ctx context.Context, from party, op pep.Op, r *reply) {
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
	if op, is := op.(pep.Download); is {
		if err := s.downloads.refuses(req.Sender.Account, courseOf(req, op)); err != nil {
			r.fail(err)
			return
		}
	}
	err = s.engine.Do(ctx, req, func(out pep.Outcome) {
		defer r.guard() // this may be the store's commit loop
		if begun, isDownload := out.Answer.(pep.DownloadBegun); isDownload {
			s.download(req, begun, r)
			return
		}
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
