package link

import (
	"errors"
	"net"
	"os"
	"time"
)

// line reads the connection and notices when it is dead: after idle without a
// byte it pings once, and after answer without a byte it gives up. The time in
// which nobody reads does not count.
type line struct {
	conn         net.Conn
	idle, answer time.Duration // zero: no keep-alive (during the handshake)
	ping         func()
}

func (l *line) Read(p []byte) (int, error) {
	if l.idle == 0 {
		return l.conn.Read(p)
	}
	n, err := l.read(p, l.idle)
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	l.ping()
	n, err = l.read(p, l.answer)
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		err = ErrHalfOpen
	}
	return n, err
}

func (l *line) read(p []byte, within time.Duration) (int, error) {
	if err := l.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return 0, err
	}
	return l.conn.Read(p)
}
