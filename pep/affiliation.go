package pep

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"pepvault/vault"
)

// affiliationNames are those of XEP-0060 §4.1 that a vault knows.
var affiliationNames = [...]string{
	vault.NotAffiliated: "none",
	vault.Outcast:       "outcast",
	vault.Member:        "member",
	vault.Publisher:     "publisher",
	vault.Owner:         "owner",
}

// listAffiliations tells the sender what it is to the owner's vaults
// (XEP-0060 §5.7). An outcast is told as little as a stranger.
func (e *Engine) listAffiliations(ctx context.Context, req Request, op ListAffiliations, done func(Outcome)) error {
	read := func(v vault.View) (Outcome, error) {
		vaults, err := e.asked(v, req, op.Node)
		if err != nil {
			return Outcome{}, err
		}
		list, cost := AffiliationList{Node: op.Node}, 0
		for _, key := range vaults {
			a, err := affiliationOf(v, req.Sender.Account, key)
			if err != nil {
				return Outcome{}, err
			}
			list.List = append(list.List, NodeAffiliation{Node: key.Node, Affiliation: a})
			cost += nameCost(key.Node)
		}
		return Outcome{Answer: list}, e.checkAnswer(cost)
	}
	return e.listed(ctx, vault.Key{Account: req.Owner, Node: op.Node}, read, done)
}

func (e *Engine) readAffiliations(ctx context.Context, req Request, op ReadAffiliations, done func(Outcome)) error {
	key := vault.Key{Account: req.Owner, Node: op.Node}
	return e.ordered(ctx, key, func(v vault.View) (Outcome, error) {
		if err := admit(v, req); err != nil {
			return Outcome{}, err
		}
		list, err := v.Affiliations(key)
		if err != nil {
			return Outcome{}, err
		}
		all := slices.Concat([]vault.Affiliated{{Account: key.Account, Affiliation: vault.Owner}}, list)
		slices.SortFunc(all, func(a, b vault.Affiliated) int { return cmp.Compare(a.Account, b.Account) })
		return Outcome{Answer: VaultAffiliations{Node: op.Node, List: all}}, nil
	}, done)
}

// setAffiliations changes them all or none (XEP-0060 §8.9.2). Who loses the
// right to read loses its subscriptions at once.
func (e *Engine) setAffiliations(ctx context.Context, req Request, op SetAffiliations, done func(Outcome)) error {
	wanted, err := readAffiliated(op.Changes)
	if err != nil {
		return err
	}
	key := vault.Key{Account: req.Owner, Node: op.Node}
	return e.update(ctx, key, func(tx vault.Tx, told func(func())) error {
		if err := admit(tx, req); err != nil {
			return err
		}
		list, err := tx.Affiliations(key)
		if err != nil {
			return err
		}
		now := map[vault.Account]vault.Affiliation{key.Account: vault.Owner}
		for _, a := range list {
			now[a.Account] = a.Affiliation
		}
		changes, err := e.checkAffiliations(key, now, wanted)
		if err != nil {
			return err
		}
		var lost []vault.Account
		for _, a := range changes {
			if err := tx.Affiliate(key, a); err != nil {
				return err
			}
			if !may(a.Affiliation, read) {
				lost = append(lost, a.Account)
			}
		}
		told(func() {
			for _, account := range lost {
				e.interest.revoke(key, account)
			}
			done(Outcome{Answer: AffiliationsSet{}})
		})
		return nil
	})
}

// wish is one change of affiliations, as it was read.
type wish struct {
	account vault.Account
	name    string // of the affiliation; "" = as it is
}

// readAffiliated prepares the accounts of a request, each of which stands
// there once. An affiliation is that of a bare JID (XEP-0060 §4.1).
func readAffiliated(changes []AffiliationChange) ([]wish, error) {
	wishes := make([]wish, 0, len(changes))
	for _, c := range changes {
		bare, _ := vault.SplitAddress(c.JID)
		account, err := vault.PrepareAccount(bare)
		if err != nil {
			return nil, Refuse(ErrMalformedJID, "the JID %s can't be read", quote(c.JID))
		}
		if slices.ContainsFunc(wishes, func(w wish) bool { return w.account == account }) {
			return nil, Refuse(ErrBadRequest, "the account %s stands there twice", quote(string(account)))
		}
		wishes = append(wishes, wish{account, c.Affiliation})
	}
	return wishes, nil
}

// checkAffiliations returns what changes, or a refusal that names all that
// can't be granted, as they are now.
func (e *Engine) checkAffiliations(key vault.Key, now map[vault.Account]vault.Affiliation, wishes []wish) ([]vault.Affiliated, error) {
	refusal := &Refusal{Err: ErrBadAffiliation, Node: key.Node}
	refuse := func(w wish, text string) {
		refusal.Text = cmp.Or(refusal.Text, text)
		refusal.Affiliations = append(refusal.Affiliations, vault.Affiliated{Account: w.account, Affiliation: now[w.account]})
	}
	var changes []vault.Affiliated
	for _, w := range wishes {
		known := slices.Index(affiliationNames[:], w.name)
		wanted := vault.Affiliation(max(known, 0))
		switch is := now[w.account]; {
		case w.name == "" || known >= 0 && wanted == is:
			continue
		case known < 0:
			refuse(w, "an affiliation is publisher, member, outcast or none")
		case is == vault.Owner || wanted == vault.Owner:
			refuse(w, "a vault belongs to its account and nobody else")
		case wanted != vault.NotAffiliated && !slices.Contains(e.domains, w.account.Domain()):
			refuse(w, "accounts of this domain are not served")
		default:
			changes = append(changes, vault.Affiliated{Account: w.account, Affiliation: wanted})
		}
	}
	for _, w := range e.beyondBound(now, changes) {
		refuse(w, fmt.Sprintf("a vault has at most %d affiliations", e.limits.Affiliations))
	}
	if len(refusal.Affiliations) > 0 {
		return nil, refusal
	}
	return changes, nil
}

// beyondBound returns the new affiliations for which a vault has no room.
func (e *Engine) beyondBound(now map[vault.Account]vault.Affiliation, changes []vault.Affiliated) (beyond []wish) {
	count := len(now) - 1 // the owner's is not one of them
	for _, a := range changes {
		if a.Affiliation == vault.NotAffiliated {
			count--
		}
	}
	for _, a := range changes {
		if now[a.Account] != vault.NotAffiliated {
			continue
		}
		if count++; count > e.limits.Affiliations {
			beyond = append(beyond, wish{account: a.Account})
		}
	}
	return beyond
}
