package component

import (
	"context"

	"pepvault/pep"
	"pepvault/vault"
)

// EraseAccount removes all that there is of an account, for an operator, and
// tells everybody concerned. Its errors are those of pep.Engine.Erase.
func (s *Service) EraseAccount(ctx context.Context, account vault.Account) (erased pep.Erased, err error) {
	err = s.engine.Erase(ctx, account, func(out pep.Outcome) {
		defer s.guard() // this is the store's commit loop
		erased = out.Answer.(pep.Erased)
		s.notify(out.Notices)
	})
	return erased, err
}
