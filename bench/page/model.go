// Package page makes a report out of results files: a verdict, figures with
// their tables and charts, and what is needed to repeat them. There is one
// model, Report, and three ways to write it: HTML in one self-contained page,
// Markdown and JSON. Whatever stands in it was computed from the files.
package page

// Report is all that is said about some runs. Its parts are in the order in
// which they are read.
type Report struct {
	Title   string `json:"title"`
	Verdict string `json:"verdict"` // one sentence or two
	// Highlights are the few figures that say most.
	Highlights []Highlight `json:"highlights,omitempty"`
	// Doubts are what speaks against using the report as a whole: runs that
	// failed, that were cut off, or that measured their generator.
	Doubts   []string  `json:"doubts,omitempty"`
	Sections []Section `json:"sections"`
}

// Highlight is one figure with the words that say what it is.
type Highlight struct {
	Figure Cell   `json:"figure"`
	Label  string `json:"label"`
}

// Section is a part of the report under a heading of its own. One without
// figures says in Missing which run would fill it.
type Section struct {
	ID      string   `json:"id"` // a word, for links
	Title   string   `json:"title"`
	Text    []string `json:"text,omitempty"` // paragraphs
	Charts  []Chart  `json:"charts,omitempty"`
	Tables  []Table  `json:"tables,omitempty"`
	Code    []string `json:"code,omitempty"` // command lines
	Notes   []string `json:"notes,omitempty"`
	Missing string   `json:"missing,omitempty"`
}

// Table has a heading for each column; the first cell of a row is its heading.
type Table struct {
	Caption string   `json:"caption"`
	Columns []string `json:"columns"`
	Rows    [][]Cell `json:"rows"`
}

// Cell is what stands in a table: a text, and the figure that it was made of.
type Cell struct {
	Text  string   `json:"text"`
	Value *float64 `json:"value,omitempty"` // nil: the text is no figure
	Unit  Unit     `json:"unit,omitempty"`
}

// Chart is one or more panels above each other over the same horizontal axis.
type Chart struct {
	ID      string  `json:"id"`
	Title   string  `json:"title"`
	Summary string  `json:"summary"` // what it shows, for who can't see it
	Panels  []Panel `json:"panels"`
}

// Panel is a plot of series, or of bars.
type Panel struct {
	X      Axis     `json:"x"`
	Y      Axis     `json:"y"`
	Series []Series `json:"series,omitempty"`
	Groups []Group  `json:"groups,omitempty"`
}

// Axis says what is counted, and how.
type Axis struct {
	Label string `json:"label"`
	Unit  Unit   `json:"unit"`
	Log   bool   `json:"log,omitempty"` // then all its values are above 0
}

// Series are points in a row.
type Series struct {
	Name   string       `json:"name"`
	System string       `json:"system"` // a target; decides about the colour
	Stroke Stroke       `json:"stroke"`
	Points [][2]float64 `json:"points"`
}

// Stroke is how a series is drawn.
type Stroke string

// The strokes.
const (
	Solid  Stroke = "solid"
	Dashed Stroke = "dashed"
	Dotted Stroke = "dotted"
	Steps  Stroke = "steps" // a count that rises by one at each point
	Dots   Stroke = "dots"  // the points alone
)

// Group is some bars under one name.
type Group struct {
	Name string `json:"name"`
	Bars []Bar  `json:"bars"`
}

// Bar is one value, made of parts that are drawn behind each other.
type Bar struct {
	Name   string    `json:"name"`
	System string    `json:"system"`
	Parts  []float64 `json:"parts"`
	Text   string    `json:"text"` // stands at its end
}
