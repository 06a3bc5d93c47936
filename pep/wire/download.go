package wire

import (
	"strconv"

	"pepvault/pep"
)

// Downloads, both ways (PROTOCOL §7): here it is the service that asks, by
// chunks, and the device that answers.

func decodeDownload(e *element, _ extensions) (Call, error) {
	node, err := nodeOf(e)
	switch {
	case err != nil:
		return nil, err
	case !e.empty():
		return nil, pep.Refuse(pep.ErrBadRequest, "<download/> is empty in a request")
	case !e.has("id"):
		return nil, pep.Refuse(pep.ErrBadRequest, "<download/> has an id that the device chooses")
	}
	op := pep.Download{ID: e.attr("id"), Node: node, Cursor: e.attr("cursor")}
	if err := checkName("download id", op.ID); err != nil {
		return nil, err
	}
	if err := decodeBounds(e, bound{"chunk-bytes", &op.ChunkBytes}, bound{"window", &op.Window}); err != nil {
		return nil, err
	}
	return op, nil
}

func appendDownloadResult(dst []byte, _ string, answer any) ([]byte, bool) {
	a, ok := answer.(pep.DownloadBegun)
	if !ok {
		return dst, false
	}
	dst = appendAttr(append(dst, "<download xmlns='"+nsSync+"'"...), "id", a.ID)
	dst = appendAttr(dst, "records", strconv.Itoa(a.Records))
	dst = appendAttr(dst, "bytes", strconv.FormatInt(a.Bytes, 10))
	dst = appendBound(appendBound(dst, "chunk-bytes", a.ChunkBytes), "window", a.Window)
	return append(appendReset(dst, a.Reset, a.Fork), "/>"...), true
}

// AppendChunk appends the <iq/> that brings a device a chunk. header.Name and
// header.Type are not read.
func AppendChunk(dst []byte, header Header, c pep.Chunk) []byte {
	dst = append(appendRoute(append(dst, "<iq type='set'"...), header.From, header.To, header.ID), '>')
	dst = appendAttr(append(dst, "<chunk xmlns='"+nsSync+"'"...), "download", c.Download)
	dst = appendAttr(appendAttr(dst, "seq", strconv.Itoa(c.Seq)), "cursor", c.Page.Cursor)
	if !c.Page.More {
		dst = append(dst, " last='true'"...)
	}
	dst = appendReset(dst, c.Page.Reset, c.Page.Fork)
	if c.Page.First {
		dst = append(dst, " first='true'"...)
	}
	if len(c.Page.Changes) == 0 {
		return append(dst, "/></iq>"...)
	}
	return append(appendChanges(append(dst, '>'), c.Page.Changes), "</chunk></iq>"...)
}

// DecodeChunk reads what [AppendChunk] writes; [ReadHeader] gives its header.
// The error is [ErrBadReply].
func DecodeChunk(raw []byte) (pep.Chunk, error) {
	iq, err := decodeStanza(raw, "iq")
	if err != nil {
		return pep.Chunk{}, err
	}
	e, err := within(iq, name{nsSync, "chunk"})
	if err != nil || iq.attr("type") != "set" {
		return pep.Chunk{}, badReply("not a chunk of a download")
	}
	c := pep.Chunk{
		Download: e.attr("download"),
		Page:     pep.SyncPage{Cursor: e.attr("cursor"), More: e.attr("last") != "true"},
	}
	seq, isCount := parseCount(e.attr("seq"), 1<<31-1)
	if c.Download == "" || c.Page.Cursor == "" || !isCount {
		return pep.Chunk{}, badReply("a chunk without its download, its number or its cursor")
	}
	c.Seq = int(seq)
	if err := decodePass(e, &c.Page); err != nil {
		return pep.Chunk{}, err
	}
	return c, nil
}

// AppendAck appends a device's answer to a chunk that it has taken. chunk is
// the header of that. A chunk that it does not take is answered by
// [AppendError] with [ErrUnknownChunk].
func AppendAck(dst []byte, chunk Header) []byte {
	dst = appendAttr(append(dst, "<iq type='result'"...), "to", chunk.From)
	return append(appendAttr(dst, "id", chunk.ID), "/>"...)
}

func askDownload(call Call) (kind string, ask func(dst []byte) []byte) {
	op, ok := call.(pep.Download)
	if !ok {
		return "", nil
	}
	return "set", func(dst []byte) []byte {
		dst = appendAttr(append(dst, "<download xmlns='"+nsSync+"'"...), "id", op.ID)
		dst = appendAttrIf(appendAttr(dst, "node", op.Node), "cursor", op.Cursor)
		dst = appendBound(appendBound(dst, "chunk-bytes", op.ChunkBytes), "window", op.Window)
		return append(dst, "/>"...)
	}
}

func decodeDownloadReply(iq *element, call Call) (any, error) {
	if _, ok := call.(pep.Download); !ok {
		return nil, nil
	}
	e, err := within(iq, name{nsSync, "download"})
	if err != nil {
		return nil, err
	}
	a := pep.DownloadBegun{ID: e.attr("id")}
	var counts [4]uint64
	for i, attr := range []string{"records", "bytes", "chunk-bytes", "window"} {
		most := uint64(1<<31 - 1)
		if attr == "bytes" {
			most = 1<<63 - 1
		}
		var ok bool
		if counts[i], ok = parseCount(e.attr(attr), most); !ok || a.ID == "" {
			return nil, badReply("a download without its id, its bounds or its counts")
		}
	}
	a.Records, a.Bytes, a.ChunkBytes, a.Window = int(counts[0]), int64(counts[1]), int(counts[2]), int(counts[3])
	if a.Reset, a.Fork, err = decodeReset(e); err != nil {
		return nil, err
	}
	return a, nil
}
