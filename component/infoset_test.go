package component_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// infoset writes XML so that equal texts mean the same: names with their
// namespaces, attributes sorted, no prefixes and declarations, references
// resolved.
func infoset(t testing.TB, raw []byte) []byte {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(raw))
	d.DefaultSpace = "jabber:client"
	var b bytes.Buffer
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return b.Bytes()
		}
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			attrs := slices.DeleteFunc(token.Attr, func(a xml.Attr) bool {
				return a.Name.Space == "xmlns" || a.Name.Space == "" && a.Name.Local == "xmlns"
			})
			slices.SortFunc(attrs, func(a, b xml.Attr) int {
				return strings.Compare(a.Name.Space+" "+a.Name.Local, b.Name.Space+" "+b.Name.Local)
			})
			fmt.Fprintf(&b, "<{%s}%s", token.Name.Space, token.Name.Local)
			for _, a := range attrs {
				if a.Name.Space != "" {
					a.Name.Space = "{" + a.Name.Space + "}"
				}
				fmt.Fprintf(&b, " %s%s=%q", a.Name.Space, a.Name.Local, a.Value)
			}
			b.WriteString(">")
		case xml.EndElement:
			b.WriteString("</>")
		case xml.CharData:
			fmt.Fprintf(&b, "%q", token)
		}
	}
}
