package component

import (
	"context"

	"pepvault/component/link"
	"pepvault/pep"
	"pepvault/pep/wire"
)

// presence notes who is there (PROTOCOL §2, §6). The service never answers
// presence with an error.
func (s *Service) presence(ctx context.Context, st link.Stanza) {
	from, err := s.addresses.from(st.From)
	if err != nil || from.host != "" {
		return
	}
	switch st.Type {
	case "":
		s.available(ctx, from.sender, st)
	case "unavailable":
		if owner, err := s.addresses.owner(st.To, from.sender.Account); err == nil {
			s.engine.Absent(from.sender, owner)
			if owner == from.sender.Account {
				owner = "" // it leaves altogether
			}
			s.downloads.endOf(from.sender.Account, from.sender.Resource, owner)
		}
	case "error":
		s.leave(from.sender)
	case "subscribe":
		// Hosts repeat it at every login until it is answered.
		s.sendPresence("unsubscribed", st.To, st.From)
	case "probe":
		s.sendPresence("", st.To, st.From)
	}
}

// available notes a directed presence: for the sender's own vaults, or for
// those of the account that an explicit address names.
func (s *Service) available(ctx context.Context, sender pep.Sender, st link.Stanza) {
	owner, err := s.addresses.owner(st.To, sender.Account)
	if err != nil || sender.Resource == "" || st.Skipped != link.Whole {
		return
	}
	caps, silent, err := wire.DecodePresence(st.Raw)
	if err != nil {
		return
	}
	a := s.engine.Arrive(pep.Presence{Sender: sender, Owner: owner, Caps: caps, Silent: silent})
	if a.Forgotten != "" {
		s.sendPresence("unavailable", s.addresses.service, a.Forgotten)
	}
	if a.Crowded {
		s.beside(func(ctx context.Context) { s.thin(ctx, sender.Account) })
	}
	if a.Greet {
		s.greet(ctx, sender)
	}
	s.ask(a.Ask)
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
	s.meter.Notified(Bounced)
	switch wire.BounceCondition(st.Raw) {
	case "recipient-unavailable", "gone", "item-not-found":
		s.leave(from.sender)
	}
}

// leave forgets a resource that is gone.
func (s *Service) leave(gone pep.Sender) {
	s.engine.Leave(gone.Account, gone.Resource)
	s.downloads.endOf(gone.Account, gone.Resource, "")
}
