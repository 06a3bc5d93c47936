package configs

import (
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing that is wrong in a configuration file.
type Fault struct {
	File    string
	Line    int    // from 1; 0 = the file as a whole
	Key     string // table.key; "" where the line is none
	Problem string // what is wrong and what is allowed
}

// Error is one line: FILE:LINE: key: problem.
func (f Fault) Error() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d", f.Line)
	}
	if f.Key != "" {
		b.WriteString(": " + f.Key)
	}
	b.WriteString(": " + f.Problem)
	return b.String()
}

// Faults is all that is wrong in a file, in the order of its lines.
type Faults []Fault

// Error is one line a fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

func (f Faults) sort() {
	slices.SortStableFunc(f, func(a, b Fault) int { return a.Line - b.Line })
}
