package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
)

// Line is the comparison as one line of JSON, without its end.
func (c *Comparison) Line() string {
	text, err := json.Marshal(c)
	if err != nil { // plain values
		panic(err)
	}
	return string(text)
}

// Table is the comparison for people: a row a figure, B's median as a multiple
// of A's, and below it what speaks against believing it.
func (c *Comparison) Table() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	target := ""
	for _, row := range c.Rows {
		if row.Target != target {
			if target != "" {
				fmt.Fprintln(w)
			}
			target = row.Target
			fmt.Fprintf(w, "%s\tA\tB\tB/A\t\n", target)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", row.Figure, row.unit.spread(row.A), row.unit.spread(row.B), times(row.Ratio), row.doubts())
	}
	_ = w.Flush() // a strings.Builder takes all
	fmt.Fprintln(&b)
	for _, run := range c.Single {
		fmt.Fprintf(&b, "Run %s has one round: how far its rounds would differ is not known.\n", strings.ToUpper(run))
	}
	for _, run := range c.GeneratorBound {
		fmt.Fprintf(&b, "In run %s the generator was short of CPU: what was measured may be the generator.\n", strings.ToUpper(run))
	}
	if c.Noisy != "" {
		fmt.Fprintf(&b, "The machine itself differed by ×%s (%s).\n", significant(c.Noise), c.Noisy)
	}
	for _, unlike := range c.Unlike {
		fmt.Fprintf(&b, "Not alike: %s.\n", unlike)
	}
	// Columns are padded; nobody wants that at the end of a line.
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// spread is a median, with both ends if they differ from it.
func (u unit) spread(s Spread) string {
	median, low, high := u.text(s.Median), u.text(s.Low), u.text(s.High)
	if low == median && high == median {
		return median
	}
	return fmt.Sprintf("%s (%s to %s)", median, low, high)
}

func times(ratio float64) string {
	if ratio == 0 {
		return "-"
	}
	return "×" + significant(ratio)
}

// doubts says why the ratio may mean nothing.
func (r Row) doubts() string {
	var all []string
	if r.AtLeast {
		all = append(all, "the most that was tried")
	}
	if r.Ratio == 0 || r.Ratio == 1 { // none, or there is nothing to doubt
		return strings.Join(all, ", ")
	}
	if r.Overlap {
		all = append(all, "rounds overlap")
	}
	if r.WithinNoise {
		all = append(all, "within the machine's noise")
	}
	return strings.Join(all, ", ")
}
