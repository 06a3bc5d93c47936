//go:build unix

package loopback

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// Reserved is a port of 127.0.0.1 that is kept by a socket which is bound to it and
// never listens: the port is not given to anybody else while its server is down,
// and connecting to it is refused.
type Reserved struct {
	addr   string
	socket *os.File // closed by the garbage collector, if not before
}

// Reserve keeps a port, or with 0 one that the system chooses. The error is
// syscall.EADDRINUSE where another socket has the port. Its server can bind it at
// any time: that, as all servers do, has to ask for SO_REUSEADDR.
func Reserve(port int) (*Reserved, error) {
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, err
	}
	r := &Reserved{socket: os.NewFile(uintptr(fd), "port "+strconv.Itoa(port))}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		r.Release()
		return nil, err
	}
	// Both sockets of a port need it, but ours only when it has the port: else it
	// would be given one that another keeps.
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		r.Release()
		return nil, err
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		r.Release()
		return nil, err
	}
	r.addr = fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	return r, nil
}

// Addr is the port as "127.0.0.1:port".
func (r *Reserved) Addr() string { return r.addr }

// Release gives the port back. It can be called again.
func (r *Reserved) Release() { _ = r.socket.Close() } // it has written nothing
