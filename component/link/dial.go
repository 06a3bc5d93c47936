package link

import (
	"context"
	"net"
)

func dialTCP(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}
