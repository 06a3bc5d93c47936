package page

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"image/color"
	"regexp"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// layout is one of the sizes that a chart is drawn in. A unit of its canvas is a
// pixel of the page, so that text is as large in all of them.
type layout struct {
	name          string
	width, height vg.Length // height of a panel
	font          vg.Length
	ticks         int // at most so many along the horizontal axis
}

var (
	wide   = layout{name: "wide", width: 672, height: 240, font: 12, ticks: 8}
	narrow = layout{name: "narrow", width: 328, height: 210, font: 12, ticks: 4}
)

// The colours are names: each stands for a variable of the page's style, which
// differs between light and dark, and is put in its place once the chart is
// drawn.
var (
	ink        = color.NRGBA{R: 1, G: 1, B: 1, A: 255}
	muted      = color.NRGBA{R: 2, G: 2, B: 2, A: 255}
	rule       = color.NRGBA{R: 3, G: 3, B: 3, A: 255}
	ofPepvault = color.NRGBA{R: 4, G: 4, B: 4, A: 255}
	ofPEP      = color.NRGBA{R: 5, G: 5, B: 5, A: 255}
	ofEcho     = color.NRGBA{R: 6, G: 6, B: 6, A: 255}
	// paler ones, of the parts of a bar behind the first
	ofPepvaultPaler = color.NRGBA{R: 7, G: 7, B: 7, A: 255}
	ofPEPPaler      = color.NRGBA{R: 8, G: 8, B: 8, A: 255}
	ofEchoPaler     = color.NRGBA{R: 9, G: 9, B: 9, A: 255}
)

var variables = strings.NewReplacer(
	"#010101", "var(--ink)", "#020202", "var(--muted)", "#030303", "var(--rule)",
	"#040404", "var(--pepvault)", "#050505", "var(--pep)", "#060606", "var(--echo)",
	"#070707", "var(--pepvault-paler)", "#080808", "var(--pep-paler)", "#090909", "var(--echo-paler)",
)

// colour is that of a system. What is none of the three is drawn as text is.
func colour(system string) color.NRGBA {
	switch system {
	case component:
		return ofPepvault
	case pep:
		return ofPEP
	case echo:
		return ofEcho
	}
	return ink
}

// paler is the colour of what else belongs to a system.
func paler(system string) color.NRGBA {
	switch system {
	case component:
		return ofPepvaultPaler
	case pep:
		return ofPEPPaler
	case echo:
		return ofEchoPaler
	}
	return muted
}

// glyph tells systems apart without colour.
func glyph(system string) draw.GlyphDrawer {
	switch system {
	case component:
		return draw.CircleGlyph{}
	case pep:
		return draw.PyramidGlyph{}
	}
	return draw.BoxGlyph{}
}

// drawSVG draws a chart, with its title and summary for who can't see it.
func drawSVG(c Chart, l layout) (string, error) {
	if len(c.Panels) == 0 {
		return "", errors.New("a chart without panels")
	}
	legend := legendOf(c, l)
	height := legend.height() + 4
	for _, p := range c.Panels {
		height += panelHeight(p, l)
	}
	canvas := vgsvg.New(l.width, height)
	area := draw.New(canvas)
	legend.draw(area)
	area.Max.Y -= legend.height()
	if err := drawPanels(c, l, area); err != nil {
		return "", fmt.Errorf("chart %q: %w", c.Title, err)
	}
	var drawn bytes.Buffer
	if _, err := canvas.WriteTo(&drawn); err != nil {
		return "", err
	}
	return dress(drawn.String(), c, l, height), nil
}

var (
	texts = regexp.MustCompile(`(<text [^>]*)>([^<]*)</text>`)
	fonts = regexp.MustCompile(`font-family:[^;"]*;font-variant:[^;"]*;font-weight:[^;"]*;font-style:[^;"]*;?`)
	start = regexp.MustCompile(`(?s)^.*?<svg [^>]*>`)
)

// dress makes what the library drew a part of the page: the page's colours and
// fonts, and words for who can't see it. Each text says how long it was taken to
// be, so that it fits its place whatever font a browser has.
func dress(drawn string, c Chart, l layout, height vg.Length) string {
	id := c.ID + "-" + l.name
	head := fmt.Sprintf(`<svg class="chart %s" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" aria-labelledby="%s-title %s-desc"><title id="%s-title">%s</title><desc id="%s-desc">%s</desc>`,
		l.name, float64(l.width), float64(height), float64(l.width), float64(height),
		id, id, id, html.EscapeString(c.Title), id, html.EscapeString(c.Summary))
	body := start.ReplaceAllLiteralString(drawn, head)
	style := textStyle(l, ink)
	body = texts.ReplaceAllStringFunc(body, func(element string) string {
		part := texts.FindStringSubmatch(element)
		length := float64(style.Width(html.UnescapeString(part[2])))
		return fmt.Sprintf(`%s textLength="%.1f" lengthAdjust="spacingAndGlyphs">%s</text>`, part[1], length, part[2])
	})
	return variables.Replace(fonts.ReplaceAllString(body, ""))
}

// panelHeight leaves room for each bar, and as much as the layout has for lines.
func panelHeight(p Panel, l layout) vg.Length {
	if len(p.Groups) == 0 {
		return l.height + l.font*2
	}
	return barsHeight(p) + l.font*3
}

