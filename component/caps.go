package component

import (
	"context"
	"errors"

	"pepvault/component/link"
	"pepvault/pep"
	"pepvault/pep/wire"
)

// ask has resources asked what they can do (XEP-0115 §6.2, XEP-0390 §4.3). It
// does not block.
func (s *Service) ask(questions []pep.Question) {
	for len(questions) > 0 {
		q := questions[0]
		questions = questions[1:]
		if !s.beside(func(ctx context.Context) { s.inquire(ctx, q) }) {
			// Nobody is attached; what this makes due can't be asked either.
			questions = append(questions, s.engine.Unknown(q.To, q.Caps).Ask...)
		}
	}
}

// inquire asks one question. Without an answer it stays open until the
// resource's next presence.
func (s *Service) inquire(ctx context.Context, q pep.Question) {
	if info, ok := s.infoOf(ctx, q); ok {
		s.follow(ctx, s.engine.Learn(q.To, q.Caps, info.Announced(), info.Verify(q.Caps)))
	} else {
		s.follow(ctx, s.engine.Unknown(q.To, q.Caps))
	}
}

func (s *Service) infoOf(ctx context.Context, q pep.Question) (info wire.Info, ok bool) {
	defer s.guard() // the question has to end all the same
	if s.writer.Room(ctx) != nil {
		return info, false
	}
	for {
		asked, mine := s.verifier.ask(ctx, q.To.Address, q.Caps.Node)
		if asked.err != nil && (mine || !errors.Is(asked.err, link.ErrNoAnswer)) {
			return info, false
		}
		info, read := decodeInfo(asked.answer)
		if mine || read && info.Verify(q.Caps) {
			return info, read
		}
		// Somebody has asked it something else, or a session before this one.
	}
}

func decodeInfo(answer link.Stanza) (wire.Info, bool) {
	if answer.Type != "result" || answer.Skipped != link.Whole {
		return wire.Info{}, false
	}
	info, err := wire.DecodeInfo(answer.Raw)
	return info, err == nil
}

// follow does what follows from an answer.
func (s *Service) follow(ctx context.Context, l pep.Learned) {
	for _, to := range l.Greet {
		s.greet(ctx, to)
	}
	s.ask(l.Ask)
}

// greet tells a resource of the vaults that are new to it. It does not block.
func (s *Service) greet(ctx context.Context, to pep.Sender) {
	ctx = context.WithoutCancel(ctx) // what was greeted is greeted once
	// In the turn of the account's requests: what it asks for next is answered
	// after this. If too many wait, the device asks by itself.
	s.queues.pushBeside(string(to.Account), func() {
		defer s.guard()
		err := s.engine.Greet(ctx, to, func(notices []pep.Notice) {
			defer s.guard() // this may be the store's commit loop
			s.notify(notices)
		})
		if err != nil {
			s.note(err)
		}
	})
}
