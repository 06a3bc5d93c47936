package c2s

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Target is where a server may be reached.
type Target struct {
	Addr      string // host:port
	DirectTLS bool   // TLS from the first byte (XEP-0368)
}

// Resolver looks up service records; a [net.Resolver] does.
type Resolver interface {
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
}

// Targets returns where the server of a domain may be reached, in the order in
// which to try (RFC 6120 §3.2.1, XEP-0368 §3). Where DNS tells nothing, that is
// the domain itself, port 5222. A domain that says that it has no such service is
// [ErrUnreachable].
func Targets(ctx context.Context, resolver Resolver, domain string) ([]Target, error) {
	type candidate struct {
		*net.SRV
		direct bool
	}
	var found []candidate
	refused := false
	for _, service := range []string{"xmpps-client", "xmpp-client"} {
		_, records, err := resolver.LookupSRV(ctx, service, "tcp", domain)
		if err != nil && len(records) == 0 {
			continue // the default may do; a wrong one shows no certificate
		}
		for _, record := range records {
			if record.Target == "." {
				refused = true
				continue
			}
			found = append(found, candidate{record, service == "xmpps-client"})
		}
	}
	if len(found) == 0 {
		if refused {
			return nil, fmt.Errorf("%w: %s says that it serves no clients", ErrUnreachable, domain)
		}
		return []Target{{Addr: net.JoinHostPort(domain, "5222")}}, ctx.Err()
	}
	// Each list is in its order already, by chance where the weights say so.
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.Priority, b.Priority) })
	targets := make([]Target, len(found))
	for i, c := range found {
		host := strings.TrimSuffix(c.Target, ".")
		targets[i] = Target{Addr: net.JoinHostPort(host, strconv.Itoa(int(c.Port))), DirectTLS: c.direct}
	}
	return targets, nil
}

// DialAny is [Dial] at the first of the targets that can be reached. The error is
// that of the last one that was tried.
func DialAny(ctx context.Context, targets []Target, options Options) (c *Conn, err error) {
	err = ErrUnreachable
	for _, target := range targets {
		options.Server, options.DirectTLS = target.Addr, target.DirectTLS
		c, err = Dial(ctx, options)
		if err == nil || ctx.Err() != nil || !passedOver(err) {
			return c, err
		}
	}
	return nil, err
}

// passedOver reports whether another target may do better: a server that was
// found and refuses is no reason to try the password elsewhere.
func passedOver(err error) bool {
	return !errors.Is(err, ErrPassword) && !errors.Is(err, ErrImpostor)
}
