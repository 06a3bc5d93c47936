// Package echo is a component that answers at once: it takes the service's
// requests and answers with stanzas of the same size and form, but keeps no
// record. What it reaches behind a host is what any component could reach there
// at most; the service is measured against that.
//
// It stands on the service's own stream, queues and wire format, so that only
// the engine and the store are missing.
package echo

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"pepvault/component/lane"
	"pepvault/component/link"
	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault"
)

const (
	// inlineBytes is how large an answer may be that goes among the small ones,
	// as in the service.
	inlineBytes = 32 << 10
	// stanzaBytes bounds what is sent, as the service's default does.
	stanzaBytes = 491520
	// answerBytes leaves room for what stands around the records.
	answerBytes = stanzaBytes - 4096
)

// Options say where to attach and what to answer.
type Options struct {
	Server string // the host's component port, host:port
	JID    string // the component's domain
	Secret link.Secret
	// Records is how many records every vault seems to have. Default 256.
	Records int
	// RecordBytes is the size of each record's ciphertext. Default 924.
	RecordBytes int
	// Ready, if not nil, is called after each handshake; it must not block.
	Ready func()
	// Logger hears of changes of the stream. Default: discards.
	Logger *slog.Logger
}

// Run attaches to the host and answers until ctx ends, through every loss of
// the stream. It returns nil then, or what is wrong with the options.
func Run(ctx context.Context, o Options) error {
	var stream *link.Link
	writer := lane.New(lane.Options{Confirm: func(done func(error)) []byte { return stream.Ping(0, done) }, Logger: o.Logger})
	service := newService(o, writer)
	service.expect = func(to string, within time.Duration, done func(link.Stanza, error)) (string, func()) {
		return stream.Expect(to, within, done)
	}
	var err error
	stream, err = link.New(link.Options{
		Server: o.Server, JID: o.JID, Secret: o.Secret, Serve: writer.Serve, Send: writer.Small, Logger: o.Logger,
	}, service)
	if err != nil {
		return err
	}
	if err := stream.Run(ctx); ctx.Err() == nil {
		return err
	}
	return nil
}

// service answers. All but the making of large answers happens on the reader's
// goroutine, which is far from being the limit behind a host.
type service struct {
	writer *lane.Writer
	ready  func()
	vault  content
	// expect announces an IQ of ours, as link.Link.Expect does.
	expect   func(to string, within time.Duration, done func(link.Stanza, error)) (id string, cancel func())
	accounts map[vault.Account]*account
	messages uint64
}

// account is what is known of one: who is there, and how often it was written
// to, which stands for the state of its vault.
type account struct {
	devices  map[string]bool // full JIDs
	revision vault.Revision
}

func newService(o Options, writer *lane.Writer) *service {
	if o.Records == 0 {
		o.Records = 256
	}
	if o.RecordBytes == 0 {
		o.RecordBytes = 924
	}
	if o.Ready == nil {
		o.Ready = func() {}
	}
	data := make([]byte, o.RecordBytes)
	for i, random := 0, rand.New(rand.NewPCG(1, 2)); i < len(data); i++ {
		data[i] = byte(random.Uint32())
	}
	return &service{
		writer: writer, ready: o.Ready, vault: content{records: o.Records, data: data},
		accounts: make(map[vault.Account]*account),
	}
}

func (s *service) Attached(context.Context, link.Stream) { s.ready() }

func (s *service) Detached(error) {}

// Stanza answers a request, or notes who is there.
func (s *service) Stanza(ctx context.Context, st link.Stanza) {
	if s.writer.Full() && s.writer.Room(ctx) != nil {
		return
	}
	switch {
	case st.Name.Local == "iq":
		s.request(ctx, st)
	case st.Name.Local == "presence" && st.Type == "":
		s.account(accountOf(st.From)).devices[st.From] = true
	case st.Name.Local == "presence" && st.Type == "unavailable":
		delete(s.account(accountOf(st.From)).devices, st.From)
	}
}

// accountOf is the bare JID; how the host spells it is good enough here.
func accountOf(address string) vault.Account {
	bare, _, _ := strings.Cut(address, "/")
	return vault.Account(bare)
}

