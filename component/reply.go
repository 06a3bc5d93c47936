package component

import (
	"crypto/rand"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"pepvault/component/lane"
	"pepvault/component/link"
	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault"
)

// reply is the one answer that a request gets. The first answer counts; what
// follows is dropped.
type reply struct {
	service *Service
	stanza  link.Stanza
	place   *lane.Place // nil until the request is admitted
	given   atomic.Bool
	queue   string    // that the request is taken from
	op      string    // for the Meter
	began   time.Time // when the request came
	// namesOnly has records answered by their names (XEP-0060 §5.5). It is
	// set before anybody else knows of the reply.
	namesOnly bool
}

// answer gives the answer. A large one is read and serialised when its turn
// comes.
func (r *reply) answer(a any) {
	later, large := a.(pep.Later)
	if !large {
		answer, result := r.encode(make([]byte, 0, roomFor(a)), a)
		if r.given.CompareAndSwap(false, true) {
			r.answered(result)
			r.place.Small(answer)
		}
		return
	}
	if r.given.CompareAndSwap(false, true) {
		took := time.Since(r.began)
		r.service.queues.hold(r.queue)
		waits := r.place.Bulk(lane.Chunk{
			Account: r.queue,
			For:     r.stanza.From,
			Size:    later.Cost,
			Produce: func() ([]byte, error) {
				defer r.service.queues.release(r.queue)
				answer, result := r.produce(later)
				r.service.meter.Answered(r.op, result, took)
				return answer, nil
			},
		})
		if !waits {
			r.service.queues.release(r.queue)
		}
	}
}

// answered counts an answer that is about to be queued.
func (r *reply) answered(result string) {
	r.service.meter.Answered(r.op, result, time.Since(r.began))
}

// produce makes a large answer, or the error that it turned into.
func (r *reply) produce(later pep.Later) (answer []byte, result string) {
	defer func() {
		if fault := recover(); fault != nil {
			answer, result = r.refusal(r.service.panicked(fault))
		}
	}()
	a, err := later.Read()
	if err != nil {
		r.service.note(err)
		return r.refusal(err)
	}
	return r.encode(make([]byte, 0, later.Cost), a)
}

// roomFor is about what a small answer takes.
func roomFor(a any) int {
	room := 512
	if page, ok := a.(pep.ItemsPage); ok {
		for i := range page.Records {
			room += page.Records[i].Cost()
		}
	}
	return room
}

func (r *reply) encode(dst []byte, a any) (answer []byte, result string) {
	if page, ok := a.(pep.ItemsPage); ok && r.namesOnly {
		a = wire.ItemNamesPage{Page: page}
	}
	if info, ok := a.(pep.ServiceInfo); ok {
		a = r.service.describe(info)
	}
	answer = wire.AppendResult(dst, header(r.stanza), a)
	if len(answer) > r.service.maxStanza {
		// The host would close the stream for everybody.
		return r.refusal(pep.Refuse(pep.ErrPolicy, "the answer would be too large: ask for less"))
	}
	return answer, ResultOK
}

// refusal is the answer that is an error.
func (r *reply) refusal(err error) (answer []byte, result string) {
	return wire.AppendError(nil, header(r.stanza), err), wire.Condition(err)
}

// fail answers with an error.
func (r *reply) fail(err error) {
	r.service.note(err)
	answer, result := r.refusal(err)
	if r.given.CompareAndSwap(false, true) {
		r.answered(result)
		r.place.Small(answer)
	}
}

// guard, deferred, turns a panic into an answer. The service goes on.
func (r *reply) guard() {
	if fault := recover(); fault != nil {
		r.fail(r.service.panicked(fault))
	}
}

// guard, deferred, has the service go on after a panic where nobody waits for
// an answer.
func (s *Service) guard() {
	if fault := recover(); fault != nil {
		_ = s.panicked(fault) // it is logged
	}
}

// errPanic stands for a fault in our own code; it is answered as a failure of
// the service.
var errPanic = errors.New("internal fault")

// panicked logs a fault of our own. Its value is left out: it could hold what
// a device sent.
func (s *Service) panicked(fault any) error {
	s.log.Error("fault in the service", "type", fmt.Sprintf("%T", fault), "stack", string(debug.Stack()))
	return errPanic
}

// note logs failures of the store, as far as the store has not done so when it
// began to fail; refusals are everyday.
func (s *Service) note(err error) {
	if errors.Is(err, vault.ErrStorage) {
		s.log.Debug("storage failed", "err", err)
	}
}

// messageIDs makes the ids of our messages: unique within a start of the
// service by a counter, and between starts by chance.
type messageIDs struct {
	start string
	count *atomic.Uint64
}

func newMessageIDs() messageIDs {
	return messageIDs{start: rand.Text()[:10] + "-", count: new(atomic.Uint64)}
}

func (m messageIDs) next() string {
	return m.start + strconv.FormatUint(m.count.Add(1), 36)
}