// drawPanels draws them above each other, with their data in one column.
func drawPanels(c Chart, l layout, area draw.Canvas) error {
	var plots [][]*plot.Plot
	share := scaled(c)
	for _, panel := range c.Panels {
		p, err := plotOf(panel, l)
		if err != nil {
			return err
		}
		if share != nil {
			p.X.Min, p.X.Max = share[0], share[1]
		}
		plots = append(plots, []*plot.Plot{p})
	}
	if len(plots) == 1 {
		label(area, c.Panels[0], l)
		area.Max.Y -= labelHeight(c.Panels[0], l)
		plots[0][0].Draw(area)
		return nil
	}
	tiles := draw.Tiles{Rows: len(plots), Cols: 1, PadY: l.font * 2.4, PadTop: labelHeight(c.Panels[0], l)}
	for i, row := range plot.Align(plots, tiles, area) {
		above := row[0]
		above.Max.Y += labelHeight(c.Panels[i], l)
		above.Min.X = area.Min.X
		label(above, c.Panels[i], l)
		plots[i][0].Draw(row[0])
	}
	return nil
}

// scaled is the horizontal range that panels of one chart share.
func scaled(c Chart) *[2]float64 {
	if len(c.Panels) < 2 {
		return nil
	}
	var all [][2]float64
	for _, p := range c.Panels {
		for _, s := range p.Series {
			all = append(all, s.Points...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	share := [2]float64{all[0][0], all[0][0]}
	for _, point := range all {
		share[0], share[1] = min(share[0], point[0]), max(share[1], point[0])
	}
	return &share
}

// label writes what the vertical axis counts above it, where it is read from
// left to right.
func label(area draw.Canvas, p Panel, l layout) {
	if p.Y.Label == "" {
		return
	}
	style := textStyle(l, muted)
	style.YAlign = draw.YTop
	area.FillText(style, vg.Point{X: area.Min.X, Y: area.Max.Y - 4}, p.Y.Label)
}

func labelHeight(p Panel, l layout) vg.Length {
	if p.Y.Label == "" {
		return 0
	}
	return l.font + 14
}

// plotOf makes the plot of a panel.
func plotOf(panel Panel, l layout) (*plot.Plot, error) {
	p := plot.New()
	p.BackgroundColor = nil
	dressAxis(&p.X, panel.X, l, l.ticks)
	dressAxis(&p.Y, panel.Y, l, 5)
	p.X.Label.Text, p.X.Label.TextStyle, p.X.Label.Padding = panel.X.Label, textStyle(l, muted), 4
	p.X.Label.TextStyle.XAlign, p.X.Label.TextStyle.YAlign = draw.XCenter, draw.YBottom
	grid := plotter.NewGrid()
	line := draw.LineStyle{Color: rule, Width: 0.75}
	if len(panel.Groups) > 0 {
		grid.Horizontal.Color, grid.Vertical = nil, line
		p.Add(grid, bars{panel: panel, font: textStyle(l, ink)})
		p.HideY()
		p.X.Min = 0
		p.X.LineStyle.Width = 0
		return p, nil
	}
	grid.Vertical.Color, grid.Horizontal = nil, line
	p.Add(grid)
	for _, s := range panel.Series {
		if err := addSeries(p, s); err != nil {
			return nil, err
		}
	}
	round(&p.Y, panel.Y)
	if panel.X.Unit == Count {
		p.X.Min = 0
	}
	p.Y.LineStyle.Width, p.Y.Tick.Length = 0, 0
	return p, nil
}

func textStyle(l layout, c color.Color) text.Style {
	return text.Style{
		Color: c, Font: font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, l.font), Handler: plot.DefaultTextHandler,
	}
}

// dashes of the strokes.
func dashes(s Stroke) []vg.Length {
	switch s {
	case Dashed:
		return []vg.Length{7, 4}
	case Dotted:
		return []vg.Length{1.5, 3.5}
	}
	return nil
}

func lineStyle(s Series) draw.LineStyle {
	return draw.LineStyle{Color: colour(s.System), Width: 1.75, Dashes: dashes(s.Stroke)}
}

func glyphStyle(s Series) draw.GlyphStyle {
	radius := vg.Length(2.75)
	if s.Stroke == Dots {
		radius = 1.6
	}
	return draw.GlyphStyle{Color: colour(s.System), Radius: radius, Shape: glyph(s.System)}
}

// addSeries draws a series' line and its points.
func addSeries(p *plot.Plot, s Series) error {
	points := make(plotter.XYs, len(s.Points))
	for i, point := range s.Points {
		points[i].X, points[i].Y = point[0], point[1]
	}
	if s.Stroke != Dots {
		line, err := plotter.NewLine(points)
		if err != nil {
			return err
		}
		line.LineStyle = lineStyle(s)
		if s.Stroke == Steps {
			line.StepStyle = plotter.PostStep
		}
		p.Add(line)
	}
	if s.Stroke == Steps {
		return nil
	}
	dots, err := plotter.NewScatter(points)
	if err != nil {
		return err
	}
	dots.GlyphStyle = glyphStyle(s)
	p.Add(dots)
	return nil
}
