//go:build race

package device

// Under the race detector a history takes ten times as long, and there is one
// goroutine.
const usualInterleavings = 300
