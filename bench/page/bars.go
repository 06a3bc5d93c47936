package page

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Heights of what stands in a panel of bars.
const (
	barHeight vg.Length = 13
	barGap    vg.Length = 5
	groupName vg.Length = 19
	groupGap  vg.Length = 12
	labelGap  vg.Length = 5
)

// bars draws groups of horizontal bars, each group under its name and each bar
// with its value at its end, so that a narrow page needs no column of names.
type bars struct {
	panel Panel
	font  text.Style
}

func barsHeight(p Panel) vg.Length {
	var height vg.Length
	for _, g := range p.Groups {
		height += groupName + vg.Length(len(g.Bars))*(barHeight+barGap) + groupGap
	}
	return height
}

func (b Bar) total() float64 {
	sum := 0.0
	for _, part := range b.Parts {
		sum += part
	}
	return sum
}

// DataRange implements plot.DataRanger. The vertical range means nothing: bars
// lie where their place is.
func (b bars) DataRange() (xmin, xmax, ymin, ymax float64) {
	for _, g := range b.panel.Groups {
		for _, bar := range g.Bars {
			xmax = max(xmax, bar.total())
		}
	}
	if xmax == 0 {
		xmax = 1
	}
	return 0, xmax, 0, 1
}

// GlyphBoxes implements plot.GlyphBoxer: the texts at the ends need room.
func (b bars) GlyphBoxes(p *plot.Plot) []plot.GlyphBox {
	var all []plot.GlyphBox
	for _, g := range b.panel.Groups {
		for _, bar := range g.Bars {
			box := plot.GlyphBox{X: p.X.Norm(bar.total()), Y: 0.5}
			box.Min = vg.Point{X: labelGap}
			box.Max = vg.Point{X: labelGap + b.font.Width(bar.Text), Y: 1}
			all = append(all, box)
		}
	}
	return all
}

// Plot implements plot.Plotter.
func (b bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	name, value := b.font, b.font
	name.YAlign, value.YAlign = draw.YBottom, draw.YCenter
	top := c.Max.Y
	for _, g := range b.panel.Groups {
		top -= groupName
		c.FillText(name, vg.Point{X: c.Min.X, Y: top + 4}, g.Name)
		for _, bar := range g.Bars {
			from := 0.0
			for i, part := range bar.Parts {
				fill := colour(bar.System)
				if i > 0 {
					fill = paler(bar.System)
				}
				rect := vg.Rectangle{Min: vg.Point{X: x(from), Y: top - barHeight}, Max: vg.Point{X: x(from + part), Y: top}}
				c.SetColor(fill)
				c.Fill(rect.Path())
				from += part
			}
			c.FillText(value, vg.Point{X: x(from) + labelGap, Y: top - barHeight/2}, bar.Text)
			top -= barHeight + barGap
		}
		top -= groupGap
	}
}
