package wire

import (
	"fmt"
	"strconv"

	"pepvault/pep"
)

// AppendResult appends the answer to the request with header request, from
// where that went and to where it came from. answer is any pep.Answer but
// pep.Later, or [Pong], [VersionInfo], [ItemNamesPage],
// [CommandResult], [CommandList] or [CommandInfo]; others panic.
func AppendResult(dst []byte, request Header, answer any) []byte {
	dst = append(dst, "<iq type='result'"...)
	dst = appendRoute(dst, request.To, request.From, request.ID)
	start := len(dst)
	dst = append(dst, '>')
	dst = appendAnswer(dst, request.To, answer)
	if len(dst) == start+1 {
		return append(dst[:start], "/>"...)
	}
	return append(dst, "</iq>"...)
}

// answers each write some answers to a request that went to address; false for
// others.
var answers = [...]func(dst []byte, address string, answer any) ([]byte, bool){
	appendItemResult, appendNodeResult, appendSubscriptionResult, appendAffiliationResult,
	appendDiscoResult, appendSyncResult, appendDownloadResult, appendBatchResult, appendCommandResult, appendServiceResult,
}

// appendAnswer appends what stands in the result, nothing if that is empty.
// address is where the request went.
func appendAnswer(dst []byte, address string, answer any) []byte {
	for _, write := range answers {
		if dst, ok := write(dst, address, answer); ok {
			return dst
		}
	}
	panic(fmt.Sprintf("wire: no result is written for a %T", answer))
}

// appendRoute appends the attributes that every stanza of ours has: without a
// from of its own a host closes the stream.
func appendRoute(dst []byte, from, to, id string) []byte {
	return appendAttr(appendAttr(appendAttr(dst, "from", from), "to", to), "id", id)
}

const pubsubOpen = "<pubsub xmlns='" + nsPubsub + "'>"

func appendServiceResult(dst []byte, _ string, answer any) ([]byte, bool) {
	switch a := answer.(type) {
	case VersionInfo:
		return appendVersion(dst, a), true
	case Pong:
		return dst, true
	case pep.Erased:
		dst = appendAttr(append(dst, "<erased xmlns='"+nsAccount+"'"...), "vaults", strconv.Itoa(a.Vaults))
		return append(appendAttr(dst, "records", strconv.Itoa(a.Records)), "/>"...), true
	}
	return dst, false
}

func appendVersion(dst []byte, a VersionInfo) []byte {
	dst = appendText(append(dst, "<query xmlns='"+nsVersion+"'><name>"...), a.Name)
	dst = appendText(append(dst, "</name><version>"...), a.Version)
	return append(dst, "</version></query>"...)
}

func decodeErase(e *element, _ extensions) (Call, error) {
	if !e.empty() || len(e.attrs) > 0 {
		return nil, pep.Refuse(pep.ErrBadRequest, "<erase/> is empty")
	}
	return pep.Erase{}, nil
}
