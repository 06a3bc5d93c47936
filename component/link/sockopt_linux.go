package link

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// setUserTimeout gives the connection up when what we sent was not even
// acknowledged by the host's kernel for so long.
func setUserTimeout(conn *net.TCPConn, d time.Duration) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	// Best effort: the keep-alive ping notices too, only later.
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
	})
}
