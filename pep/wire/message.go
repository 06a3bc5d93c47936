package wire

import (
	"strconv"
	"time"

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
	Command   string // the condition of XEP-0050, "" if there is none

	Own string // the condition of urn:pepvault:errors:0, "" if there is none

	Bytes, Limit int64           // of <quota-exceeded/>; <too-many-batches/> has a limit
	Floor        uint32          // of <key-version-too-low/>
	Records      int             // of <confirm-required/>
	Cursor       string          // of <revision-mismatch/> and <stale/>
	Items        []pep.StateItem // likewise
	RetryAfter   int             // seconds, of <retry/>
	// Node and Affiliations are of a refused change of affiliations: those that
	// could not be changed, as they still are (XEP-0060 §8.9.2.4).
	Node         string
	Affiliations []vault.Affiliated
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
	if node, list, err := decodeAffiliated(stanza); err == nil {
		e.Node, e.Affiliations = node, list
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
	case part.name.space == nsCommands:
		e.Command = part.name.local
	case part.name.space == nsErrors:
		e.readOwn(part)
	}
}

func (e *StanzaError) readOwn(part *element) {
	e.Own = part.name.local
	switch e.Own {
	case "key-version-too-low":
		floor, _ := strconv.ParseUint(part.attr("floor"), 10, 32)
		e.Floor = uint32(floor)
	case "revision-mismatch", "stale":
		e.Cursor = part.attr("cursor")
		e.Items, _ = decodeStateItems(part)
	case "confirm-required":
		e.Records, _ = strconv.Atoi(part.attr("records"))
	case "quota-exceeded", "too-many-batches":
		e.Bytes, _ = strconv.ParseInt(part.attr("bytes"), 10, 64)
		e.Limit, _ = strconv.ParseInt(part.attr("limit"), 10, 64)
	case "retry":
		e.RetryAfter, _ = strconv.Atoi(part.attr("after"))
	}
}

// Notification is one message of the service about a vault.
type Notification struct {
	Node    string
	Changes []vault.Change // what the message carries; revisions if it has a State
	Purged  bool           // all records are gone
	Config  *pep.Form      // the new configuration, empty if payloads are muted; nil = no change of it
	Deleted bool
	// Past says that the record was published earlier and is told now because
	// the device came: at its Published (XEP-0203).
	Past  bool
	State *pep.State // nil if the message has none
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
	if err = n.readEvent(event); err == nil {
		err = n.readDelay(message.child(name{nsDelay, "delay"}))
	}
	return n, err
}

func (n *Notification) readDelay(delay *element) error {
	if delay == nil {
		return nil
	}
	stamp, err := time.Parse(time.RFC3339Nano, delay.attr("stamp"))
	if err != nil || len(n.Changes) == 0 {
		return badReply("a delay without a time or a record")
	}
	n.Past, n.Changes[0].Published = true, stamp.UTC()
	return nil
}

func (n *Notification) readEvent(event *element) error {
	for _, c := range event.children {
		switch c.name {
		case name{nsPubsubEvent, "delete"}:
			n.Node, n.Deleted = c.attr("node"), true
		case name{nsPubsubEvent, "purge"}:
			n.Node, n.Purged = c.attr("node"), true
		case name{nsPubsubEvent, "configuration"}:
			form, err := formIn(c)
			if err != nil {
				return err
			}
			if form == nil {
				form = new(pep.Form)
			}
			n.Node, n.Config = c.attr("node"), form
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
