package wire

import (
	"strconv"
	"time"

	"pepvault/pep"
	"pepvault/vault"
)

// Batches and key rotation (PROTOCOL §9).

// decodeBatchRef reads a <batch/>: in which batch the change beside it is
// staged, or which of its changes are taken out again.
func decodeBatchRef(e *element) (ref *pep.BatchRef, unstage []string, err error) {
	id, err := batchID(e)
	if err != nil || e.mixed() {
		return nil, nil, pep.Refuse(pep.ErrBadRequest, "<batch/> names a batch by its id")
	}
	ref = &pep.BatchRef{ID: id, Cursor: e.attr("cursor")}
	if len(e.children) == 0 {
		if ref.Cursor == "" {
			return nil, nil, pep.Refuse(pep.ErrBadRequest, "<batch/> names the cursor that the device holds")
		}
		return ref, nil, nil
	}
	unstage, err = decodeUnstaged(e.children)
	return ref, unstage, err
}

func decodeUnstaged(children []*element) (ids []string, err error) {
	if len(children) != 1 || children[0].name != (name{nsBatch, "unstage"}) || children[0].mixed() {
		return nil, pep.Refuse(pep.ErrBadRequest, "<batch/> holds an <unstage/> or nothing")
	}
	for _, c := range children[0].children {
		if c.name != (name{nsBatch, "item"}) || !c.empty() {
			return nil, pep.Refuse(pep.ErrBadRequest, "<unstage/> holds empty items with an id")
		}
		if err := checkName("record id", c.attr("id")); err != nil {
			return nil, err
		}
		ids = append(ids, c.attr("id"))
	}
	if len(ids) == 0 {
		return nil, pep.Refuse(pep.ErrItemRequired, "<unstage/> names no item")
	}
	return ids, checkUnique(ids)
}

func batchID(e *element) (string, error) {
	id := e.attr("id")
	if !vault.ValidBatchID(id) {
		return "", pep.Refuse(pep.ErrBadRequest, "a batch has an id of 1 to %d bytes", vault.MaxBatchIDBytes)
	}
	return id, nil
}

// decodeUnstage reads a <batch/> that stands alone.
func decodeUnstage(e *element, _ extensions) (Call, error) {
	ref, ids, err := decodeBatchRef(e)
	if err != nil {
		return nil, err
	}
	return unstageOf(ref, ids)
}

func unstageOf(ref *pep.BatchRef, ids []string) (Call, error) {
	if ids == nil {
		return nil, pep.Refuse(pep.ErrBadRequest, "<batch/> goes with a publish, a retract or an <unstage/> in it")
	}
	return pep.Unstage{ID: ref.ID, IDs: ids}, nil
}

func decodeBegin(e *element, _ extensions) (Call, error) {
	node, err := nodeOf(e)
	if err != nil {
		return nil, err
	}
	id, err := batchID(e)
	if err != nil {
		return nil, err
	}
	op := pep.BeginBatch{Node: node, ID: id, Cursor: e.attr("cursor")}
	if op.Cursor == "" || !e.empty() {
		return nil, pep.Refuse(pep.ErrBadRequest, "<begin/> is empty and names the cursor that the device holds")
	}
	if e.has("rotate-to") {
		version, ok := parseCount(e.attr("rotate-to"), vault.MaxKeyVersion)
		if !ok || version == 0 {
			return nil, pep.Refuse(pep.ErrBadRequest, "rotate-to is a key version from 1 to %d", vault.MaxKeyVersion)
		}
		op.RotateTo = uint32(version)
	}
	return op, nil
}

func decodeCommit(e *element, _ extensions) (Call, error) {
	id, err := batchID(e)
	if err != nil {
		return nil, err
	}
	op := pep.CommitBatch{ID: id, Cursor: e.attr("cursor")}
	if op.Cursor == "" || !e.empty() {
		return nil, pep.Refuse(pep.ErrBadRequest, "<commit/> is empty and names the cursor that the device holds")
	}
	if e.has("changes") {
		n, ok := parseCount(e.attr("changes"), 1<<31-1)
		if !ok || n == 0 {
			return nil, pep.Refuse(pep.ErrBadRequest, "changes is the number of those that are staged, from 1")
		}
		op.Changes = int(n)
	}
	switch e.attr("confirm") {
	case "", "false", "0":
	case "true", "1":
		op.Confirm = true
	default:
		return nil, pep.Refuse(pep.ErrBadRequest, "confirm is true or false")
	}
	return op, nil
}

