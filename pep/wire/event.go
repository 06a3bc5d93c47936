package wire

import "pepvault/pep"

// EventBody returns the content of the messages that tell of ev, in the order
// in which they must be sent (PROTOCOL §6): one for each change, since client
// libraries drop events with several, and the <state/> in the last, since a
// cursor inside a commit is never sent. An event of nothing but a state is that
// alone. quiet is for a bare JID: there is one message, without payload, and
// for several changes with the state alone. A body may be shared by any number
// of [AppendMessage].
func EventBody(ev *pep.Event, quiet bool) [][]byte {
	if !ev.Deleted && (len(ev.Changes) == 0 || quiet && len(ev.Changes) > 1) {
		return [][]byte{appendState(nil, ev.State)}
	}
	if ev.Deleted {
		dst := appendAttr(append([]byte(nil), "<event xmlns='"+nsPubsubEvent+"'><delete"...), "node", ev.Node)
		return [][]byte{appendState(append(dst, "/></event>"...), ev.State)}
	}
	bodies := make([][]byte, 0, len(ev.Changes))
	for i := range ev.Changes {
		change := &ev.Changes[i]
		room := 512
		if !quiet {
			room += change.Cost()
		}
		dst := append(make([]byte, 0, room), "<event xmlns='"+nsPubsubEvent+"'><items"...)
		dst = append(appendAttr(dst, "node", ev.Node), '>')
		if change.Gone {
			dst = append(appendAttr(append(dst, "<retract"...), "id", change.ID), "/>"...)
		} else {
			dst = appendItem(dst, &change.Record, quiet)
		}
		dst = append(dst, "</items></event>"...)
		if i == len(ev.Changes)-1 {
			dst = appendState(dst, ev.State)
		}
		bodies = append(bodies, dst)
	}
	return bodies
}

// AppendMessage appends a headline with a body of [EventBody].
func AppendMessage(dst []byte, from, to, id string, body []byte) []byte {
	dst = appendRoute(append(dst, "<message type='headline'"...), from, to, id)
	dst = append(append(dst, '>'), body...)
	return append(dst, "</message>"...)
}
