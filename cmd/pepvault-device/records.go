package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"pepvault/vault/device/client"
)

type putCmd struct {
	ID   string `arg:"" help:"The name, 1 to 512 bytes of text."`
	File string `arg:"" optional:"" help:"What to keep; - or nothing = standard input."`
}

// Run keeps the content first and offers it then.
func (c *putCmd) Run(ctx context.Context, a *app) error {
	content, err := a.read(c.File)
	if err != nil {
		return err
	}
	return a.change(ctx, c.ID, func(d *client.Device) error { return d.Put(c.ID, content) })
}

func (a *app) read(file string) ([]byte, error) {
	if file == "" || file == "-" {
		return io.ReadAll(a.stdin)
	}
	return os.ReadFile(file)
}

// change keeps a change, and offers it if the service can be reached. What the
// service refuses for what it is, is dropped again, unless something of this device
// was kept under that name before.
func (a *app) change(ctx context.Context, name string, make func(*client.Device) error) (err error) {
	d, err := a.open(false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.store.Close()) }()
	before, err := d.Get(name)
	alone := err != nil || !before.Waiting && before.Conflict == nil
	if err := make(d); err != nil {
		return err
	}
	switch err := a.session(ctx, d, client.Once); {
	case isOffline(err):
		fmt.Fprintf(a.stderr, "pepvault-device: kept on this device, to be offered by the next sync: %s\n", oneLine(err.Error()))
	case err != nil:
		return fmt.Errorf("%w (the change is kept on this device)", err)
	}
	if !alone { // it may stand in the place of something that was promised to be kept
		return a.sum(d)
	}
	why, err := d.Withdraw(name)
	if err != nil {
		return err
	}
	if why != "" {
		return fmt.Errorf("the service refused %q: %s; nothing is changed", name, why)
	}
	return a.sum(d)
}

type rmCmd struct {
	ID string `arg:"" help:"The name."`
}

func (c *rmCmd) Run(ctx context.Context, a *app) error {
	return a.change(ctx, c.ID, func(d *client.Device) error { return d.Remove(c.ID) })
}

type settleCmd struct {
	ID   string `arg:"" help:"The name."`
	Keep string `required:"" enum:"mine,theirs" help:"mine = what this device wanted, theirs = what the service has."`
}

func (c *settleCmd) Run(ctx context.Context, a *app) error {
	return a.change(ctx, c.ID, func(d *client.Device) error { return d.Settle(c.ID, c.Keep == "mine") })
}

type getCmd struct {
	ID      string `arg:"" help:"The name."`
	Mine    bool   `xor:"which" help:"In a conflict: this device's version."`
	Kept    bool   `xor:"which" help:"Of a record that was tampered with: the last good version."`
	Offline bool   `help:"Do not look for news."`
}

// Run writes the content of one record.
func (c *getCmd) Run(ctx context.Context, a *app) (err error) {
	d, err := a.consult(ctx, c.Offline)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.store.Close()) }()
	e, err := d.Get(c.ID)
	switch {
	case err != nil:
		return a.orTampered(d, err)
	case c.Mine && e.Conflict == nil:
		return fmt.Errorf("%q has no conflict", c.ID)
	case c.Mine:
		if e.Conflict.Removal {
			return fmt.Errorf("this device removed %q", c.ID)
		}
		return a.write(e.Name, e.Conflict.Content)
	case e.Tampered != "" && !c.Kept:
		return fmt.Errorf("%q was %w: %s (get --kept writes the last good version, if there was one)", c.ID, client.ErrTampered, e.Tampered)
	case e.Tampered != "" && e.Content == nil:
		return fmt.Errorf("%q was %w, and there never was a good version here", c.ID, client.ErrTampered)
	case e.Removed:
		return fmt.Errorf("%q: %w: this device removed it, which is not offered yet", c.ID, client.ErrNoRecord)
	case e.Conflict != nil && e.Conflict.Gone:
		return fmt.Errorf("%q was removed by another device, and changed by this one; %w (get --mine writes this one's)", c.ID, client.ErrConflict)
	}
	if err := a.write(e.Name, e.Content); err != nil {
		return err
	}
	if e.Conflict != nil {
		return fmt.Errorf("%q is in conflict; %w (get --mine writes this device's)", c.ID, client.ErrConflict)
	}
	return nil
}

// orTampered puts the vault's own fault before one that follows from it.
func (a *app) orTampered(d *client.Device, err error) error {
	if bad := d.Tampered(); len(bad) > 0 {
		return fmt.Errorf("%w; and the vault was %w: %s", err, client.ErrTampered, bad[0])
	}
	return err
}

