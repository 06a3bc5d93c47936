package pep

import (
	"context"
	"strconv"
	"strings"

	"pepvault/vault"
)

func (e *Engine) listVaults(ctx context.Context, req Request, done func(Outcome)) error {
	if admit(req) != nil {
		// A stranger learns nothing, not even that there is something to hide.
		done(Outcome{Answer: VaultList{}})
		return nil
	}
	var list VaultList
	err := e.store.View(ctx, func(v vault.View) (err error) {
		list.Vaults, err = v.Vaults(req.Owner)
		return err
	})
	if err != nil {
		return err
	}
	done(Outcome{Answer: list})
	return nil
}

func (e *Engine) describeVault(ctx context.Context, req Request, op DescribeVault, done func(Outcome)) error {
	if err := admit(req); err != nil {
		return err
	}
	key := vault.Key{Account: req.Owner, Node: op.Node}
	return e.ordered(ctx, key, func(v vault.View) (Outcome, error) {
		state, err := v.Vault(key)
		return Outcome{Answer: VaultInfo{Vault: state}}, err
	}, done)
}

// items answers a small request at once and in its turn, and makes a large
// one Later.
func (e *Engine) items(ctx context.Context, req Request, op Items, done func(Outcome)) error {
	if err := admit(req); err != nil {
		return err
	}
	key := vault.Key{Account: req.Owner, Node: op.Node}
	return e.ordered(ctx, key, func(v vault.View) (Outcome, error) {
		plan, err := e.planItems(v, key, op)
		if err != nil {
			return Outcome{}, err
		}
		if plan.cost > e.inline {
			return Outcome{Answer: Later{Cost: plan.cost, Read: func() (Answer, error) {
				return e.readLater(context.WithoutCancel(ctx), req, op)
			}}}, nil
		}
		page, err := plan.read()
		return Outcome{Answer: page}, err
	}, done)
}

func (e *Engine) readLater(ctx context.Context, req Request, op Items) (Answer, error) {
	if err := admit(req); err != nil {
		return nil, err
	}
	var page Answer
	err := e.store.View(ctx, func(v vault.View) error {
		plan, err := e.planItems(v, vault.Key{Account: req.Owner, Node: op.Node}, op)
		if err != nil {
			return err
		}
		page, err = plan.read()
		return err
	})
	return page, err
}

// plan is an answer before its payloads are read. read works inside the view
// that made the plan.
type plan struct {
	cost int // bounds the answer's records from above
	read func() (Answer, error)
}

func (e *Engine) planItems(v vault.View, key vault.Key, op Items) (plan, error) {
	state, err := v.Vault(key)
	if err != nil {
		return plan{}, err
	}
	switch {
	case op.IDs != nil:
		return e.planByID(v, key, op.IDs)
	case op.Page != nil && op.Max > 0:
		return plan{}, &Refusal{Err: ErrUnsupported, Text: "max_items together with a page", Feature: "rsm"}
	case op.Page != nil:
		return e.planPage(v, state, *op.Page)
	case op.Max > 0:
		return e.planLatest(v, state, op.Max)
	case state.Cost > int64(e.answer):
		return e.planPage(v, state, PageRequest{Max: -1})
	default:
		return e.planLatest(v, state, max(state.Records, 1))
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

func (e *Engine) planLatest(v vault.View, state vault.Vault, n int) (plan, error) {
	limit := vault.PageLimit{Records: n, Cost: e.answer}
	return plan{cost: e.costOf(state, n), read: func() (Answer, error) {
		latest, err := v.Latest(state.Key, limit)
		if err != nil {
			return nil, err
		}
		page := ItemsPage{Node: state.Key.Node, Records: records(latest)}
		if latest.More && len(page.Records) < min(n, state.Records) {
			page.Set = e.resultSet(state, page.Records)
		}
		return page, nil
	}}, nil
}

func (e *Engine) planPage(v vault.View, state vault.Vault, p PageRequest) (plan, error) {
	after := vault.Revision(0)
	if p.After != "" {
		var err error
		if after, err = parseUID(p.After, state); err != nil {
			return plan{}, err
		}
	}
	if p.Max < 0 {
		p.Max = max(state.Records, 1)
	}
	if p.Max == 0 { // XEP-0059 §2.7: only the count
		return plan{read: func() (Answer, error) {
			return ItemsPage{Node: state.Key.Node, Set: e.resultSet(state, nil)}, nil
		}}, nil
	}
	limit := vault.PageLimit{Records: p.Max, Cost: e.answer, Live: true}
	return plan{cost: e.costOf(state, p.Max), read: func() (Answer, error) {
		page, err := v.Changes(state.Key, after, limit)
		if err != nil {
			return nil, err
		}
		found := records(page)
		return ItemsPage{Node: state.Key.Node, Records: found, Set: e.resultSet(state, found)}, nil
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

func (e *Engine) resultSet(state vault.Vault, page []vault.Record) *ResultSet {
	set := &ResultSet{Count: state.Records}
	if len(page) > 0 {
		set.First = uid(page[0].Revision, state)
		set.Last = uid(page[len(page)-1].Revision, state)
	}
	return set
}

// uid names a place in the order of a vault's records (XEP-0059 §2). It is
// good for as long as the vault's history goes on: whatever is written, what
// follows it is what changed later.
func uid(r vault.Revision, state vault.Vault) string {
	return epochTag(state) + "-" + strconv.FormatUint(uint64(r), 36)
}

func parseUID(text string, state vault.Vault) (vault.Revision, error) {
	number, found := strings.CutPrefix(text, epochTag(state)+"-")
	r, err := strconv.ParseUint(number, 36, 64)
	if !found || err != nil || r == 0 || vault.Revision(r) > state.Revision || uid(vault.Revision(r), state) != text {
		return 0, Refuse(ErrUnknownPage, "the page position is not one of this vault")
	}
	return vault.Revision(r), nil
}

func epochTag(state vault.Vault) string {
	tag := uint64(0)
	for _, b := range state.Epoch[:5] {
		tag = tag<<8 | uint64(b)
	}
	return strconv.FormatUint(tag, 36)
}
