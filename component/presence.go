package component

import (
	"context"

	"pepvault/component/link"
	"pepvault/pep/wire"
)

// presence notes who is there (PROTOCOL §2, §6). The service never answers
// presence with an error.
func (s *Service) presence(ctx context.Context, st link.Stanza) {
	from, err := s.addresses.from(st.From)
	if err != nil || from.host != "" {
		return
	}
	sender := from.sender
	switch st.Type {
	case "":
		if sender.Resource == "" || !s.addresses.bare(st.To) {
			return
		}
		s.arrived(ctx, sender, s.engine.Arrive(sender))
	case "unavailable", "error":
		s.engine.Leave(sender.Account, sender.Resource)
	case "subscribe":
		// Hosts repeat it at every login until it is answered.
		s.sendPresence("unsubscribed", st.To, st.From)
	case "probe":
		s.sendPresence("", st.To, st.From)
	}
}

func (s *Service) sendPresence(kind, from, to string) {
	s.writer.Small(wire.AppendPresence(nil, from, to, kind))
}

// message drops whatever comes, but learns from an error that a resource is
// gone.
func (s *Service) message(st link.Stanza) {
	if st.Type != "error" || st.Skipped != link.Whole {
		return
	}
	from, err := s.addresses.from(st.From)
	if err != nil || from.host != "" {
		return
	}
	switch wire.BounceCondition(st.Raw) {
	case "recipient-unavailable", "gone", "item-not-found":
		s.engine.Leave(from.sender.Account, from.sender.Resource)
	}
}
