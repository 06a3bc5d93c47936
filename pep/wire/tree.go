package wire

import (
	"bytes"
	"errors"
	"io"

	"pepvault/pep"
)

// element is a protocol element. Payloads are no elements: they are turned
// into their stored form as they are read.
type element struct {
	name     name
	attrs    []attr
	children []*element
	text     []byte // character data, of all places
	payloads []content
}

// attr returns the value of an attribute in no namespace, "" if it is absent.
func (e *element) attr(local string) string {
	for _, a := range e.attrs {
		if a.space == "" && a.local == local {
			return a.value
		}
	}
	return ""
}

func (e *element) has(local string) bool {
	for _, a := range e.attrs {
		if a.space == "" && a.local == local {
			return true
		}
	}
	return false
}

// child returns the first child of that name, or nil.
func (e *element) child(n name) *element {
	for _, c := range e.children {
		if c.name == n {
			return c
		}
	}
	return nil
}

// mixed reports text where only elements belong.
func (e *element) mixed() bool { return len(bytes.TrimSpace(e.text)) > 0 }

func (e *element) empty() bool {
	return len(e.children) == 0 && len(e.payloads) == 0 && !e.mixed()
}

// tree reads the whole stanza.
func (r *reader) tree() (*element, error) {
	var root *element
	path := make([]*element, 0, 8)
	for {
		r.inPayload = holdsPayload(path)
		kind, err := r.next()
		if err != nil {
			if errors.Is(err, io.EOF) && root != nil {
				return root, nil
			}
			return nil, atEnd(err)
		}
		switch {
		case kind == endToken:
			path = path[:len(path)-1]
		case kind == textToken:
			err = addText(path, r.text)
		case len(path) > 0:
			path, err = r.descend(path)
		case root != nil:
			err = malformed()
		default:
			root = &element{name: r.start.name, attrs: r.start.attrs}
			path = append(path, root)
		}
		if err != nil {
			return nil, err
		}
	}
}

// descend reads a child of the innermost element: its payload, or an element
// whose content comes next or is skipped.
func (r *reader) descend(path []*element) ([]*element, error) {
	parent := path[len(path)-1]
	if r.inPayload {
		if len(parent.payloads) > 0 {
			return nil, r.refuse("an item holds exactly one payload element")
		}
		c, err := r.content(r.start)
		parent.payloads = append(parent.payloads, c)
		return path, err
	}
	if err := r.count(); err != nil {
		return nil, err
	}
	e := &element{name: r.start.name, attrs: r.start.attrs}
	parent.children = append(parent.children, e)
	if !known(e.name.space) {
		return path, r.skip()
	}
	return append(path, e), nil
}

func (r *reader) count() error {
	if r.elements++; r.elements > maxElements {
		return pep.Refuse(pep.ErrPolicy, "more than %d elements in one request", maxElements)
	}
	return nil
}

// skip reads to the end of the element that has just been opened.
func (r *reader) skip() error {
	for depth := len(r.open); len(r.open) >= depth; {
		kind, err := r.next()
		if err != nil {
			return err
		}
		if kind == startToken {
			if err := r.count(); err != nil {
				return err
			}
		}
	}
	return nil
}

func addText(path []*element, text []byte) error {
	if len(path) == 0 {
		if len(bytes.TrimSpace(text)) > 0 {
			return malformed()
		}
		return nil
	}
	// Only the new piece is looked at: text may come in a great many.
	if holdsPayload(path) && !holdsCiphertext(path) && len(bytes.TrimSpace(text)) > 0 {
		return pep.Refuse(pep.ErrInvalidPayload, "a payload is an element, not text")
	}
	e := path[len(path)-1]
	e.text = append(e.text, text...)
	return nil
}

// holdsPayload reports whether the children of the innermost element are
// payloads: stanza, wrapper, operation, item.
func holdsPayload(path []*element) bool {
	if len(path) != 4 {
		return holdsCiphertext(path)
	}
	space := path[1].name.space
	if space != nsPubsub && space != nsPubsubEvent {
		return false
	}
	operation := path[2].name
	return path[3].name == name{space, "item"} &&
		(operation == name{space, "publish"} || operation == name{space, "items"})
}

// holdsCiphertext reports whether the innermost element is an item of a page of
// a sync or of a chunk: it holds a foreign payload, or the ciphertext itself as text.
func holdsCiphertext(path []*element) bool {
	if len(path) != 3 || path[2].name != (name{nsSync, "item"}) {
		return false
	}
	return path[1].name == name{nsSync, "sync"} || path[1].name == name{nsSync, "chunk"}
}
