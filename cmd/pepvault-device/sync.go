package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"pepvault/vault/device/c2s"
	"pepvault/vault/device/cache"
	"pepvault/vault/device/client"
	"pepvault/vault/seal"
)

type initCmd struct {
	PassphraseFile string `xor:"secret" placeholder:"FILE" help:"File with the vault's pass phrase (default: it is asked for)."`
	KeyFile        string `xor:"secret" placeholder:"FILE" help:"File of at least 32 random bytes in the place of a pass phrase."`
}

// Run joins the vault, or makes it, and then does what sync does.
func (c *initCmd) Run(ctx context.Context, a *app) (err error) {
	dir, err := a.folder()
	if err != nil {
		return err
	}
	if a.store, err = cache.Acquire(dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.store.Close()) }()
	if err := a.load(); err != nil {
		return err
	}
	switch {
	case c.KeyFile != "":
		a.settings.Unlock, a.settings.SecretFile = "keyfile", absolute(c.KeyFile)
	case c.PassphraseFile != "":
		a.settings.Unlock, a.settings.SecretFile = "passphrase", absolute(c.PassphraseFile)
	case a.settings.Unlock == "":
		a.settings.Unlock = "passphrase"
	}
	d, err := client.Open(a.options())
	if errors.Is(err, cache.ErrNone) || errors.Is(err, seal.ErrWrongSecret) {
		d, err = client.Join(a.options()), nil
	}
	if err != nil {
		return err
	}
	err = a.session(ctx, d, client.Once)
	if errors.Is(err, client.ErrNoVault) {
		if err = d.Renew(); err == nil {
			err = a.session(ctx, d, client.Once)
		}
	}
	if err != nil {
		return err
	}
	if err := a.keep(a.settings); err != nil {
		return err
	}
	return a.sum(d)
}

type syncCmd struct{}

func (*syncCmd) Run(ctx context.Context, a *app) error { return a.syncAs(ctx, client.Once) }

type downloadCmd struct{}

func (*downloadCmd) Run(ctx context.Context, a *app) error { return a.syncAs(ctx, client.Pushed) }

func (a *app) syncAs(ctx context.Context, mode client.Mode) (err error) {
	d, err := a.open(false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.store.Close()) }()
	if mode == client.Pushed && a.shows {
		d.Progress = a.bar
	}
	err = a.session(ctx, d, mode)
	if d.Progress != nil {
		fmt.Fprintln(a.stderr) // below the bar
	}
	if err != nil {
		return a.orTampered(d, err)
	}
	return a.sum(d)
}

// bar shows how far a download is.
func (a *app) bar(done, total int) {
	const width = 40
	filled := width
	if total > 0 {
		filled = width * done / total
	}
	fmt.Fprintf(a.stderr, "\r[%s%s] %d of %d records", strings.Repeat("#", filled), strings.Repeat(" ", width-filled), done, total)
}

// summary is the last line of a command that had a session.
type summary struct {
	Records    int      `json:"records"`
	Waiting    int      `json:"waiting"`
	KeyVersion uint32   `json:"key_version"`
	Conflicts  []string `json:"conflicts,omitempty"`
	Tampered   []string `json:"tampered,omitempty"`
}

// sum says how the vault stands, and returns what a person has to know as an
// error.
func (a *app) sum(d *client.Device) error {
	entries, _ := d.List()
	s := summary{Waiting: d.Waiting(), KeyVersion: d.KeyVersion(), Conflicts: d.Conflicts(), Tampered: d.Tampered()}
	for _, e := range entries {
		if !e.Removed {
			s.Records++
		}
	}
	var err error
	if a.JSON {
		err = json.NewEncoder(a.stdout).Encode(s)
	} else {
		_, err = fmt.Fprintf(a.stdout, "%d records, %d changes not offered yet, key version %d\n", s.Records, s.Waiting, s.KeyVersion)
	}
	return errors.Join(err, a.faults(d))
}

