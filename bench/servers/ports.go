package servers

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"

	"pepvault/component/loopback"
)

// ports are the ports of one server. Each is bound by us, too, by a socket that
// never listens: so nobody else of ours is given it before the server has bound
// it, or while the server is stopped. The sockets are closed when the ports are
// no longer in use, by the garbage collector.
type ports struct{ held []*loopback.Reserved }

// take returns a loopback address that is nobody's, outside the range from which
// the system takes ports for outgoing connections.
func (p *ports) take() (addr string, err error) {
	for range 200 {
		port := 20000 + rand.IntN(12000)
		reserved, err := loopback.Reserve(port)
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("reserve port %d: %w", port, err)
		}
		p.held = append(p.held, reserved)
		return reserved.Addr(), nil
	}
	return "", errors.New("no free port found")
}
