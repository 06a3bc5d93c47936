package lane

import (
	"net"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// sleepy is a connection to a process that is stopped in its first writes: on
// waking, their deadline is over, whatever room the socket has by then.
type sleepy struct {
	net.Conn
	stops atomic.Int32
}

func (s *sleepy) Write(p []byte) (int, error) {
	if s.stops.Add(-1) < 0 {
		return s.Conn.Write(p)
	}
	n, err := s.Conn.Write(p[:3])
	if err != nil {
		return n, err
	}
	time.Sleep(time.Hour)
	return n, os.ErrDeadlineExceeded
}

// TestStopped: a process that was stopped while it wrote goes on where it was,
// and gives a host up only if that takes nothing afterwards either.
func TestStopped(t *testing.T) {
	t.Parallel()
	for name, stops := range map[string]int32{"once": 1, "again": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := New(Options{})
				w.Small([]byte("<a message/>"))
				host, ours := net.Pipe()
				conn := &sleepy{Conn: ours}
				conn.stops.Store(stops)
				result := make(chan error, 1)
				go func() {
					err := w.Serve(t.Context(), conn)
					_ = ours.Close()
					result <- err
				}()
				if stops == 1 {
					expect(t, host, "<a message/>")
					_ = host.Close()
					return
				}
				expect(t, host, "<a mes")
				if err := <-result; err == nil {
					t.Error("no error")
				}
				if got := w.Stats(); got.SmallStanzas != 1 || got.Written != 0 {
					t.Errorf("what was cut is not sent again: %+v", got)
				}
			})
		})
	}
}
