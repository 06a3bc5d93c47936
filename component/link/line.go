package link

import (
	"errors"
	"net"
	"os"
	"time"
)

// line reads the connection and notices when it is dead: after idle without a
// byte it pings once, and after answer without a byte it gives up. The time in
// which nobody reads does not count, nor that in which this process did not
// run: what has come meanwhile is read before anything is judged.
type line struct {
	conn         net.Conn
	idle, answer time.Duration // zero: no keep-alive (during the handshake)
	ping         func()
	heard        func()
}

func (l *line) Read(p []byte) (int, error) {
	if l.idle == 0 {
		return l.conn.Read(p)
	}
	n, _, err := l.read(p, l.idle)
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	l.ping()
	n, late, err := l.read(p, l.answer)
	if n == 0 && late > 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		n, _, err = l.read(p, min(late, l.answer)+lastLook)
	}
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		err = ErrHalfOpen
	}
	return n, err
}

// lastLook is enough to read what is in the socket, on a busy machine too.
const lastLook = 100 * time.Millisecond

// read tells also by how much it returned later than it should have.
func (l *line) read(p []byte, within time.Duration) (n int, late time.Duration, err error) {
	due := time.Now().Add(within)
	if err := l.conn.SetReadDeadline(due); err != nil {
		return 0, 0, err
	}
	n, err = l.conn.Read(p)
	if n > 0 {
		l.heard()
	}
	return n, time.Since(due), err
}