func decodeAbort(e *element, _ extensions) (Call, error) {
	id, err := batchID(e)
	if err == nil && !e.empty() {
		err = pep.Refuse(pep.ErrBadRequest, "<abort/> is empty")
	}
	return pep.AbortBatch{ID: id}, err
}

func appendBatchResult(dst []byte, _ string, answer any) ([]byte, bool) {
	switch a := answer.(type) {
	case pep.Begun:
		dst = appendAttr(append(dst, "<batch xmlns='"+nsBatch+"'"...), "id", a.ID)
		dst = append(dst, " expires='"...)
		return append(a.Expires.UTC().AppendFormat(dst, time.RFC3339), "'/>"...), true
	case pep.Committed:
		return appendState(dst, a.State), true
	case pep.Unstaged, pep.Aborted:
		return dst, true
	}
	return dst, false
}

func askBatch(call Call) (kind string, ask func(dst []byte) []byte) {
	switch c := call.(type) {
	case pep.BeginBatch:
		return "set", func(dst []byte) []byte { return askBegin(dst, c) }
	case pep.Unstage:
		return "set", func(dst []byte) []byte { return askUnstage(dst, c) }
	case pep.CommitBatch:
		return "set", func(dst []byte) []byte { return askCommit(dst, c) }
	case pep.AbortBatch:
		return "set", func(dst []byte) []byte {
			return append(appendAttr(append(dst, "<abort xmlns='"+nsBatch+"'"...), "id", c.ID), "/>"...)
		}
	}
	return "", nil
}

func askBegin(dst []byte, op pep.BeginBatch) []byte {
	dst = appendAttr(append(dst, "<begin xmlns='"+nsBatch+"'"...), "id", op.ID)
	dst = appendAttr(appendAttr(dst, "node", op.Node), "cursor", op.Cursor)
	if op.RotateTo > 0 {
		dst = appendAttr(dst, "rotate-to", strconv.FormatUint(uint64(op.RotateTo), 10))
	}
	return append(dst, "/>"...)
}

func askUnstage(dst []byte, op pep.Unstage) []byte {
	dst = appendAttr(append(dst, "<batch xmlns='"+nsBatch+"'"...), "id", op.ID)
	return append(askIDs(append(dst, "><unstage>"...), op.IDs), "</unstage></batch>"...)
}

func askCommit(dst []byte, op pep.CommitBatch) []byte {
	dst = appendAttr(append(dst, "<commit xmlns='"+nsBatch+"'"...), "id", op.ID)
	dst = appendAttr(dst, "cursor", op.Cursor)
	if op.Changes > 0 {
		dst = appendAttr(dst, "changes", strconv.Itoa(op.Changes))
	}
	if op.Confirm {
		dst = append(dst, " confirm='true'"...)
	}
	return append(dst, "/>"...)
}

// askBatchRef appends what has a change staged.
func askBatchRef(dst []byte, ref *pep.BatchRef) []byte {
	if ref == nil {
		return dst
	}
	dst = appendAttr(append(dst, "<batch xmlns='"+nsBatch+"'"...), "id", ref.ID)
	return append(appendAttr(dst, "cursor", ref.Cursor), "/>"...)
}

func decodeBatchReply(iq *element, call Call) (any, error) {
	switch call.(type) {
	case pep.BeginBatch:
		return decodeBegun(iq)
	case pep.CommitBatch:
		state, err := decodeState(iq)
		if err == nil && (state == nil || state.Cursor == "" || state.Previous == "") {
			err = badReply("a commit without its cursors")
		}
		if err != nil {
			return nil, err
		}
		return pep.Committed{State: *state}, nil
	case pep.Unstage:
		return pep.Unstaged{}, nil
	case pep.AbortBatch:
		return pep.Aborted{}, nil
	}
	return nil, nil
}

func decodeBegun(iq *element) (any, error) {
	e, err := within(iq, name{nsBatch, "batch"})
	if err != nil {
		return nil, err
	}
	expires, err := time.Parse(time.RFC3339, e.attr("expires"))
	if err != nil || e.attr("id") == "" {
		return nil, badReply("a batch without id or expiry")
	}
	return pep.Begun{ID: e.attr("id"), Expires: expires.UTC()}, nil
}
