package page

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// WriteMarkdown writes the report as Markdown, with tables in place of charts.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n", inline(r.Title), paragraph(r.Verdict))
	if len(r.Highlights) > 0 {
		b.WriteString("\n")
	}
	for _, h := range r.Highlights {
		fmt.Fprintf(&b, "- **%s** %s\n", inline(h.Figure.Text), inline(h.Label))
	}
	for _, doubt := range r.Doubts {
		fmt.Fprintf(&b, "\n> %s\n", paragraph(doubt))
	}
	for _, s := range r.Sections {
		s.markdown(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s Section) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n", inline(s.Title))
	for _, text := range s.Text {
		fmt.Fprintf(b, "\n%s\n", paragraph(text))
	}
	for _, t := range s.Tables {
		t.markdown(b)
	}
	for _, note := range s.Notes {
		fmt.Fprintf(b, "\n%s\n", paragraph(note))
	}
	if len(s.Code) > 0 {
		code := strings.Join(s.Code, "\n")
		fmt.Fprintf(b, "\n%[1]ssh\n%[2]s\n%[1]s\n", fence(code), code)
	}
	if s.Missing != "" {
		fmt.Fprintf(b, "\n*%s*\n", inline(s.Missing))
	}
}

func (t Table) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s\n\n|", paragraph(t.Caption))
	for _, name := range t.Columns {
		fmt.Fprintf(b, " %s |", cell(name))
	}
	b.WriteString("\n|")
	for i := range t.Columns {
		if i > 0 && numeric(t, i) {
			b.WriteString("---:|")
		} else {
			b.WriteString("---|")
		}
	}
	for _, row := range t.Rows {
		b.WriteString("\n|")
		for _, c := range row {
			fmt.Fprintf(b, " %s |", cell(c.Text))
		}
	}
	b.WriteString("\n")
}

// fence is longer than any that the code itself could have.
func fence(code string) string {
	mark := "```"
	for strings.Contains(code, mark) {
		mark += "`"
	}
	return mark
}

// markup is what Markdown would read as more than a text.
var markup = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "#", `\#`, "~", `\~`, "&", "&amp;", "<", "&lt;", ">", "&gt;", "[", `\[`, "]", `\]`)

var lineEnds = strings.NewReplacer("\n", " ", "\r", " ")

// inline is a text of which only `code` has a meaning.
func inline(text string) string {
	parts := strings.Split(lineEnds.Replace(text), "`")
	for i := range parts {
		if len(parts)%2 == 0 || i%2 == 1 && parts[i] == "" { // a lone one, or a run of them
			return markup.Replace(strings.Join(parts, "'"))
		}
	}
	for i := 0; i < len(parts); i += 2 {
		parts[i] = markup.Replace(parts[i])
	}
	return strings.Join(parts, "`")
}

// begins is what makes a list or a heading out of a line.
var begins = regexp.MustCompile(`^\s*(\d+)?([-+=.)])(\s|$|[-+=])`)

// paragraph is a text that begins a line.
func paragraph(text string) string {
	text = strings.TrimSpace(inline(text))
	return begins.ReplaceAllString(text, `$1\$2$3`)
}

// cell is a text between the bars of a table. In one, a bar ends even code.
func cell(text string) string { return strings.ReplaceAll(inline(text), "|", `\|`) }
