package link

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// Framer cuts the bytes of a stream behind the handshake into its depth-1
// elements. It knows quotes, CDATA, comments and processing instructions, but
// checks no more of XML than it needs to find the end of an element: what is
// inside is for the decoder that gets the element.
type Framer struct {
	r      *bufio.Reader
	limits Limits
	names  names
	err    error

	win  []byte // what r has buffered
	pos  int    // next byte of win
	base int64  // offset of win[0] in the stream

	state scanState
	depth int
	quote byte   // of the attribute value that we are in
	slash bool   // a start tag's last byte was its closing '/'
	want  string // rest of "--" or "[CDATA["
	end   closer // of the comment, CDATA section or instruction that we are in
	run   int    // how much of it has been seen
	ender []byte // name in the end tag that we are in, at depth 0 and 1

	// The element being read. Its bytes so far are kept and win[from:pos].
	stanza   Stanza
	capture  bool // false: skipped, or none of an element
	kept     []byte
	from     int
	tagAt    int // where in the element its current tag begins
	children int // at depth 2, up to 2
	grands   int // at depth 3 in the first child, up to 2
}

type scanState uint8

const (
	between scanState = iota // depth 0, outside of any markup
	text                     // inside an element
	opened                   // behind '<'
	banged                   // behind "<!"
	wanting                  // in "<!--" or "<![CDATA["
	closing                  // in what ends by closer
	startTag
	quoted
	endTag
)

// closer is how a section ends: n or more marks and '>'.
type closer struct {
	mark byte
	n    int
}

var (
	commentEnd     = closer{'-', 2}
	cdataEnd       = closer{']', 2}
	instructionEnd = closer{'?', 1}
)

// keepBytes is the size up to which the buffer is kept for the next element.
const keepBytes = 64 << 10

// NewFramer reads from r. spaces are the namespaces that the stream's start
// tag declares, by prefix ("" is the default namespace); nil stands for those
// of XEP-0114.
func NewFramer(r *bufio.Reader, limits Limits, spaces map[string]string) *Framer {
	return &Framer{r: r, limits: limits.complete(), names: newNames(spaces)}
}

// Next returns the next element, blocking until it is complete. White space,
// comments and processing instructions between elements are passed over. A
// stream error is an element like others ({NSStream error}). The error is
// ErrStreamEnd after `</stream:stream>`, ErrNotWellFormed (wrapped) for what
// can't be framed, io.EOF or io.ErrUnexpectedEOF, or what r returned; after an
// error the Framer is of no use.
func (f *Framer) Next() (Stanza, error) {
	for f.err == nil {
		if f.pos == len(f.win) {
			f.err = f.fill()
			continue
		}
		complete, err := f.step()
		if complete {
			return f.stanza, nil
		}
		f.err = err
	}
	return Stanza{}, f.err
}

