package page

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg/draw"
)

// dressAxis gives an axis its scale, its ticks and its looks.
func dressAxis(a *plot.Axis, axis Axis, l layout, ticks int) {
	a.LineStyle = draw.LineStyle{Color: muted, Width: 0.75}
	a.Tick.LineStyle = a.LineStyle
	a.Tick.Length = 3
	align := a.Tick.Label
	a.Tick.Label = textStyle(l, muted)
	a.Tick.Label.XAlign, a.Tick.Label.YAlign = align.XAlign, align.YAlign
	a.Padding = 4
	a.Tick.Marker = ticker{unit: axis.Unit, log: axis.Log, most: ticks}
	if axis.Log {
		a.Scale = plot.LogScale{}
	}
}

// round widens a vertical axis to values that can be read.
func round(a *plot.Axis, axis Axis) {
	if axis.Log {
		a.Min, a.Max = floor125(a.Min), ceil125(a.Max)
		if a.Max <= a.Min {
			a.Max = a.Min * 10
		}
		return
	}
	a.Min = 0
	step := niceStep(a.Max, 5)
	a.Max = math.Ceil(a.Max/step) * step
}

// ticker places round values, and names them with their unit.
type ticker struct {
	unit Unit
	log  bool
	most int
}

// Ticks implements plot.Ticker.
func (t ticker) Ticks(low, high float64) []plot.Tick {
	if t.log {
		return t.decades(low, high)
	}
	step := niceStep(high-low, t.most)
	if t.unit == Bytes {
		step = niceBytes(high-low, t.most)
	}
	var all []plot.Tick
	for i := math.Ceil(low / step); i*step <= high*(1+1e-9); i++ {
		value := i*step + 0 // and not -0
		all = append(all, plot.Tick{Value: value, Label: t.text(value)})
	}
	return all
}

// decades are the powers of ten, and where there are few also 2 and 5 times
// them.
func (t ticker) decades(low, high float64) []plot.Tick {
	factors := []float64{1}
	if high/low <= 1000 {
		factors = []float64{1, 2, 5}
	}
	var all []plot.Tick
	for exponent := math.Floor(math.Log10(low)); exponent <= math.Ceil(math.Log10(high)); exponent++ {
		for _, factor := range factors {
			value := factor * math.Pow(10, exponent)
			if value >= low*(1-1e-9) && value <= high*(1+1e-9) {
				all = append(all, plot.Tick{Value: value, Label: t.text(value)})
			}
		}
	}
	return all
}

// text names a tick: round values need no more digits than they have.
func (t ticker) text(value float64) string {
	switch {
	case t.unit == Milliseconds && math.Abs(value) >= 1000:
		return short(value/1000) + " s"
	case t.unit == Milliseconds && value != 0:
		return short(value) + " ms"
	case t.unit == Bytes && value >= 1<<20:
		return short(value/(1<<20)) + " MiB"
	case t.unit == Bytes && value >= 1<<10:
		return short(value/(1<<10)) + " KiB"
	}
	return short(value)
}

// short writes a round value, without the last digits of binary fractions.
func short(value float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(value, 'g', 10, 64), 64)
	if err != nil { // it was just written
		panic(err)
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// niceStep divides a range into at most so many steps of 1, 2 or 5 times a
// power of ten.
func niceStep(size float64, most int) float64 {
	if !(size > 0) {
		return 1
	}
	return ceil125(size / float64(most))
}

// niceBytes is niceStep with powers of two.
func niceBytes(size float64, most int) float64 {
	return math.Pow(2, math.Ceil(math.Log2(math.Max(size, 1)/float64(most))))
}

func ceil125(value float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(value)))
	for _, factor := range []float64{1, 2, 5} {
		if value <= factor*unit*(1+1e-9) {
			return factor * unit
		}
	}
	return 10 * unit
}

func floor125(value float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(value)))
	for _, factor := range []float64{5, 2} {
		if value >= factor*unit*(1-1e-9) {
			return factor * unit
		}
	}
	return unit
}
