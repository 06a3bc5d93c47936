package wire

import (
	"fmt"

	"pepvault/pep"
)

// AppendRequest appends the request for call, which is one that
// [DecodeRequest] returns; others panic. header.From may be "": a client's
// server stamps it. header.Name and header.Type are not read.
func AppendRequest(dst []byte, header Header, call Call) []byte {
	kind, ask := questionOf(call)
	dst = append(append(append(dst, "<iq type='"...), kind...), '\'')
	dst = appendAttrIf(dst, "from", header.From)
	dst = appendAttrIf(dst, "to", header.To)
	dst = append(appendAttr(dst, "id", header.ID), '>')
	return append(ask(dst), "</iq>"...)
}

// Ask returns the type and the child of the <iq/> that asks for call, for who
// writes stanzas by other means than [AppendRequest].
func Ask(call Call) (kind string, payload []byte) {
	kind, ask := questionOf(call)
	return kind, ask(nil)
}

// askers each know some calls: they return what appends the element of a call,
// and the type of its iq, "" for a call of another.
var askers = [...]func(call Call) (kind string, ask func(dst []byte) []byte){
	askItem, askNode, askSubscription, askAffiliation, askDisco, askSync, askDownload, askBatch, askCommand, askService,
}

func questionOf(call Call) (kind string, ask func(dst []byte) []byte) {
	for _, of := range askers {
		if kind, ask = of(call); kind != "" {
			return kind, ask
		}
	}
	panic(fmt.Sprintf("wire: no request is written for a %T", call))
}

func askService(call Call) (kind string, ask func(dst []byte) []byte) {
	switch call.(type) {
	case Version:
		return "get", func(dst []byte) []byte { return askQuery(dst, nsVersion, "", nil) }
	case pep.Erase:
		return "set", func(dst []byte) []byte { return append(dst, "<erase xmlns='"+nsAccount+"'/>"...) }
	case Ping:
		return "get", func(dst []byte) []byte { return append(dst, "<ping xmlns='"+nsPing+"'/>"...) }
	}
	return "", nil
}
