package wire

import (
	"bytes"
	"encoding/base64"
	"strconv"

	"pepvault/pep"
	"pepvault/vault"
)

// content is a payload with the key version that it states, and the namespace
// of its element.
type content struct {
	payload    vault.Payload
	keyVersion uint32
	space      string
}

// content reads the payload element that s has opened.
func (r *reader) content(s start) (content, error) {
	var c content
	var err error
	switch {
	case s.name == name{nsRecord, "record"}:
		c, err = r.native(s)
	case s.name.space == nsRecord:
		err = r.refuse("unknown element in the namespace of records")
	case !r.limits.Foreign:
		err = r.refuse("this service takes only <record xmlns='%s'/> as payload", nsRecord)
	default:
		c, err = r.foreign(s)
	}
	if err != nil {
		return content{}, err
	}
	c.space = s.name.space
	if r.payloads += len(c.payload.Data); r.payloads > maxPayloads {
		return content{}, pep.Refuse(pep.ErrPayloadTooBig,
			"the payloads of one request may take %d bytes", maxPayloads)
	}
	return c, nil
}

func (r *reader) tooBig() error {
	return pep.Refuse(pep.ErrPayloadTooBig, "a record may take %d bytes", r.limits.RecordBytes)
}

// native reads our own record element (PROTOCOL §4). An empty ciphertext is
// refused: nothing that a device seals is empty.
func (r *reader) native(s start) (content, error) {
	if len(s.attrs) != 1 || s.attrs[0].space != "" || s.attrs[0].local != "key-version" {
		return content{}, r.refuse("a record has the attribute key-version and no other")
	}
	keyVersion, ok := parseCount(s.attrs[0].value, vault.MaxKeyVersion)
	if !ok {
		return content{}, r.refuse("key-version is a plain number from 0 to %d", vault.MaxKeyVersion)
	}
	text, err := r.recordText()
	if err != nil {
		return content{}, err
	}
	data, ok := decodeBase64(text)
	if !ok {
		return content{}, r.refuse("the ciphertext is not canonical base64 (RFC 4648 §4)")
	}
	if r.limits.RecordBytes > 0 && len(data) > r.limits.RecordBytes {
		return content{}, r.tooBig()
	}
	return content{payload: vault.Payload{Form: vault.Native, Data: data}, keyVersion: uint32(keyVersion)}, nil
}

// recordText returns the text of the open record element, in scratch.
func (r *reader) recordText() ([]byte, error) {
	r.scratch = append(r.scratch[:0], r.plainRun()...)
	for {
		if r.limits.RecordBytes > 0 && len(r.scratch) > base64.StdEncoding.EncodedLen(r.limits.RecordBytes) {
			return nil, r.tooBig()
		}
		kind, err := r.next()
		if err != nil {
			return nil, err
		}
		switch kind {
		case endToken:
			return r.scratch, nil
		case startToken:
			return nil, r.refuse("a record holds base64 text and no elements")
		case textToken:
			r.scratch = append(r.scratch, r.text...)
		}
	}
}

// decodeBase64 accepts only what encoding the result gives again.
func decodeBase64(text []byte) ([]byte, bool) {
	// The decoder skips line breaks.
	if len(text) == 0 || len(text)%4 != 0 || bytes.ContainsAny(text, "\r\n") {
		return nil, false
	}
	data := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Strict().Decode(data, text)
	if err != nil {
		return nil, false
	}
	return data[:n:n], true
}

// parseCount reads digits without sign, space or leading zero.
func parseCount(s string, most uint64) (uint64, bool) {
	if s == "" || len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && n <= most
}

// appendPayload appends the element that stands in an item.
func appendPayload(dst []byte, p vault.Payload, keyVersion uint32) []byte {
	if p.Form != vault.Native {
		return append(dst, p.Data...)
	}
	dst = append(dst, "<record xmlns='"+nsRecord+"' key-version='"...)
	dst = strconv.AppendUint(dst, uint64(keyVersion), 10)
	dst = append(dst, "'>"...)
	dst = base64.StdEncoding.AppendEncode(dst, p.Data)
	return append(dst, "</record>"...)
}
