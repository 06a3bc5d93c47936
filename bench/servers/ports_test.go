package servers

import (
	"errors"
	"net"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"pepvault/component/loopback"
)

// TestPortIsKept: a port is given to nobody else before its server listens, while
// it does, and when it has stopped; the server itself gets it at any time.
func TestPortIsKept(t *testing.T) {
	t.Parallel()
	reserved := new(ports)
	addr, err := reserved.take()
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port(addr))
	if err != nil {
		t.Fatal(err)
	}
	taken := func(when string) {
		t.Helper()
		socket, err := loopback.Reserve(number)
		if err == nil {
			socket.Release()
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("%s: got %v, want %v", when, err, syscall.EADDRINUSE)
		}
	}
	taken("before its server listens")
	for range 2 {
		server, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		taken("while its server listens")
		if err := server.Close(); err != nil {
			t.Fatal(err)
		}
		taken("when its server has stopped")
	}
	runtime.KeepAlive(reserved)
}
