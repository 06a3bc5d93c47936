package pep

import (
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

func (e *Engine) subscribe(ctx context.Context, req Request, op Subscribe, done func(Outcome)) error {
	full, err := subscriber(req.Sender, op.JID)
	if err != nil {
		return err
	}
	if err := admit(req); err != nil {
		return err
	}
	if full {
		return e.subscribeFull(ctx, req, op, done)
	}
	key := vault.Key{Account: req.Owner, Node: op.Node}
	subscription := vault.Subscription{Account: req.Sender.Account}
	return e.update(ctx, key, func(tx vault.Tx, told func(func())) error {
		stored, err := tx.Subscriptions(key)
		if err != nil {
			return err
		}
		if !slices.Contains(stored, subscription) {
			if err := e.roomToSubscribe(key, stored); err != nil {
				return err
			}
			if err := tx.Subscribe(key, subscription); err != nil {
				return err
			}
		}
		told(func() { done(Outcome{Answer: Subscribed{Node: op.Node, JID: string(req.Sender.Account)}}) })
		return nil
	})
}

func (e *Engine) subscribeFull(ctx context.Context, req Request, op Subscribe, done func(Outcome)) error {
	key := vault.Key{Account: req.Owner, Node: op.Node}
	return e.update(ctx, key, func(tx vault.Tx, told func(func())) error {
		stored, err := tx.Subscriptions(key)
		if err != nil {
			return err
		}
		known, subscribed := e.interest.has(req.Sender, key)
		if !known {
			return Refuse(ErrPresenceRequired, "a full JID is subscribed only while its directed presence is known: send that first")
		}
		if !subscribed {
			if err := e.roomToSubscribe(key, stored); err != nil {
				return err
			}
		}
		jid := string(req.Sender.Account) + "/" + req.Sender.Resource
		told(func() {
			// A device whose presence ended meanwhile is gone: it gets this
			// answer if anything, and nothing later.
			e.interest.add(req.Sender, key)
			done(Outcome{Answer: Subscribed{Node: op.Node, JID: jid}})
		})
		return nil
	})
}

func (e *Engine) roomToSubscribe(key vault.Key, stored []vault.Subscription) error {
	if limit := e.limits.Subscriptions; len(stored)+e.interest.count(key) >= limit {
		return Refuse(ErrTooManySubscriptions, "a vault has at most %d subscriptions", limit)
	}
	return nil
}

func (e *Engine) unsubscribe(ctx context.Context, req Request, op Unsubscribe, done func(Outcome)) error {
	full, err := subscriber(req.Sender, op.JID)
	if err != nil {
		return err
	}
	if err := admit(req); err != nil {
		return err
	}
	key := vault.Key{Account: req.Owner, Node: op.Node}
	return e.update(ctx, key, func(tx vault.Tx, told func(func())) error {
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
