package pep

import (
	"cmp"
	"context"
	"slices"

	"pepvault/vault"
)

// expirePresence says that a subscription ends with the presence of the
// resource (XEP-0060 §12.5).
const expirePresence = "presence"

// optionFields are the options of a subscription: all are as they are.
func optionFields(full bool) []Field {
	fields := []Field{
		{Name: "pubsub#deliver", Kind: kindBoolean, Label: "Send events", Values: []string{"1"}},
		{Name: "pubsub#digest", Kind: kindBoolean, Label: "Gather events", Values: []string{"0"}},
		{Name: "pubsub#include_body", Kind: kindBoolean, Label: "Send a text for people with the events", Values: []string{"0"}},
	}
	if full {
		fields = append(fields, Field{
			Name: "pubsub#expire", Kind: kindText, Label: "When the subscription ends", Values: []string{expirePresence},
		})
	}
	return fields
}

// checkOptions accepts the options of a subscription, by bare or full JID, if
// they are what the service does anyway; nil is none. The error is
// ErrInvalidOptions.
func checkOptions(form *Form, full bool) error {
	if form == nil {
		return nil
	}
	if form.Type != FormSubscribe && form.Type != "" {
		return Refuse(ErrInvalidOptions, "the FORM_TYPE of subscription options is %s", FormSubscribe)
	}
	fixed := Form{Fields: optionFields(full)}
	seen := map[string]bool{}
	for _, given := range form.Fields {
		if seen[given.Name] {
			return Refuse(ErrInvalidOptions, "the field %s stands there twice", quote(given.Name))
		}
		seen[given.Name] = true
		f := fixed.Field(given.Name)
		if f == nil {
			if given.Name == "pubsub#expire" {
				return Refuse(ErrInvalidOptions, "a subscription of a bare JID does not expire")
			}
			return Refuse(ErrInvalidOptions, "there is no option %s", quote(given.Name))
		}
		text, ok := single(given.Values)
		if f.Kind == kindBoolean {
			var on bool
			on, ok = boolean(given.Values)
			text = boolText(on)
		}
		if !ok || text != f.Values[0] {
			return Refuse(ErrInvalidOptions, "the option %s is always %s", given.Name, f.Values[0])
		}
	}
	return nil
}

// optionsOf finds the subscription that options are of, and reports whether it
// is one of a full JID.
func (e *Engine) optionsOf(v vault.View, req Request, key vault.Key, jid string) (full bool, err error) {
	if err := admit(v, req); err != nil {
		return false, err
	}
	stored, err := v.Subscriptions(key)
	if err != nil {
		return false, err
	}
	full, err = unsubscriber(req.Sender, jid)
	if err != nil {
		return false, err
	}
	_, subscribed := e.interest.has(req.Sender, key)
	if !full {
		subscribed = slices.Contains(stored, vault.Subscription{Account: req.Sender.Account})
	}
	if !subscribed {
		return full, Refuse(ErrNotSubscribed, "there is no such subscription")
	}
	return full, nil
}

func (e *Engine) readOptions(ctx context.Context, req Request, op ReadOptions, done func(Outcome)) error {
	answer := OptionsForm{Node: op.Node, JID: op.JID, Form: Form{Type: FormSubscribe}}
	if op.JID == "" && op.Node == "" && req.Sender.Account == req.Owner {
		answer.Form.Fields = optionFields(false)
		done(Outcome{Answer: answer})
		return nil
	}
	key := vault.Key{Account: req.Owner, Node: op.Node}
	return e.ordered(ctx, key, func(v vault.View) (Outcome, error) {
		full, err := false, admit(v, req)
		if op.JID != "" {
			full, err = e.optionsOf(v, req, key, op.JID)
		} else if err == nil {
			_, err = v.Vault(key)
		}
		answer.Form.Fields = optionFields(full)
		return Outcome{Answer: answer}, err
	}, done)
}

func (e *Engine) setOptions(ctx context.Context, req Request, op SetOptions, done func(Outcome)) error {
	key := vault.Key{Account: req.Owner, Node: op.Node}
	return e.ordered(ctx, key, func(v vault.View) (Outcome, error) {
		full, err := e.optionsOf(v, req, key, op.JID)
		if err == nil && !op.Cancel {
			err = checkOptions(&op.Form, full)
		}
		return Outcome{Answer: OptionsSet{}}, err
	}, done)
}

// listSubscriptions lists all of the sender's account, those of its other
// devices too (XEP-0060 §5.6).
func (e *Engine) listSubscriptions(ctx context.Context, req Request, op ListSubscriptions, done func(Outcome)) error {
	account := req.Sender.Account
	read := func(v vault.View) (Outcome, error) {
		vaults, err := e.asked(v, req, op.Node)
		if err != nil {
			return Outcome{}, err
		}
		list := SubscriptionList{Node: op.Node}
		for _, key := range vaults {
			stored, err := v.Subscriptions(key)
			if err != nil {
				return Outcome{}, err
			}
			if slices.Contains(stored, vault.Subscription{Account: account}) {
				list.List = append(list.List, Subscribed{Node: key.Node, JID: string(account)})
			}
			for _, resource := range e.interest.subscribers(account, key) {
				list.List = append(list.List, Subscribed{Node: key.Node, JID: string(account) + "/" + resource})
			}
		}
		slices.SortFunc(list.List, func(a, b Subscribed) int {
			return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.JID, b.JID))
		})
		cost := 0
		for _, s := range list.List {
			cost += nameCost(s.Node) + nameCost(s.JID)
		}
		return Outcome{Answer: list}, e.checkAnswer(cost)
	}
	return e.listed(ctx, vault.Key{Account: req.Owner, Node: op.Node}, read, done)
}

// checkAnswer refuses a list that no answer could hold.
func (e *Engine) checkAnswer(cost int) error {
	if cost > e.answer {
		return Refuse(ErrPolicy, "the list is too long for an answer: ask about one vault")
	}
	return nil
}

// listed reads a list about one vault in its turn, or one about all of them.
func (e *Engine) listed(ctx context.Context, key vault.Key, read func(vault.View) (Outcome, error), done func(Outcome)) error {
	if key.Node != "" {
		return e.ordered(ctx, key, read, done)
	}
	var out Outcome
	err := e.store.View(ctx, func(v vault.View) (err error) {
		out, err = read(v)
		return err
	})
	if err != nil {
		return err
	}
	done(out)
	return nil
}

// asked returns the vaults that a list is about, "" naming all of the owner's:
// those of them that the sender may read. The owner hears ErrNoVault of one
// that is absent.
func (e *Engine) asked(v vault.View, req Request, node string) ([]vault.Key, error) {
	if node != "" {
		key := vault.Key{Account: req.Owner, Node: node}
		a, err := affiliationOf(v, req.Sender.Account, key)
		if err != nil || !may(a, read) {
			return nil, err
		}
		_, err = v.Vault(key)
		return []vault.Key{key}, err
	}
	vaults, err := visible(v, req)
	keys := make([]vault.Key, len(vaults))
	for i, state := range vaults {
		keys[i] = state.Key
	}
	return keys, err
}
