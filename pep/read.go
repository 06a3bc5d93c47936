package pep

import (
	"context"

	"pepvault/vault"
)

func (e *Engine) items(ctx context.Context, req Request, op Items, done func(Outcome)) error {
	key := vault.Key{Account: req.Owner, Node: op.Node}
	return e.planned(ctx, key, func(v vault.View) (plan, error) { return e.planItems(v, req, op) }, done)
}

// plan is an answer before its payloads are read. read works inside the view
// that made the plan.
type plan struct {
	cost int // bounds the answer's records from above
	read func() (Answer, error)
}

// planned answers at once and in its turn where the plan is small. A large
// answer is Later: then the plan is made again, from the state and the rights
// of that moment.
func (e *Engine) planned(ctx context.Context, key vault.Key, make func(vault.View) (plan, error), done func(Outcome)) error {
	later := func() (answer Answer, err error) {
		err = e.store.View(context.WithoutCancel(ctx), func(v vault.View) error {
			plan, err := make(v)
			if err != nil {
				return err
			}
			answer, err = plan.read()
			return err
		})
		return answer, err
	}
	return e.ordered(ctx, key, func(v vault.View) (Outcome, error) {
		plan, err := make(v)
		if err != nil {
			return Outcome{}, err
		}
		if plan.cost > e.inline {
			return Outcome{Answer: Later{Cost: plan.cost, Read: later}}, nil
		}
		answer, err := plan.read()
		return Outcome{Answer: answer}, err
	}, done)
}

func (e *Engine) planItems(v vault.View, req Request, op Items) (plan, error) {
	if err := admit(v, req); err != nil {
		return plan{}, err
	}
	key := vault.Key{Account: req.Owner, Node: op.Node}
	if op.IDs != nil {
		return e.planByID(v, key, op.IDs)
	}
	state, err := v.Vault(key)
	if err != nil {
		return plan{}, err
	}
	w, err := newWindow(v, state, op.Max)
	if err != nil {
		return plan{}, err
	}
	switch {
	case op.Page != nil:
		return e.planPage(v, w, *op.Page)
	case op.Max > 0:
		return e.planLatest(v, w), nil
	case state.Cost > int64(e.answer):
		return e.planPage(v, w, PageRequest{Max: -1})
	default:
		return e.planLatest(v, w), nil
	}
}

func (e *Engine) planByID(v vault.View, key vault.Key, ids []string) (plan, error) {
	heads, err := v.Heads(key, ids)
	if err != nil {
		return plan{}, err
	}
	cost := 0
	for _, head := range heads {
		cost += head.Cost
	}
	if cost > e.answer {
		return plan{}, Refuse(ErrPolicy, "the records together exceed the %d bytes of an answer: ask for fewer", e.answer)
	}
	return plan{cost: cost, read: func() (Answer, error) {
		records, err := v.Records(key, ids)
		return ItemsPage{Node: key.Node, Records: records}, err
	}}, nil
}

// costOf estimates n records of a vault, from above for records of like size.
func (e *Engine) costOf(state vault.Vault, n int) int {
	if state.Records == 0 {
		return 0
	}
	average := (state.Cost + int64(state.Records) - 1) / int64(state.Records)
	return int(min(average*int64(min(n, state.Records)), int64(e.answer)))
}

func records(page vault.Page) []vault.Record {
	found := make([]vault.Record, len(page.Changes))
	for i, c := range page.Changes {
		found[i] = c.Record
	}
	return found
}