// account finds or makes one.
func (s *service) account(name vault.Account) *account {
	a := s.accounts[name]
	if a == nil {
		a = &account{devices: make(map[string]bool)}
		s.accounts[name] = a
	}
	return a
}

// request answers a get or set.
func (s *service) request(ctx context.Context, st link.Stanza) {
	header := wire.Header{From: st.From, To: st.To, ID: st.ID, Type: st.Type, Name: st.Name.Local}
	place, ok := s.writer.Reserve(lane.SmallAnswer)
	if !ok {
		_ = s.writer.Refuse(ctx, wire.AppendError(nil, header,
			&pep.Refusal{Err: pep.ErrOverloaded, Text: "the echo has too much to do", RetryAfter: 2}))
		return
	}
	if st.Skipped != link.Whole {
		place.Small(wire.AppendError(nil, header, pep.ErrPayloadTooBig))
		return
	}
	call, err := wire.DecodeRequest(st.Raw, wire.Limits{Foreign: true})
	if err != nil {
		place.Small(wire.AppendError(nil, header, err))
		return
	}
	if op, ok := call.(pep.Download); ok {
		push, begun, err := s.download(header, op)
		if err != nil {
			place.Small(wire.AppendError(nil, header, err))
			return
		}
		place.Small(wire.AppendResult(nil, header, begun))
		push.fill()
		return
	}
	answer, cost, err := s.answer(accountOf(st.From), call)
	switch {
	case err != nil:
		place.Small(wire.AppendError(nil, header, err))
	case cost > inlineBytes:
		place.Bulk(lane.Chunk{For: st.From, Size: cost, Produce: func() ([]byte, error) {
			return wire.AppendResult(make([]byte, 0, cost+512), header, answer), nil
		}})
	default:
		place.Small(wire.AppendResult(make([]byte, 0, cost+512), header, answer))
	}
	if publish, ok := call.(pep.Publish); ok && err == nil {
		s.notify(st.To, accountOf(st.From), publish)
	}
}

// answer makes what the service would answer, and about how large that is.
func (s *service) answer(from vault.Account, call wire.Call) (answer any, cost int, err error) {
	switch call := call.(type) {
	case pep.Items:
		page, err := s.vault.items(call)
		return page, costOf(page.Records), err
	case pep.Sync:
		page, err := s.vault.sync(from, s.account(from).revision, call)
		return page, costOfChanges(page.Changes), err
	case pep.Publish:
		return s.publish(from, call), 0, nil
	case pep.Create:
		return pep.Created{Node: call.Node}, 0, nil
	case pep.Configure:
		return pep.Configured{}, 0, nil
	case pep.DescribeService:
		return pep.ServiceInfo{Name: "echo"}, 0, nil
	case pep.ListVaults:
		return pep.VaultList{}, 0, nil
	case wire.Ping:
		return wire.Pong{}, 0, nil
	case wire.Version:
		return wire.VersionInfo{Name: "echo"}, 0, nil
	}
	return nil, 0, pep.Refuse(pep.ErrUnsupported, "the echo only repeats")
}

// publish counts, and answers with the ids as they came.
func (s *service) publish(from vault.Account, op pep.Publish) pep.Published {
	done := pep.Published{Node: op.Node}
	for _, item := range op.Items {
		done.IDs = append(done.IDs, item.ID)
	}
	a := s.account(from)
	if op.State || op.Expect != nil {
		state := stateOf(from, a.revision, op)
		done.State = &state
	}
	a.revision += vault.Revision(len(op.Items))
	return done
}

// notify sends what was published to all devices of the account, the
// publisher's too, as the service does.
func (s *service) notify(component string, from vault.Account, op pep.Publish) {
	event := &pep.Event{Owner: from, Node: op.Node}
	for _, item := range op.Items {
		event.Changes = append(event.Changes, vault.Change{Record: vault.Record{
			ID: item.ID, KeyVersion: item.KeyVersion, Payload: item.Payload, Publisher: from,
		}})
	}
	a := s.account(from)
	event.State = stateOf(from, a.revision-vault.Revision(len(op.Items)), op)
	bodies := wire.EventBody(event, wire.Full)
	for device := range a.devices {
		for _, body := range bodies {
			s.messages++
			s.writer.Small(wire.AppendMessage(nil, component, device, "e"+strconv.FormatUint(s.messages, 36), body))
		}
	}
}
