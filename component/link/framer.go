package link

import "bufio"

// Framer cuts the bytes of a stream behind the handshake into its depth-1
// elements. It knows quotes, CDATA, comments and processing instructions, but
// checks no more of XML than it needs to find the end of an element: what is
// inside is for the decoder that gets the element.
type Framer struct{}

// NewFramer reads from r. spaces are the namespaces that the stream's start
// tag declares, by prefix ("" is the default namespace); nil stands for those
// of XEP-0114.
func NewFramer(r *bufio.Reader, limits Limits, spaces map[string]string) *Framer {
	panic("link: being written")
}

// Next returns the next element, blocking until it is complete. White space,
// comments and processing instructions between elements are passed over. A
// stream error is an element like others ({NSStream error}). The error is
// ErrStreamEnd after `</stream:stream>`, ErrNotWellFormed (wrapped) for what
// can't be framed, io.EOF or io.ErrUnexpectedEOF, or what r returned; after an
// error the Framer is of no use.
func (f *Framer) Next() (Stanza, error) { panic("link: being written") }
