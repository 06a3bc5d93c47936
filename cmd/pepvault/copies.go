package main

import (
	"context"
	"errors"
	"fmt"

	"pepvault/configs"
	"pepvault/store"
	"pepvault/vault"
)

type backupCmd struct {
	storeFlags
	File string `arg:"" help:"The new file. One that exists is never overwritten."`
}

// Run copies the store. This process reads it itself, also beside a running
// service: so the copy is where the operator can write and belongs to him, and
// the service is not the one to wait for the disk.
func (c *backupCmd) Run(ctx context.Context, p *process) error {
	config, err := c.loadStore(p)
	if err != nil {
		return err
	}
	o := storeOptions(config)
	contents, err := store.Backup(ctx, o, c.File)
	if errors.Is(err, vault.ErrInUse) {
		// Nobody but a service may have it: a restore, say, is about to
		// exchange the file.
		var service *remoteDesk
		if service, err = reachService(ctx, o); err != nil {
			return err
		}
		contents, err = store.BackupOnline(ctx, o, c.File)
		err = errors.Join(err, service.close())
	}
	if err != nil {
		return err
	}
	return c.print(p, copyOf(c.File, contents), func(t *table) { t.contents(c.File+": written and verified", contents) })
}

type verifyCmd struct {
	File   string `arg:"" help:"A backup, or the database of a store that no service uses."`
	Config string `placeholder:"FILE" help:"The configuration file; it says which kind of store the file is of."`
	jsonFlag
}

// Run looks for damage and changes nothing.
func (c *verifyCmd) Run(ctx context.Context, p *process) error {
	o := store.Options{Driver: configs.DriverSQLite}
	if c.Config != "" {
		config, err := configFlag{c.Config}.loadStore(p)
		if err != nil {
			return err
		}
		o = storeOptions(config)
	}
	o.Path = c.File
	contents, err := store.Verify(ctx, o)
	if err != nil {
		return err
	}
	return c.print(p, copyOf(c.File, contents), func(t *table) { t.contents(c.File+": whole", contents) })
}

type restoreCmd struct {
	storeFlags
	File string `arg:"" help:"A backup. It is verified first, and not changed."`
}

// Run puts a backup in the place of the store.
func (c *restoreCmd) Run(ctx context.Context, p *process) error {
	config, err := c.loadStore(p)
	if err != nil {
		return err
	}
	contents, kept, err := store.Restore(ctx, storeOptions(config), c.File)
	if err != nil {
		return err
	}
	document := copyOf(config.Store.Path, contents)
	document.Kept = kept
	return c.print(p, document, func(t *table) {
		t.contents(config.Store.Path+": restored from "+c.File, contents)
		if kept != "" {
			t.line("the former database is kept as %s", kept)
		}
	})
}

// copySummary is what is in a database file; --json prints it.
type copySummary struct {
	File       string `json:"file"`
	Accounts   int    `json:"accounts"`
	Vaults     int    `json:"vaults"`
	Records    int    `json:"records"`
	Tombstones int    `json:"tombstones"`
	Bytes      int64  `json:"bytes"`
	Content    string `json:"content_sha256"`
	Kept       string `json:"kept,omitempty"` // of restore: the former database
}

func copyOf(file string, c vault.Contents) copySummary {
	return copySummary{
		File: file, Accounts: c.Accounts, Vaults: c.Vaults, Records: c.Records,
		Tombstones: c.Tombstones, Bytes: c.Bytes, Content: c.Hash.String(),
	}
}

func (t *table) contents(title string, c vault.Contents) {
	t.line("%s", title)
	t.row("accounts", c.Accounts)
	t.row("vaults", c.Vaults)
	t.row("records", c.Records)
	t.row("tombstones", c.Tombstones)
	t.row("bytes", c.Bytes)
	t.row("content", fmt.Sprintf("sha256 %v", c.Hash))
}
