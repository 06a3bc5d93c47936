package store

import (
	"context"
	"fmt"

	"pepvault/store/sqlite"
	"pepvault/vault"
)

// Backup copies a store that nobody has open into a new file, which holds every
// transaction that was on disk by then. vault.ErrInUse says that a process has
// the store. Errors are one line for an operator; after one nothing is left of
// the file. An existing file is never overwritten.
func Backup(ctx context.Context, o Options, to string) (vault.Contents, error) {
	if err := o.known(); err != nil {
		return vault.Contents{}, err
	}
	return sqlite.Backup(ctx, o.Path, to)
}

// BackupOnline is Backup of a store that a running service has, which goes on
// meanwhile.
func BackupOnline(ctx context.Context, o Options, to string) (vault.Contents, error) {
	if err := o.known(); err != nil {
		return vault.Contents{}, err
	}
	return sqlite.BackupOnline(ctx, o.Path, to)
}

// Verify looks for damage in a backup, or in a store that nobody has open
// (vault.ErrInUse), and sums it up. It changes nothing. Errors are one line for
// an operator; vault.ErrDamaged names what is wrong.
func Verify(ctx context.Context, o Options) (vault.Contents, error) {
	if err := o.known(); err != nil {
		return vault.Contents{}, err
	}
	return sqlite.Verify(ctx, o.Path)
}

// Restore makes a store what a backup holds, which is verified first. Every
// vault gets a new epoch, so that devices which know more than the backup learn
// of it. vault.ErrInUse says that a process has the store. The former database
// stays whole under the name kept, "" if there was none.
func Restore(ctx context.Context, o Options, from string) (contents vault.Contents, kept string, err error) {
	if err := o.known(); err != nil {
		return vault.Contents{}, "", err
	}
	return sqlite.Restore(ctx, from, o.Path)
}

// Beside returns the path of a file with that suffix beside the store, the same
// for all who use the store.
func Beside(o Options, suffix string) (string, error) {
	if err := o.known(); err != nil {
		return "", err
	}
	path, err := sqlite.Locate(o.Path)
	if err != nil {
		return "", err
	}
	return path + suffix, nil
}

// known refuses drivers that there are not.
func (o Options) known() error {
	switch o.Driver {
	case "sqlite":
		return nil
	case "postgres":
		return fmt.Errorf("store.driver %q is not built yet: use \"sqlite\"", o.Driver)
	default:
		return fmt.Errorf("store.driver %q is unknown: there is \"sqlite\"", o.Driver)
	}
}
