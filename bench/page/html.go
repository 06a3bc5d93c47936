package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"slices"
	"strings"
)

//go:embed page.html
var pageTemplate string

//go:embed page.css
var pageStyle string

// stackedColumns is how many columns a table may have that a telephone shows as
// one; each row of a wider one becomes a list there.
const stackedColumns = 4

// WriteHTML writes the report as one page that needs nothing but itself: no
// network, no script, its charts inside.
func (r *Report) WriteHTML(w io.Writer) error {
	page, err := template.New("page").Funcs(template.FuncMap{
		"style":   func() template.CSS { return template.CSS(pageStyle) },
		"charts":  bothLayouts,
		"prose":   prose,
		"stacked": func(t Table) bool { return len(t.Columns) > stackedColumns },
		"column":  func(t Table, i int) string { return t.Columns[i] },
		"numeric": numeric,
		"classes": classes,
		"joined":  joined,
	}).Parse(pageTemplate)
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return page.Execute(w, r)
}

// bothLayouts draws a chart for wide and for narrow pages; the style shows one.
func bothLayouts(c Chart) (template.HTML, error) {
	first, err := drawSVG(c, wide)
	if err != nil {
		return "", err
	}
	second, err := drawSVG(c, narrow)
	if err != nil {
		return "", err
	}
	return template.HTML(first + second), nil
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

// prose is a text in which `…` is code.
func prose(text string) template.HTML {
	escaped := template.HTMLEscapeString(text)
	return template.HTML(codeSpan.ReplaceAllString(escaped, "<code>$1</code>"))
}

// Lengths above which a cell needs more than its column.
const (
	longWord  = 24 // may be broken anywhere
	wordyCell = 11 // has a line of its own on a narrow page
)

// classes says how a cell is set.
func classes(t Table, i int, c Cell) template.HTMLAttr {
	var all []string
	if numeric(t, i) {
		all = append(all, "number")
	}
	if slices.ContainsFunc(strings.Fields(c.Text), func(word string) bool { return len(word) > longWord }) {
		all = append(all, "long")
	}
	if len(c.Text) > wordyCell {
		all = append(all, "wordy")
	}
	if len(all) == 0 {
		return ""
	}
	return template.HTMLAttr(` class="` + strings.Join(all, " ") + `"`)
}

var withUnit = regexp.MustCompile(`(\d) (ms\b|s\b|min\b|h\b|B\b|KiB\b|MiB\b|GiB\b|cores\b|ns\b|%)`)

// joined keeps a figure and its unit in one line.
func joined(text string) string { return withUnit.ReplaceAllString(text, "$1\u00a0$2") }

// numeric reports whether a column holds figures, which are set to the right.
func numeric(t Table, i int) bool {
	for _, row := range t.Rows {
		if row[i].Value != nil {
			return true
		}
	}
	return false
}
