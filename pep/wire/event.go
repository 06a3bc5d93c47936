package wire

import (
	"time"

	"pepvault/pep"
)

// Detail says how much of an event an address is told.
type Detail uint8

const (
	Full Detail = iota
	// Quiet leaves out payloads and configurations, and of several changes all
	// but the state.
	Quiet
	// StateOnly leaves out everything but the state.
	StateOnly
)

// DetailOf tells how much of its event a notice brings.
func DetailOf(n pep.Notice) Detail {
	switch {
	case n.StateOnly:
		return StateOnly
	case n.Quiet:
		return Quiet
	}
	return Full
}

// EventBody returns the content of the messages that tell of ev, in the order
// in which they must be sent (PROTOCOL §6): one for each change, since client
// libraries drop events with several, then one for the configuration that a key
// rotation changed, and the <state/> in the last, since a
// cursor inside a commit is never sent. A muted event, and one of nothing but a
// state, is that alone. A body may be shared by any number of [AppendMessage].
func EventBody(ev *pep.Event, detail Detail) [][]byte {
	var dst []byte
	switch {
	case ev.Muted, detail == StateOnly:
	case ev.Deleted:
		dst = append(appendAttr(append(dst, eventOpen+"<delete"...), "node", ev.Node), "/></event>"...)
	case ev.Purged:
		dst = append(appendAttr(append(dst, eventOpen+"<purge"...), "node", ev.Node), "/></event>"...)
	case ev.Config != nil && len(ev.Changes) == 0:
		dst = appendConfiguration(dst, ev, detail == Quiet || ev.Bare)
	case len(ev.Changes) == 1 && ev.Config == nil, detail == Full && len(ev.Changes) > 0:
		return changeBodies(ev, detail == Quiet || ev.Bare)
	}
	return [][]byte{appendState(dst, ev.State)}
}

const eventOpen = "<event xmlns='" + nsPubsubEvent + "'>"

// appendConfiguration appends the event of XEP-0060 §8.2.5.4, with the form or
// without.
func appendConfiguration(dst []byte, ev *pep.Event, bare bool) []byte {
	dst = appendAttr(append(dst, eventOpen+"<configuration"...), "node", ev.Node)
	if bare {
		return append(dst, "/></event>"...)
	}
	return append(appendForm(append(dst, '>'), "result", ev.Config), "</configuration></event>"...)
}

func changeBodies(ev *pep.Event, bare bool) [][]byte {
	bodies := make([][]byte, 0, len(ev.Changes))
	for i := range ev.Changes {
		change := &ev.Changes[i]
		room := 512
		if !bare {
			room += change.Cost()
		}
		dst := append(make([]byte, 0, room), eventOpen+"<items"...)
		dst = append(appendAttr(dst, "node", ev.Node), '>')
		if change.Gone {
			dst = append(appendAttr(append(dst, "<retract"...), "id", change.ID), "/>"...)
		} else {
			dst = appendItem(dst, &change.Record, bare)
		}
		dst = append(dst, "</items></event>"...)
		if ev.Past {
			dst = appendDelay(dst, change.Published)
		}
		if i == len(ev.Changes)-1 && ev.Config == nil {
			dst = appendState(dst, ev.State)
		}
		bodies = append(bodies, dst)
	}
	if ev.Config != nil {
		bodies = append(bodies, appendState(appendConfiguration(nil, ev, bare), ev.State))
	}
	return bodies
}

// appendDelay appends a <delay/> (XEP-0203) with a time as XEP-0082 has it.
func appendDelay(dst []byte, t time.Time) []byte {
	dst = append(dst, "<delay xmlns='"+nsDelay+"' stamp='"...)
	return append(t.UTC().AppendFormat(dst, time.RFC3339Nano), "'/>"...)
}

// AppendMessage appends a headline with a body of [EventBody].
func AppendMessage(dst []byte, from, to, id string, body []byte) []byte {
	dst = appendRoute(append(dst, "<message type='headline'"...), from, to, id)
	dst = append(append(dst, '>'), body...)
	return append(dst, "</message>"...)
}
