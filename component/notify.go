package component

import (
	"fmt"

	"pepvault/pep"
	"pepvault/pep/wire"
)

// notify sends events, each serialised once for all who get it in one form.
func (s *Service) notify(notices []pep.Notice) {
	var event *pep.Event
	bodies := map[wire.Detail][][]byte{} // of that event
	for _, n := range notices {
		if n.Event != event {
			event = n.Event
			clear(bodies)
		}
		detail := wire.DetailOf(n)
		if bodies[detail] == nil {
			bodies[detail] = wire.EventBody(event, detail)
		}
		from := s.addresses.service
		if n.Account != event.Owner {
			from = s.addresses.explicit(event.Owner)
		}
		for _, body := range bodies[detail] {
			message := wire.AppendMessage(make([]byte, 0, len(body)+256), from, n.To, s.messages.next(), body)
			if len(message) > s.maxStanza {
				panic(fmt.Sprintf("component: an event of %d bytes was let in", len(message)))
			}
			if s.writer.Small(message) {
				s.meter.Notified(Sent)
			} else {
				s.meter.Notified(Missed)
				s.catchUp(n)
			}
		}
	}
}
