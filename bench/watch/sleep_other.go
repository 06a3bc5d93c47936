//go:build !linux

package watch

import "time"

// sleepExactly is as exact as the runtime's timers.
func sleepExactly(d time.Duration) { time.Sleep(d) }
