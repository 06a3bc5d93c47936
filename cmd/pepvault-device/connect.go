package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strings"

	"pepvault/vault/device/c2s"
	"pepvault/vault/device/cache"
	"pepvault/vault/device/client"
	"pepvault/vault/seal"
)

// logger is silent unless a person wants to see what travels.
func (a *app) logger() *slog.Logger {
	if !a.Verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// dialer returns what connects to the account's server.
func (a *app) dialer() (client.Dial, error) {
	config, err := a.tls()
	if err != nil {
		return nil, err
	}
	password := ""
	return func(ctx context.Context, handle func(c2s.Stanza) bool) (client.Stream, error) {
		if password == "" {
			if password, err = a.password(); err != nil {
				return nil, err
			}
		}
		targets, err := a.targets(ctx)
		if err != nil {
			return nil, err
		}
		c, err := c2s.DialAny(ctx, targets, c2s.Options{
			JID: a.settings.Account, Resource: a.settings.Resource, Password: password, TLS: config, Handle: handle, Logger: a.logger(),
		})
		switch {
		case errors.Is(err, c2s.ErrCertificate) && a.settings.CA == "":
			return nil, fmt.Errorf("%w (--ca names a file with another authority)", err)
		case err != nil:
			return nil, err
		}
		return c, nil
	}, nil
}

func (a *app) targets(ctx context.Context) ([]c2s.Target, error) {
	_, domain, _ := strings.Cut(a.settings.Account, "@")
	if a.settings.Server == "" {
		return c2s.Targets(ctx, net.DefaultResolver, domain)
	}
	if _, _, err := net.SplitHostPort(a.settings.Server); err != nil {
		return []c2s.Target{{Addr: net.JoinHostPort(a.settings.Server, "5222")}}, nil
	}
	return []c2s.Target{{Addr: a.settings.Server}}, nil
}

func (a *app) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: a.settings.InsecureTLS}
	if a.settings.CA == "" {
		return config, nil
	}
	text, err := os.ReadFile(a.settings.CA)
	if err != nil {
		return nil, err
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: no certificate in it", a.settings.CA)
	}
	return config, nil
}

// open takes the folder and unlocks what is kept. Where looking is enough, another
// process may have the folder. The folder is closed by close.
func (a *app) open(looking bool) (*client.Device, error) {
	dir, err := a.folder()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("%s: this device is not set up; run pepvault-device init", dir)
	}
	a.store, err = cache.Acquire(dir)
	if errors.Is(err, cache.ErrInUse) && looking {
		a.store, err = cache.Look(dir), nil
	}
	if err != nil {
		return nil, err
	}
	if err := a.load(); err != nil {
		return nil, errors.Join(err, a.store.Close())
	}
	d, err := client.Open(a.options())
	switch {
	case err == nil:
		return d, nil
	case errors.Is(err, cache.ErrNone):
		err = fmt.Errorf("%s: this device is not set up; run pepvault-device init", dir)
	case errors.Is(err, seal.ErrWrongSecret):
		err = fmt.Errorf("%w (if it was changed on another device, run init with the new one)", err)
	}
	return nil, errors.Join(err, a.store.Close())
}

// session has the device do all that there is to do, and notes where its secret is
// read from then on.
func (a *app) session(ctx context.Context, d *client.Device, mode client.Mode) error {
	dial, err := a.dialer()
	if err != nil {
		return err
	}
	err = d.Run(ctx, dial, mode)
	if d.WentBack() {
		fmt.Fprintln(a.stderr, "pepvault-device: the service says that it went back to an older state, as after a restored backup; what this device had beyond that is offered again")
	}
	a.settings.Unlock, a.settings.SecretFile = "passphrase", d.Source.File
	if d.Source.Kind == seal.KeyFile {
		a.settings.Unlock = "keyfile"
	}
	if a.kept == (settings{}) {
		return errors.Join(err, d.Locked()) // init keeps all
	}
	kept := a.kept // but for the flags of this call
	kept.Unlock, kept.SecretFile = a.settings.Unlock, a.settings.SecretFile
	return errors.Join(err, d.Locked(), a.keep(kept))
}

// isOffline reports whether an error only says that nobody can be reached now. A
// fault of this machine's files is another matter, whatever stands beside it: errors
// of the system are a net.Error too.
func isOffline(err error) bool {
	var file *fs.PathError
	var link *os.LinkError
	if errors.As(err, &file) || errors.As(err, &link) {
		return false
	}
	var network *net.OpError
	return errors.Is(err, c2s.ErrUnreachable) || errors.Is(err, c2s.ErrEnded) || errors.Is(err, client.ErrNoAnswer) || errors.Is(err, client.ErrNotNow) ||
		errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network)
}
