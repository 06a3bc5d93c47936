package wire

import (
	"encoding/xml"
	"unicode/utf8"
)

// namesWell reports whether the local parts of prefixed names begin as names
// do: raw tokens check only what stands before the colon.
func namesWell(t xml.StartElement) bool {
	for _, a := range t.Attr {
		if !beginsWell(a.Name) {
			return false
		}
	}
	return beginsWell(t.Name)
}

func beginsWell(n xml.Name) bool {
	if n.Space == "" {
		return true
	}
	first, _ := utf8.DecodeRuneInString(n.Local)
	switch {
	case first == '-', first == '.', '0' <= first && first <= '9', first == 0xb7,
		0x300 <= first && first <= 0x36f, 0x203f <= first && first <= 0x2040:
		return false
	}
	return true
}
