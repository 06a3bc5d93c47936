package hosttest

import (
	"fmt"
	"strings"
	"sync"

	"pepvault/component/loopback"
)

const (
	transcriptLines = 400
	transcriptBytes = 1500 // of a stanza
)

// transcript keeps the latest events as lines.
type transcript struct {
	mu        sync.Mutex
	lines     []string
	forgotten int
}

func (r *transcript) add(e loopback.Event) {
	line := e.What
	if e.Detail != "" {
		line += " (" + e.Detail + ")"
	}
	if e.Raw != nil {
		raw := e.Raw
		rest := ""
		if len(raw) > transcriptBytes {
			rest = fmt.Sprintf("… (%d bytes)", len(raw))
			raw = raw[:transcriptBytes]
		}
		line += ": " + string(raw) + rest
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lines) == 2*transcriptLines {
		r.forgotten += transcriptLines
		r.lines = append(r.lines[:0], r.lines[transcriptLines:]...)
	}
	r.lines = append(r.lines, line)
}

func (r *transcript) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	head := ""
	if r.forgotten > 0 {
		head = fmt.Sprintf("(%d lines forgotten)\n", r.forgotten)
	}
	return head + strings.Join(r.lines, "\n")
}
