package hosttest

import (
	"fmt"
	"strings"
	"sync"

	"pepvault/component/loopback"
)

// What a failed test shows has to fit between the lines of the others.
const (
	transcriptLines = 60
	transcriptBytes = 300 // of a line, at most
)

// transcript keeps the latest events as lines.
type transcript struct {
	mu    sync.Mutex
	lines [transcriptLines]string // the n-th event at n % transcriptLines
	n     int
}

func (r *transcript) add(e loopback.Event) {
	line := e.What
	if e.Detail != "" {
		line += " (" + e.Detail + ")"
	}
	if e.Raw != nil {
		// A large stanza is not copied for the sake of its beginning.
		line += ": " + string(e.Raw[:min(len(e.Raw), transcriptBytes)])
	}
	line = oneLine(line)
	rest := "…"
	if e.Raw != nil {
		rest = fmt.Sprintf("… (%d bytes)", len(e.Raw))
	}
	if len(line) > transcriptBytes-len(rest) {
		line = strings.ToValidUTF8(line[:transcriptBytes-len(rest)], "") + rest
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines[r.n%transcriptLines] = line
	r.n++
}

// oneLine has no line break in it, and none of what a log could not show.
func oneLine(s string) string {
	s = strings.ToValidUTF8(s, "?")
	return strings.Map(func(c rune) rune {
		if c < ' ' {
			return ' '
		}
		return c
	}, s)
}

func (r *transcript) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all strings.Builder
	first := max(r.n-transcriptLines, 0)
	if first > 0 {
		fmt.Fprintf(&all, "(%d lines forgotten)\n", first)
	}
	for i := first; i < r.n; i++ {
		all.WriteString(r.lines[i%transcriptLines])
		all.WriteByte('\n')
	}
	return strings.TrimSuffix(all.String(), "\n")
}
