package page

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"pepvault/bench/report"
)

// Unit is what a figure is counted in.
type Unit string

// The units.
const (
	Milliseconds Unit = "ms"
	Seconds      Unit = "s"
	Bytes        Unit = "B"
	PerSecond    Unit = "/s"
	Count        Unit = "1"
	Times        Unit = "×"
	Cores        Unit = "cores"
	Percent      Unit = "%"
)

// none stands where nothing was measured.
const none = "–"

// figure is a cell of a value in a unit.
func figure(value float64, unit Unit) Cell {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return Cell{Text: none}
	}
	return Cell{Text: unit.text(value), Value: &value, Unit: unit}
}

// middle is a cell of the median over the rounds.
func middle(s *report.Spread, unit Unit) Cell {
	if s == nil {
		return Cell{Text: none}
	}
	return figure(s.Median, unit)
}

// ranged is a cell of the median and both ends, where they differ from it.
func ranged(s *report.Spread, unit Unit) Cell {
	cell := middle(s, unit)
	if s == nil {
		return cell
	}
	if low, high := unit.text(s.Low), unit.text(s.High); low != cell.Text || high != cell.Text {
		cell.Text += " (" + low + " to " + high + ")"
	}
	return cell
}

// notNegative is a spread of what can't be below 0, but was found as a difference
// of two clocks that are not read at once.
func notNegative(s *report.Spread) *report.Spread {
	if s == nil {
		return nil
	}
	return &report.Spread{Median: max(s.Median, 0), Low: max(s.Low, 0), High: max(s.High, 0)}
}

// count is a cell of a whole number, in full.
func count(n int64) Cell {
	value := float64(n)
	return Cell{Text: whole(n), Value: &value, Unit: Count}
}

func words(text string) Cell { return Cell{Text: text} }

// text writes a value with its unit, in three digits.
func (u Unit) text(value float64) string {
	switch u {
	case Milliseconds:
		if math.Abs(value) >= 1000 {
			return Seconds.text(value / 1000)
		}
		return digits(value) + " ms"
	case Seconds:
		switch size := math.Abs(value); {
		case size >= 2*3600:
			return digits(value/3600) + " h"
		case size >= 3*60:
			return digits(value/60) + " min"
		case size < 1 && size > 0:
			return digits(value*1000) + " ms"
		}
		return digits(value) + " s"
	case Bytes:
		for i, name := range []string{" GiB", " MiB", " KiB"} {
			if size := math.Pow(1024, float64(3-i)); math.Abs(value) >= size {
				return digits(value/size) + name
			}
		}
		return digits(value) + " B"
	case PerSecond:
		return digits(value) + "/s"
	case Times:
		return "×" + digits(value)
	case Cores:
		return digits(value) + " cores"
	case Percent:
		return digits(value) + " %"
	}
	return digits(value)
}

// digits writes three significant digits without an exponent.
func digits(value float64) string {
	size := math.Abs(value)
	switch {
	case size == 0 || size < 0.0005:
		return "0"
	case size < 1:
		places := 2 - int(math.Floor(math.Log10(size)))
		return strconv.FormatFloat(value, 'f', places, 64)
	case size < 9.995:
		return strconv.FormatFloat(value, 'f', 2, 64)
	case size < 99.95:
		return strconv.FormatFloat(value, 'f', 1, 64)
	case size < 999.5:
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	step := math.Pow(10, math.Floor(math.Log10(size))-2)
	return whole(int64(math.Round(value/step) * step))
}

// exact is the text of a value that was asked for, and so has no uncertain
// digits: 2 s, and not 2.00 s.
func exact(text string) string {
	return strings.NewReplacer(".00 ", " ", ".0 ", " ").Replace(text)
}

// whole writes a whole number with its thousands apart.
func whole(n int64) string {
	text := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, text = "-", text[1:]
	}
	var parts []string
	for len(text) > 3 {
		parts = append([]string{text[len(text)-3:]}, parts...)
		text = text[:len(text)-3]
	}
	return sign + strings.Join(append([]string{text}, parts...), ",")
}

// plural is a number with its noun.
func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%s %s", whole(n), many)
}

// list joins names as a sentence does.
func list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
