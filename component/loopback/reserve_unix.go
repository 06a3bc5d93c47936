//go:build unix

package loopback

import (
	"fmt"
	"syscall"
)

// reservation is a socket that is bound to a port and never listens: the port
// is not given to anybody else while the host is down, and connecting to it is
// refused.
type reservation struct {
	addr string
	fd   int
}

func reserve() (*reservation, error) {
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, err
	}
	r := &reservation{fd: fd}
	// Both sockets of a port need it; package net sets it on listeners.
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		r.release()
		return nil, err
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		r.release()
		return nil, err
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		r.release()
		return nil, err
	}
	r.addr = fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	return r, nil
}

func (r *reservation) release() { syscall.Close(r.fd) }
