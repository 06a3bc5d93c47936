package main

import (
	"fmt"

	results "pepvault/bench/report"
)

type compareCmd struct {
	A string `arg:"" help:"Results file of a run (--out)."`
	B string `arg:"" help:"Another one of the same work; ratios are of its figures to those of the first."`
}

// Run prints the figures of both files side by side.
func (c *compareCmd) Run(p *process) error {
	a, err := results.LoadFile(c.A)
	if err != nil {
		return err
	}
	b, err := results.LoadFile(c.B)
	if err != nil {
		return err
	}
	comparison, err := results.Compare(a, b)
	if err != nil {
		return fmt.Errorf("%s and %s: %w", c.A, c.B, err)
	}
	fmt.Fprint(p.stdout, comparison.Table())
	fmt.Fprintln(p.stdout, comparison.Line())
	return nil
}