// faults are conflicts and what was tampered with.
func (a *app) faults(d *client.Device) error {
	var faults []error
	for _, line := range d.Tampered() {
		faults = append(faults, fmt.Errorf("%w: %s", client.ErrTampered, line))
	}
	entries, _ := d.List()
	for _, e := range entries {
		switch {
		case e.Conflict == nil:
		case e.Conflict.Why != "":
			faults = append(faults, fmt.Errorf("%q: the service refused this device's version (%s); %w", e.Name, e.Conflict.Why, client.ErrConflict))
		default:
			faults = append(faults, fmt.Errorf("%q was changed on another device too; %w (get --mine, then settle)", e.Name, client.ErrConflict))
		}
	}
	return errors.Join(faults...)
}

type watchCmd struct{}

// Pauses between two tries to connect.
const (
	leastBackOff = time.Second
	mostBackOff  = time.Minute
)

// Run follows the vault until it is stopped.
func (*watchCmd) Run(ctx context.Context, a *app) (err error) {
	d, err := a.open(false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.store.Close()) }()
	d.Changed = a.tell
	backOff := leastBackOff
	for {
		began := time.Now()
		err := a.session(ctx, d, client.Live)
		if ctx.Err() != nil {
			return a.faults(d)
		}
		if !isOffline(err) && !errors.Is(err, client.ErrRefused) && !errors.Is(err, c2s.ErrClosed) {
			return a.orTampered(d, err)
		}
		if time.Since(began) > mostBackOff {
			backOff = leastBackOff
		}
		pause := backOff/2 + rand.N(backOff/2)
		fmt.Fprintf(a.stderr, "pepvault-device: %s; again in %s\n", oneLine(err.Error()), pause.Round(100*time.Millisecond))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return a.faults(d)
		}
		backOff = min(2*backOff, mostBackOff)
	}
}

// tell says what has changed.
func (a *app) tell(c client.Change) {
	word := "changed"
	switch {
	case c.Tampered != "":
		word = "tampered with: " + c.Tampered
	case c.Gone:
		word = "removed"
	}
	if a.JSON {
		_ = json.NewEncoder(a.stdout).Encode(map[string]string{"name": c.Name, "event": word})
		return
	}
	fmt.Fprintf(a.stdout, "%s\t%s\n", c.Name, word)
}

type rotateCmd struct {
	PassphraseFile string `placeholder:"FILE" help:"File with a new pass phrase of the vault (default: it stays as it is)."`
}

// rotateTries bounds how often another device may be quicker.
const rotateTries = 5

// Run goes on with a rotation that was stopped, or begins one.
func (c *rotateCmd) Run(ctx context.Context, a *app) (err error) {
	d, err := a.open(false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.store.Close()) }()
	var secret []byte
	var source client.Source
	if c.PassphraseFile != "" {
		source = client.Source{Kind: seal.PassPhrase, File: absolute(c.PassphraseFile)}
		if secret, err = a.secret(source); err != nil {
			return err
		}
		if len(secret) == 0 {
			return fmt.Errorf("%s: %w: it is empty", c.PassphraseFile, seal.ErrBadSecret)
		}
	}
	to, under := d.Rotating()
	goesOn := under && (secret == nil || d.Brings(secret))
	if under {
		fmt.Fprintf(a.stderr, "pepvault-device: goes on with the rotation to key version %d\n", to)
	}
	if err := a.session(ctx, d, client.Once); err != nil {
		return a.orTampered(d, err)
	}
	if made, _ := d.Rotated(); goesOn && made {
		return a.sum(d)
	}
	for range rotateTries {
		if err := d.Rotate(secret, source); err != nil {
			return a.orTampered(d, err)
		}
		if err := a.session(ctx, d, client.Once); err != nil {
			return fmt.Errorf("%w (rotate goes on with it)", err)
		}
		made, beaten := d.Rotated()
		if made {
			return a.sum(d)
		}
		if !beaten {
			break
		}
	}
	return a.orTampered(d, client.ErrNotRotated)
}
