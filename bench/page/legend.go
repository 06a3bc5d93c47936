package page

import (
	"slices"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Sizes of a legend.
const (
	swatch    vg.Length = 22
	swatchGap vg.Length = 5
	entryGap  vg.Length = 12
	entryLine vg.Length = 18
)

// entry is a name and how it is drawn.
type entry struct {
	series Series
	bar    bool
	paler  bool
	width  vg.Length
}

// legend is the names of all that a chart shows, in lines above it.
type legend struct {
	style text.Style
	lines [][]entry
}

// legendOf collects what a chart's panels have, each name once, and breaks it
// into lines.
func legendOf(c Chart, l layout) legend {
	g := legend{style: textStyle(l, ink)}
	g.style.YAlign = draw.YCenter
	var entries []entry
	split := false // a bar has a part of the service's
	add := func(s Series, bar bool) {
		if !slices.ContainsFunc(entries, func(e entry) bool { return e.series.Name == s.Name }) {
			entries = append(entries, entry{series: s, bar: bar, width: swatch + swatchGap + g.style.Width(s.Name)})
		}
	}
	for _, p := range c.Panels {
		for _, s := range p.Series {
			add(s, false)
		}
		for _, group := range p.Groups {
			for _, b := range group.Bars {
				add(Series{Name: b.Name, System: b.System}, true)
				split = split || len(b.Parts) > 1 && b.Parts[1] > 0
			}
		}
	}
	if split {
		name := "paler: the service's part"
		entries = append(entries, entry{series: Series{Name: name, System: component}, bar: true, paler: true, width: swatch + swatchGap + g.style.Width(name)})
	}
	g.lines = broken(entries, l.width)
	return g
}

// broken puts entries into lines: into one if that is wide enough, else each
// system begins a line of its own.
func broken(entries []entry, width vg.Length) [][]entry {
	all := -entryGap
	for _, e := range entries {
		all += e.width + entryGap
	}
	var lines [][]entry
	room := vg.Length(0)
	for i, e := range entries {
		other := i > 0 && e.series.System != entries[i-1].series.System
		if i == 0 || room < e.width || other && all > width {
			lines, room = append(lines, nil), width
		}
		lines[len(lines)-1] = append(lines[len(lines)-1], e)
		room -= e.width + entryGap
	}
	return lines
}

func (g legend) height() vg.Length { return vg.Length(len(g.lines))*entryLine + 4 }

func (g legend) draw(c draw.Canvas) {
	y := c.Max.Y - entryLine/2
	for _, line := range g.lines {
		x := c.Min.X
		for _, e := range line {
			e.sample(c, x, y)
			c.FillText(g.style, vg.Point{X: x + swatch + swatchGap, Y: y}, e.series.Name)
			x += e.width + entryGap
		}
		y -= entryLine
	}
}

// sample draws what stands for a series beside its name.
func (e entry) sample(c draw.Canvas, x, y vg.Length) {
	middle := vg.Point{X: x + swatch/2, Y: y}
	switch s := e.series; {
	case e.bar:
		fill := colour(s.System)
		if e.paler {
			fill = paler(s.System)
		}
		c.SetColor(fill)
		c.Fill(vg.Rectangle{Min: vg.Point{X: x, Y: y - 5}, Max: vg.Point{X: x + swatch, Y: y + 5}}.Path())
	case s.Stroke == Dots:
		c.DrawGlyph(glyphStyle(s), middle)
	default:
		c.StrokeLine2(lineStyle(s), x, y, x+swatch, y)
		if s.Stroke != Steps {
			c.DrawGlyph(glyphStyle(s), middle)
		}
	}
}
