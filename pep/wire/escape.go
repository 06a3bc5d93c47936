package wire

import "unicode/utf8"

// appendText appends character data.
func appendText[T string | []byte](dst []byte, s T) []byte { return appendEscaped(dst, s, false) }

// appendAttr appends an attribute, with the space before it.
func appendAttr(dst []byte, local, value string) []byte {
	dst = append(append(dst, ' '), local...)
	return append(appendEscaped(append(dst, "='"...), value, true), '\'')
}

// appendAttrIf is appendAttr for a value that is not "".
func appendAttrIf(dst []byte, local, value string) []byte {
	if value == "" {
		return dst
	}
	return appendAttr(dst, local, value)
}

// appendEscaped escapes for text, or for a value in single quotes. What XML
// can't carry at all becomes U+FFFD: no stanza of ours may end the stream.
func appendEscaped[T string | []byte](dst []byte, s T, attribute bool) []byte {
	from := 0
	for i := 0; i < len(s); {
		b := s[i]
		if b >= utf8.RuneSelf {
			size := sizeOfRune(s, i)
			if size > 0 {
				i += size
				continue
			}
		} else if plain[b] {
			i++
			continue
		}
		dst = append(dst, s[from:i]...)
		size := 1
		if b >= utf8.RuneSelf {
			size = -sizeOfRune(s, i)
		}
		dst = append(dst, escapeOf(b, attribute)...)
		i += size
		from = i
	}
	return append(dst, s[from:]...)
}

// sizeOfRune is the size of the character at s[i], negative if it is none that
// XML has.
func sizeOfRune[T string | []byte](s T, i int) int {
	var window [utf8.UTFMax]byte
	n := copy(window[:], s[i:])
	r, size := utf8.DecodeRune(window[:n])
	if r == utf8.RuneError && size == 1 || r == 0xfffe || r == 0xffff {
		return -size
	}
	return size
}

// plain are the ASCII characters that stand for themselves everywhere.
var plain = func() (t [utf8.RuneSelf]bool) {
	for b := range t {
		switch {
		case b < 0x20, b == '&', b == '<', b == '>', b == '\'':
		default:
			t[b] = true
		}
	}
	return t
}()

func escapeOf(b byte, attribute bool) string {
	switch b {
	case '&':
		return "&amp;"
	case '<':
		return "&lt;"
	case '>':
		return "&gt;"
	case '\r':
		return "&#13;"
	case '\'':
		if attribute {
			return "&apos;"
		}
		return "'"
	case '\t':
		if attribute {
			return "&#9;"
		}
		return "\t"
	case '\n':
		if attribute {
			return "&#10;"
		}
		return "\n"
	}
	return "\uFFFD"
}
