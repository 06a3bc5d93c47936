package configs

import (
	"bytes"
	"fmt"
	"strings"
)

// lineWidth is where the documented file breaks its comments.
const lineWidth = 96

// Describe returns the documented default file: every key with its meaning,
// type, unit, bounds and default. It is a good file as soon as the secret can
// be found.
func Describe() []byte {
	var b bytes.Buffer
	comment(&b, `The configuration of pepvault. "pepvault config print" writes this file, "pepvault config check --config FILE" says all that is wrong with one. An unknown or repeated key is a fault. Every key but component.jid may be left out; sizes are in bytes.`)
	for _, table := range tables() {
		b.WriteString("\n")
		comment(&b, table.text)
		fmt.Fprintf(&b, "[%s]\n", table.name)
		for _, k := range keys() {
			if k.table == table.name {
				describeKey(&b, k)
			}
		}
	}
	return b.Bytes()
}

func describeKey(b *bytes.Buffer, k key) {
	b.WriteString("\n")
	comment(b, k.text)
	comment(b, k.facts())
	switch {
	case k.value != "":
		fmt.Fprintf(b, "%s = %s\n", k.name, k.value)
	case k.shown:
		fmt.Fprintf(b, "%s = %s\n", k.name, k.example)
	default:
		fmt.Fprintf(b, "# %s = %s\n", k.name, k.example)
	}
}

// facts is the line of type, unit, bounds and default.
func (k key) facts() string {
	kind := k.kind
	if k.unit != "" {
		kind += " (" + k.unit + ")"
	}
	facts := []string{"Type: " + kind, "allowed: " + k.allowed}
	switch {
	case k.required:
		facts = append(facts, "required")
	case k.value != "":
		facts = append(facts, "default: "+k.value)
	case k.derived != "":
		facts = append(facts, "default: "+k.derived)
	}
	return strings.Join(facts, "; ") + "."
}

// comment writes text as comment lines.
func comment(b *bytes.Buffer, text string) {
	width := 0
	for _, word := range strings.Fields(text) {
		switch {
		case width == 0:
			b.WriteString("#")
			width = 1
		case width+1+len(word) > lineWidth:
			b.WriteString("\n#")
			width = 1
		}
		b.WriteString(" " + word)
		width += 1 + len(word)
	}
	b.WriteString("\n")
}
