package watch

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleepExactly sleeps in the kernel: the runtime's own timers are late by up to a
// millisecond where it has connections to wait for. A signal ends it early.
func sleepExactly(d time.Duration) {
	if d <= 0 {
		return
	}
	left := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&left, nil) // the caller looks at the time
}
