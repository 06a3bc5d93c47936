package pep

import (
	"cmp"
	"context"
	"slices"

	"pepvault/vault"
)

// subscriber reads the JID of a subscription request. It has to be the
// sender's own: bare, or this very resource (XEP-0060 §6.1.3.1).
func subscriber(s Sender, jid string) (full bool, err error) {
	bare, resource := vault.SplitAddress(jid)
	account, err := vault.PrepareAccount(bare)
	if err != nil {
		return false, Refuse(ErrMalformedJID, "the JID of the subscription can't be read")
	}
	if account != s.Account || resource != "" && resource != s.Resource {
		return false, Refuse(ErrInvalidJID, "a device subscribes its own bare or full JID")
	}
	return resource != "", nil
}

// unsubscriber is subscriber for a subscription that there should be. Another
// account's is forbidden then (XEP-0060 §6.2.3.3, §6.3.4.1).
func unsubscriber(s Sender, jid string) (full bool, err error) {
	bare, _ := vault.SplitAddress(jid)
	if account, err := vault.PrepareAccount(bare); err == nil && account != s.Account {
		return false, Refuse(ErrForbidden, "this subscription is somebody else's")
	}
	return subscriber(s, jid)
}

// subscribe adds a subscription, and tells the device where the vault stands
// if it did not hear of it. Asked again it changes nothing, but the record
// that changed last is sent again where the vault is configured so.
func (e *Engine) subscribe(ctx context.Context, req Request, op Subscribe, done func(Outcome)) error {
	full, err := subscriber(req.Sender, op.JID)
	if err != nil {
		return err
	}
	if err := checkOptions(op.Options, full); err != nil {
		return err
	}
	key := vault.Key{Account: req.Owner, Node: op.Node}
	if full {
		defer e.interest.settled(req.Sender, key)
	}
	var refusal error
	err = e.update(ctx, key, func(tx vault.Tx, told func(func())) error {
		if err := admit(tx, req); err != nil {
			return err
		}
		n, err := e.prepareSubscription(tx, req.Sender, key, full)
		if err != nil {
			return err
		}
		told(func() {
			var notices []Notice
			if notices, refusal = n.begin(); refusal == nil {
				done(Outcome{Answer: Subscribed{Node: op.Node, JID: n.jid}, Notices: notices})
			}
		})
		return nil
	})
	return cmp.Or(err, refusal)
}

// newSubscription is one that a device asked for, in the transaction that
// makes it.
type newSubscription struct {
	engine *Engine
	sender Sender
	key    vault.Key
	full   bool
	jid    string
	again  bool   // the bare JID was subscribed already
	heard  bool   // the device heard of the vault already
	room   int    // for subscriptions by full JID
	event  *Event // for who did not hear of the vault
}

func (e *Engine) prepareSubscription(tx vault.Tx, s Sender, key vault.Key, full bool) (*newSubscription, error) {
	stored, err := tx.Subscriptions(key)
	if err != nil {
		return nil, err
	}
	bare := vault.Subscription{Account: s.Account}
	n := &newSubscription{
		engine: e, sender: s, key: key, full: full, jid: string(s.Account),
		again: slices.Contains(stored, bare), room: e.limits.Subscriptions - len(stored),
	}
	n.heard = e.interest.concerns(s, greeting{owner: key.Account, all: true}, key, n.again)
	switch {
	case full:
		n.jid = fullJID(s)
		if err = e.interest.mayAdd(s, key, n.room); err == nil {
			err = e.keepSubscribed(tx, s, key)
		}
	case !n.again && e.interest.count(key) >= n.room:
		err = errNoRoom()
	case !n.again:
		err = tx.Subscribe(key, bare)
	}
	if err != nil {
		return nil, err
	}
	state, err := tx.Vault(key)
	if err != nil {
		return nil, err
	}
	n.event, err = e.standing(tx, state, state.Config.SendLast != vault.SendNever)
	return n, err
}

// errNoRoom refuses a subscription beyond the bound of a vault.
func errNoRoom() error {
	return Refuse(ErrTooManySubscriptions, "this vault has as many subscriptions as it may")
}

// begin has the subscription count, after the commit, and tells where the
// vault stands.
func (n *newSubscription) begin() (notices []Notice, err error) {
	i := n.engine.interest
	if n.full {
		// Others may have taken the room since the transaction looked, and the
		// presence may have ended.
		if err := i.add(n.sender, n.key, n.room); err != nil {
			return nil, err
		}
	}
	if !n.heard || n.event.Past {
		notices = []Notice{{To: n.sender.Address, Account: n.sender.Account, Event: n.event}}
	}
	if !n.full && !n.again {
		notices = append(notices, i.newcomers(n.sender, n.key, n.event)...)
	}
	return notices, nil
}

func (e *Engine) unsubscribe(ctx context.Context, req Request, op Unsubscribe, done func(Outcome)) error {
	full, err := unsubscriber(req.Sender, op.JID)
	if err != nil {
		return err
	}
	key := vault.Key{Account: req.Owner, Node: op.Node}
	return e.update(ctx, key, func(tx vault.Tx, told func(func())) error {
		if err := admit(tx, req); err != nil {
			return err
		}
		_, had := e.interest.has(req.Sender, key)
		if full {
			// Also here an absent vault is told apart from an absent subscription.
			if _, err := tx.Vault(key); err != nil {
				return err
			}
		} else if had, err = tx.Unsubscribe(key, vault.Subscription{Account: req.Sender.Account}); err != nil {
			return err
		}
		if !had {
			return Refuse(ErrNotSubscribed, "there is no such subscription")
		}
		told(func() {
			if full {
				e.interest.drop(req.Sender, key)
			}
			done(Outcome{Answer: Unsubscribed{}})
		})
		return nil
	})
}

// newcomers addresses an event to the other resources of a sender whose bare
// JID was subscribed just now, and that did not hear of the vault before.
func (i *interest) newcomers(s Sender, key vault.Key, event *Event) []Notice {
	i.mu.Lock()
	defer i.mu.Unlock()
	var others []*resource
	for _, r := range i.accounts[s.Account] {
		if r.sender.Resource != s.Resource && r.there(key.Account) && !r.asksFor(key) {
			others = append(others, r)
		}
	}
	byArrival(others)
	list := make([]Notice, len(others))
	for n, r := range others {
		list[n] = Notice{To: r.sender.Address, Account: r.sender.Account, Event: event}
	}
	return list
}
