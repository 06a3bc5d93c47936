package page

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestDrawing draws what is hard to draw: nothing but well-formed pictures come
// out, in the page's colours, without a number that is none.
func TestDrawing(t *testing.T) {
	t.Parallel()
	line := func(log bool, points ...[2]float64) Panel {
		return Panel{
			X: Axis{Label: "x", Unit: Count}, Y: Axis{Label: "y", Unit: Milliseconds, Log: log},
			Series: []Series{{Name: "pepvault", System: component, Points: points}},
		}
	}
	steps := line(false, [2]float64{0, 1}, [2]float64{1, 2})
	steps.Series[0].Stroke = Steps
	for name, panels := range map[string][]Panel{
		"one point":             {line(false, [2]float64{5, 5})},
		"one point, log":        {line(true, [2]float64{5, 5})},
		"nothing but 0":         {line(false, [2]float64{0, 0}, [2]float64{1, 0})},
		"seven decades":         {line(true, [2]float64{0, 0.01}, [2]float64{1, 1e5})},
		"two panels":            {steps, line(true, [2]float64{-1, 3}, [2]float64{9, 4})},
		"bars":                  {{X: Axis{Label: "x", Unit: Bytes}, Groups: []Group{{Name: "save", Bars: []Bar{{Name: "own PEP", System: pep, Parts: []float64{5, 3}, Text: "8 B"}}}}}},
		"a bar of no height":    {{X: Axis{Label: "x", Unit: Count}, Groups: []Group{{Name: "g", Bars: []Bar{{Name: "echo", System: echo, Parts: []float64{0}, Text: "0"}}}}}},
		"what has to be quoted": {{X: Axis{Label: "<x> & \"y\"", Unit: Count}, Groups: []Group{{Name: "a < b", Bars: []Bar{{Name: "<b>", System: "other", Parts: []float64{1}, Text: "&"}}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, l := range []layout{wide, narrow} {
				drawn, err := drawSVG(Chart{ID: "c", Title: "a <title>", Summary: "a & b", Panels: panels}, l)
				if err != nil {
					t.Fatal(err)
				}
				for decoder := xml.NewDecoder(strings.NewReader(drawn)); ; {
					if _, err := decoder.Token(); errors.Is(err, io.EOF) {
						break
					} else if err != nil {
						t.Fatalf("%v in %s", err, drawn)
					}
				}
				if strings.Contains(drawn, "NaN") || strings.Contains(drawn, "Inf") || strings.Contains(drawn, "#0") {
					t.Errorf("a number or a colour is none: %s", drawn)
				}
				if !strings.HasPrefix(drawn, "<svg ") || !strings.Contains(drawn, "<title id=") || strings.Count(drawn, "<text") < 2 {
					t.Errorf("no chart: %s", drawn)
				}
			}
		})
	}
	if _, err := drawSVG(Chart{}, wide); err == nil {
		t.Error("a chart of nothing was drawn")
	}
}