// fill puts the window's part of the element aside and waits for more bytes.
func (f *Framer) fill() error {
	if f.capture {
		f.kept = append(f.kept, f.win[f.from:]...)
		if err := f.checkSize(); err != nil {
			return err
		}
	}
	f.base += int64(len(f.win))
	_, _ = f.r.Discard(len(f.win)) // they are buffered: it can't fail
	f.win, f.pos, f.from = nil, 0, 0
	if _, err := f.r.Peek(1); err != nil {
		if err == io.EOF && f.state != between {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	f.win, _ = f.r.Peek(f.r.Buffered())
	return nil
}

// checkSize stops keeping what has grown too big before it is complete.
func (f *Framer) checkSize() error {
	switch {
	case f.depth == 0 && len(f.kept) > f.limits.Tag:
		return f.header(f.kept)
	case len(f.kept) > f.limits.Bytes:
		f.skip(TooBig)
	}
	return nil
}

// step goes on in the window up to the next change of state.
func (f *Framer) step() (complete bool, err error) {
	rest := f.win[f.pos:]
	switch f.state {
	case between:
		return false, f.gap(rest)
	case text:
		i := bytes.IndexByte(rest, '<')
		if i < 0 {
			f.pos = len(f.win)
			return false, nil
		}
		f.tagAt = f.size() + i
		f.pos += i + 1
		f.state = opened
	case opened:
		return false, f.open(rest[0])
	case banged:
		f.pos++
		switch {
		case rest[0] == '-':
			f.want, f.end = "-", commentEnd
		case rest[0] == '[' && f.depth > 0:
			f.want, f.end = "CDATA[", cdataEnd
		default:
			return false, f.malformed("a document type or other declaration")
		}
		f.state = wanting
	case wanting:
		f.pos++
		if rest[0] != f.want[0] {
			return false, f.malformed("a broken comment or CDATA section")
		}
		if f.want = f.want[1:]; f.want == "" {
			f.state, f.run = closing, 0
		}
	case closing:
		f.close(rest)
	case startTag:
		return f.inStartTag(rest)
	case quoted:
		i := bytes.IndexByte(rest, f.quote)
		value := rest
		if i >= 0 {
			value = rest[:i]
			f.state = startTag
			f.pos++
		}
		f.pos += len(value)
		if bytes.IndexByte(value, '<') >= 0 {
			return false, f.malformed("'<' in an attribute")
		}
	case endTag:
		i := bytes.IndexByte(rest, '>')
		name := rest
		if i >= 0 {
			name = rest[:i]
			f.pos++
		}
		f.pos += len(name)
		if err := f.inEndTag(name); err != nil {
			return false, err
		}
		if i >= 0 {
			return f.ended()
		}
	}
	return false, nil
}

// gap passes white space between elements.
func (f *Framer) gap(rest []byte) error {
	for i, c := range rest {
		switch {
		case isSpace(c):
		case c == '<':
			f.pos += i
			f.from, f.tagAt = f.pos, 0
			f.stanza = Stanza{Offset: f.base + int64(f.pos)}
			f.capture, f.kept, f.children, f.grands = true, f.kept[:0], 0, 0
			f.names.reset()
			f.pos++
			f.state = opened
			return nil
		default:
			return f.malformed("text between stanzas")
		}
	}
	f.pos = len(f.win)
	return nil
}

// open tells by the byte behind '<' what begins there.
func (f *Framer) open(c byte) error {
	if isNameStart(c) {
		f.state, f.slash = startTag, false
		return nil
	}
	f.pos++
	if f.depth == 0 {
		f.capture = false
	}
	switch c {
	case '/':
		f.state, f.ender = endTag, f.ender[:0]
	case '!':
		f.state = banged
	case '?':
		f.state, f.end, f.run = closing, instructionEnd, 0
	default:
		return f.malformed("'<' without a name")
	}
	return nil
}

// close looks for the end of a comment, CDATA section or instruction.
func (f *Framer) close(rest []byte) {
	body := rest
	i := bytes.IndexByte(rest, '>')
	if i >= 0 {
		body = rest[:i]
		f.pos++
	}
	f.pos += len(body)
	run := 0
	for run < len(body) && run < f.end.n && body[len(body)-1-run] == f.end.mark {
		run++
	}
	if run == len(body) {
		run += f.run
	}
	if i < 0 {
		f.run = min(run, f.end.n)
		return
	}
	f.run = 0
	if run >= f.end.n {
		f.state = text
		if f.depth == 0 {
			f.state = between
		}
	}
}

func (f *Framer) inStartTag(rest []byte) (complete bool, err error) {
	for i, c := range rest {
		if f.slash && c != '>' {
			return false, f.malformed("'/' in a start tag")
		}
		switch c {
		case '"', '\'':
			f.quote, f.state = c, quoted
			f.pos += i + 1
			return false, nil
		case '/':
			f.slash = true
		case '<':
			return false, f.malformed("'<' in a start tag")
		case '>':
			f.pos += i + 1
			return f.started()
		}
	}
	f.pos = len(f.win)
	return false, nil
}

// started is called behind a start tag.
func (f *Framer) started() (complete bool, err error) {
	f.depth++
	f.state = text
	if f.capture {
		if err := f.look(); err != nil {
			return false, err
		}
	}
	if f.slash {
		return f.left()
	}
	return false, nil
}

// look reads the start tag that just ended, if it is one that matters.
func (f *Framer) look() error {
	// A window may reach beyond the limit: what is there does not count,
	// however the bytes were cut.
	within := f.size() <= f.limits.Bytes
	switch f.depth {
	case 1:
		if err := f.header(f.tag()); err != nil {
			return err
		}
	case 2:
		if f.children = min(f.children+1, 2); f.children == 1 && within {
			f.stanza.Child = f.names.element(f.tag())
		}
	case 3:
		if f.children == 1 {
			if f.grands = min(f.grands+1, 2); f.grands == 1 && within {
				f.stanza.Grand = f.names.element(f.tag())
			}
		}
	}
	if f.capture && f.depth > f.limits.Depth {
		if within {
			f.skip(TooDeep)
		} else {
			f.skip(TooBig)
		}
	}
	return nil
}

// header reads the stanza's start tag, or what came of it so far.
func (f *Framer) header(tag []byte) error {
	huge := len(tag) > f.limits.Tag
	if huge {
		tag = tag[:f.limits.Tag]
	}
	if err := f.names.stanza(tag, &f.stanza); err != nil && !huge {
		return f.malformed(err.Error())
	}
	if f.stanza.Name == (Name{NSStream, "stream"}) {
		return f.malformed("a stream in the stream")
	}
	if huge {
		f.skip(HugeStart)
	}
	return nil
}

// inEndTag takes a part of an end tag. The name counts only where it ends a
// stanza or the stream.
func (f *Framer) inEndTag(part []byte) error {
	if bytes.IndexByte(part, '<') >= 0 {
		return f.malformed("'<' in an end tag")
	}
	if f.depth > 1 {
		return nil
	}
	for _, c := range part {
		if n := len(f.ender); n > 0 && isSpace(f.ender[n-1]) {
			if !isSpace(c) {
				return f.malformed("more than a name in an end tag")
			}
			continue
		}
		f.ender = append(f.ender, c)
	}
	if len(f.ender) > f.limits.Tag {
		return f.malformed("an endless end tag")
	}
	return nil
}

// ended is called behind an end tag.
func (f *Framer) ended() (complete bool, err error) {
	name := f.ender
	if n := len(name); n > 0 && isSpace(name[n-1]) {
		name = name[:n-1]
	}
	switch f.depth {
	case 0:
		if f.names.resolve(name) == (Name{NSStream, "stream"}) {
			return false, ErrStreamEnd
		}
		return false, f.malformed("an end tag without a start")
	case 1:
		if !f.names.ends(name) {
			return false, f.malformed("the end tag of another element")
		}
	}
	return f.left()
}

// left is called behind the end of an element.
func (f *Framer) left() (complete bool, err error) {
	f.depth--
	f.state = text
	if f.depth > 0 {
		return false, nil
	}
	f.state = between
	f.stanza.RawBytes = f.base + int64(f.pos) - f.stanza.Offset
	if f.capture && f.size() > f.limits.Bytes {
		f.skip(TooBig)
	}
	if f.capture {
		f.stanza.Raw = f.whole()
		f.capture = false
	}
	return true, nil
}

// size is how much of the element has been read, if it is captured.
func (f *Framer) size() int { return len(f.kept) + f.pos - f.from }

// whole hands out the bytes of the element. A big buffer goes with them, so
// that none stays behind.
func (f *Framer) whole() []byte {
	last := f.win[f.from:f.pos]
	if len(f.kept) == 0 {
		return bytes.Clone(last)
	}
	if cap(f.kept) > keepBytes {
		raw := append(f.kept, last...)
		f.kept = nil
		return raw
	}
	raw := make([]byte, 0, len(f.kept)+len(last))
	raw = append(append(raw, f.kept...), last...)
	f.kept = f.kept[:0]
	return raw
}

// tag is the current tag up to here.
func (f *Framer) tag() []byte {
	if f.tagAt >= len(f.kept) {
		return f.win[f.from+f.tagAt-len(f.kept) : f.pos]
	}
	f.kept = append(f.kept, f.win[f.from:f.pos]...)
	f.from = f.pos
	return f.kept[f.tagAt:]
}

// skip stops keeping the element's bytes; it is followed to its end.
func (f *Framer) skip(why Reason) {
	f.stanza.Skipped = why
	f.capture = false
	f.kept = f.kept[:0]
	if cap(f.kept) > keepBytes {
		f.kept = nil
	}
}

func (f *Framer) malformed(what string) error {
	return fmt.Errorf("%w: %s at byte %d", ErrNotWellFormed, what, f.base+int64(f.pos))
}