// consult opens the device for reading, after a look for news where that is
// possible.
func (a *app) consult(ctx context.Context, offline bool) (*client.Device, error) {
	d, err := a.open(true)
	if err != nil || offline || !a.store.Writable() {
		return d, err // whoever has the folder looks for news
	}
	switch err := a.session(ctx, d, client.Once); {
	case isOffline(err), errors.Is(err, client.ErrNoVault):
		fmt.Fprintf(a.stderr, "pepvault-device: this is what the device knows: %s\n", oneLine(err.Error()))
	case err != nil && d.Locked() != nil: // --offline does not help either
		return nil, errors.Join(err, a.store.Close())
	case err != nil:
		return nil, errors.Join(fmt.Errorf("%w (--offline reads what the device knows)", err), a.store.Close())
	}
	return d, nil
}

// content is how JSON shows what is kept.
type content struct {
	Name   string  `json:"name"`
	Text   *string `json:"text,omitempty"`
	Base64 *string `json:"base64,omitempty"` // of what is no text
}

func contentOf(name string, raw []byte) content {
	if utf8.Valid(raw) {
		text := string(raw)
		return content{Name: name, Text: &text}
	}
	code := base64.StdEncoding.EncodeToString(raw)
	return content{Name: name, Base64: &code}
}

func (a *app) write(name string, raw []byte) error {
	if a.JSON {
		return json.NewEncoder(a.stdout).Encode(contentOf(name, raw))
	}
	_, err := a.stdout.Write(raw)
	return err
}

type listCmd struct {
	Offline bool `help:"Do not look for news."`
}

// listed is a record of the list.
type listed struct {
	Name     string `json:"name"`
	Bytes    int    `json:"bytes"`
	Waiting  bool   `json:"waiting,omitempty"`
	Removed  bool   `json:"removed,omitempty"`
	Conflict bool   `json:"conflict,omitempty"`
	Tampered string `json:"tampered,omitempty"`
}

func (l listed) String() string {
	s := fmt.Sprintf("%s\t%d", l.Name, l.Bytes)
	for _, mark := range []struct {
		on   bool
		text string
	}{{l.Removed, "removed"}, {l.Waiting, "not offered yet"}, {l.Conflict, "conflict"}, {l.Tampered != "", "tampered with: " + l.Tampered}} {
		if mark.on {
			s += "\t" + mark.text
		}
	}
	return s
}

// Run lists names and sizes.
func (c *listCmd) Run(ctx context.Context, a *app) (err error) {
	d, err := a.consult(ctx, c.Offline)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.store.Close()) }()
	entries, locked := d.List()
	for _, e := range entries {
		l := listed{e.Name, len(e.Content), e.Waiting, e.Removed, e.Conflict != nil, e.Tampered}
		if a.JSON {
			err = json.NewEncoder(a.stdout).Encode(l)
		} else {
			_, err = fmt.Fprintln(a.stdout, l)
		}
		if err != nil {
			return err
		}
	}
	if locked > 0 {
		if err := d.Locked(); err != nil {
			return err
		}
		return a.orTampered(d, fmt.Errorf("%d records can't be opened: their key is not here", locked))
	}
	return a.faults(d)
}

type exportCmd struct {
	File string `arg:"" help:"A new file; - = standard output."`
}

// exported is the file that export writes.
type exported struct {
	Account string    `json:"account"`
	Vault   string    `json:"vault"`
	Records []content `json:"records"`
	// Mine are this device's versions of records in conflict.
	Mine []content `json:"mine,omitempty"`
}

// Run writes everything that the device knows, unsealed.
func (c *exportCmd) Run(ctx context.Context, a *app) (err error) {
	d, err := a.consult(ctx, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.store.Close()) }()
	entries, locked := d.List()
	if locked > 0 {
		return fmt.Errorf("%d records can't be opened; nothing is written", locked)
	}
	all := exported{Account: a.settings.Account, Vault: a.settings.Vault, Records: []content{}}
	for _, e := range entries {
		if e.Content != nil && !e.Removed {
			all.Records = append(all.Records, contentOf(e.Name, e.Content))
		}
		if e.Conflict != nil && !e.Conflict.Removal {
			all.Mine = append(all.Mine, contentOf(e.Name, e.Conflict.Content))
		}
	}
	fmt.Fprintln(a.stderr, "pepvault-device: warning: what is exported is not sealed; whoever can read it knows all secrets")
	if err := a.writeExport(c.File, all); err != nil {
		return err
	}
	return a.faults(d)
}

// writeExport leaves no part of the secrets behind where it fails.
func (a *app) writeExport(file string, all exported) error {
	encode := func(out io.Writer) error {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(all)
	}
	if file == "-" {
		return encode(a.stdout)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(encode(f), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	return nil
}
