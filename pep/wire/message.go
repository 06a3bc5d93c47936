package wire

import (
	"strconv"

	"pepvault/pep"
	"pepvault/vault"
)

// StanzaError is an answer of type error, or a bounced message.
type StanzaError struct {
	Type      string // auth, cancel, continue, modify or wait
	Condition string // of RFC 6120 §8.3.3
	Text      string
	Pubsub    string // the condition of XEP-0060, "" if there is none
	Feature   string // of pubsub condition "unsupported"

	Bytes, Limit int64 // of <quota-exceeded/>
	RetryAfter   int   // seconds, of <retry/>
}

func (e *StanzaError) Error() string {
	s := e.Type + "/" + e.Condition
	if e.Pubsub != "" {
		s += " (" + e.Pubsub + ")"
	}
	if e.Text != "" {
		s += ": " + e.Text
	}
	return s
}

// decodeError reads a stanza of type error. What its error lacks stays "".
func decodeError(stanza *element) *StanzaError {
	e := &StanzaError{Condition: "undefined-condition"}
	for _, c := range stanza.children {
		if c.name != (name{nsClient, "error"}) {
			continue
		}
		e.Type = c.attr("type")
		for _, part := range c.children {
			e.read(part)
		}
	}
	return e
}

func (e *StanzaError) read(part *element) {
	switch {
	case part.name == name{nsStanzas, "text"}:
		e.Text = string(part.text)
	case part.name.space == nsStanzas:
		e.Condition = part.name.local
	case part.name.space == nsPubsubErrors:
		e.Pubsub, e.Feature = part.name.local, part.attr("feature")
	case part.name == name{nsErrors, "quota-exceeded"}:
		e.Bytes, _ = strconv.ParseInt(part.attr("bytes"), 10, 64)
		e.Limit, _ = strconv.ParseInt(part.attr("limit"), 10, 64)
	case part.name == name{nsErrors, "retry"}:
		e.RetryAfter, _ = strconv.Atoi(part.attr("after"))
	}
}

// Notification is one message of the service about a vault.
type Notification struct {
	Node    string
	Changes []vault.Change // what the message carries; revisions if it has a State
	Deleted bool
	State   *pep.State // nil if the message has none
}

// DecodeMessage reads a <message/> of the service. One of type error is a
// [*StanzaError]; other errors are [ErrBadReply].
func DecodeMessage(raw []byte) (Notification, error) {
	message, err := decodeStanza(raw, "message")
	if err != nil {
		return Notification{}, err
	}
	var n Notification
	if n.State, err = decodeState(message); err != nil {
		return Notification{}, err
	}
	event := message.child(name{nsPubsubEvent, "event"})
	switch {
	case event == nil && n.State == nil:
		return Notification{}, badReply("neither event nor state")
	case event == nil:
		n.Node = n.State.Node
		return n, nil
	}
	err = n.readEvent(event)
	return n, err
}

func (n *Notification) readEvent(event *element) error {
	for _, c := range event.children {
		switch c.name {
		case name{nsPubsubEvent, "delete"}:
			n.Node, n.Deleted = c.attr("node"), true
		case name{nsPubsubEvent, "items"}:
			n.Node = c.attr("node")
			n.readChanges(c)
		}
	}
	if n.Node == "" {
		return badReply("event without a node")
	}
	return nil
}

func (n *Notification) readChanges(items *element) {
	for _, c := range items.children {
		change := vault.Change{Record: recordOf(c), Gone: c.name.local == "retract"}
		if n.State != nil {
			for _, item := range n.State.Items {
				if item.ID == change.ID {
					change.Revision = item.Revision
				}
			}
		}
		n.Changes = append(n.Changes, change)
	}
}
