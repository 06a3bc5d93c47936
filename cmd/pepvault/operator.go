package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"pepvault/configs"
	"pepvault/pep"
	"pepvault/store"
	"pepvault/vault"
)

// desk is where an operator looks at accounts and vaults and acts on them: in
// this process, or through the socket of the service that has the store.
type desk interface {
	accounts(ctx context.Context) ([]accountSummary, error)
	// vaults lists those of an account, "" standing for all accounts.
	vaults(ctx context.Context, account vault.Account) ([]vaultSummary, error)
	vault(ctx context.Context, key vault.Key) (vaultDetails, error)
	erase(ctx context.Context, account vault.Account) (erasure, error)
	close() error
}

// accountSummary is what an account has stored. Like the types below it is
// part of what --json prints.
type accountSummary struct {
	Account vault.Account `json:"account"`
	Vaults  int           `json:"vaults"`
	Records int           `json:"records"`
	Bytes   int64         `json:"bytes"`
}

type vaultSummary struct {
	Account    vault.Account  `json:"account"`
	Node       string         `json:"node"`
	Revision   vault.Revision `json:"revision"`
	Records    int            `json:"records"`
	Bytes      int64          `json:"bytes"`
	Tombstones int            `json:"tombstones"`
}

type vaultDetails struct {
	vaultSummary
	Epoch         string          `json:"epoch"`
	Created       time.Time       `json:"created"`
	Pruned        vault.Revision  `json:"pruned"`
	KeyVersions   keyVersions     `json:"key_versions"`
	Floor         uint32          `json:"key_version_floor"`
	Subscriptions []vault.Account `json:"subscriptions"`
	Affiliations  []affiliated    `json:"affiliations"`
	Config        vault.Config    `json:"config"`
}

// keyVersions are those of the records; 0 and 0 for none.
type keyVersions struct {
	Lowest  uint32 `json:"lowest"`
	Highest uint32 `json:"highest"`
}

type affiliated struct {
	Account     vault.Account `json:"account"`
	Affiliation string        `json:"affiliation"`
}

type erasure struct {
	Account vault.Account `json:"account"`
	Vaults  int           `json:"vaults"`
	Records int           `json:"records"`
}

// openDesk opens the store of a configuration, or reaches the service that has
// it.
func openDesk(ctx context.Context, config configs.Config) (desk, error) {
	o := storeOptions(config)
	if _, err := os.Stat(o.Path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no store at %s: change store.path, or start the service once", o.Path)
	}
	opened, err := store.Open(ctx, o)
	if errors.Is(err, vault.ErrInUse) {
		return reachService(ctx, o)
	}
	if err != nil {
		return nil, err
	}
	// Without a service there is nobody to tell.
	engine := pep.New(pep.Options{Store: opened})
	return &localDesk{store: opened, done: opened.Close, eraser: func(ctx context.Context, account vault.Account) (erased pep.Erased, err error) {
		err = engine.Erase(ctx, account, func(out pep.Outcome) { erased = out.Answer.(pep.Erased) })
		return erased, err
	}}, nil
}

func storeOptions(config configs.Config) store.Options {
	return store.Options{Driver: config.Store.Driver, Path: config.Store.Path, Logger: slog.New(slog.DiscardHandler)}
}

// localDesk works on a store that this process has.
type localDesk struct {
	store  vault.Store
	eraser func(ctx context.Context, account vault.Account) (pep.Erased, error)
	done   func() error // nil: the store stays open
}

func (d *localDesk) close() error {
	if d.done == nil {
		return nil
	}
	return d.done()
}

// names lists the accounts. Each is then looked at by itself: a long view would
// keep the store from cleaning up.
func (d *localDesk) names(ctx context.Context) (names []vault.Account, err error) {
	err = d.store.View(ctx, func(v vault.View) error {
		names, err = v.Accounts()
		return err
	})
	return names, err
}

func (d *localDesk) accounts(ctx context.Context) ([]accountSummary, error) {
	names, err := d.names(ctx)
	if err != nil {
		return nil, err
	}
	found := make([]accountSummary, 0, len(names))
	for _, name := range names {
		err := d.store.View(ctx, func(v vault.View) error {
			usage, err := v.Usage(name)
			found = append(found, accountSummary{Account: name, Vaults: usage.Vaults, Records: usage.Records, Bytes: usage.Bytes})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (d *localDesk) vaults(ctx context.Context, account vault.Account) ([]vaultSummary, error) {
	names := []vault.Account{account}
	if account == "" {
		var err error
		if names, err = d.names(ctx); err != nil {
			return nil, err
		}
	}
	found := []vaultSummary{}
	for _, name := range names {
		err := d.store.View(ctx, func(v vault.View) error {
			sizes, err := v.Sizes(name)
			for _, size := range sizes {
				found = append(found, summarise(size))
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

func summarise(v vault.Size) vaultSummary {
	return vaultSummary{
		Account: v.Key.Account, Node: v.Key.Node, Revision: v.Revision,
		Records: v.Records, Bytes: v.Bytes, Tombstones: v.Tombstones,
	}
}

var affiliationNames = map[vault.Affiliation]string{
	vault.Outcast: "outcast", vault.Member: "member", vault.Publisher: "publisher",
}

func (d *localDesk) vault(ctx context.Context, key vault.Key) (details vaultDetails, err error) {
	err = d.store.View(ctx, func(v vault.View) error {
		state, err := v.Vault(key)
		if errors.Is(err, vault.ErrNoVault) {
			return fmt.Errorf("%s has no vault %q: see pepvault vault list %s", key.Account, key.Node, key.Account)
		}
		if err != nil {
			return err
		}
		low, high, err1 := v.KeyVersions(key)
		subscriptions, err2 := v.Subscriptions(key)
		people, err3 := v.Affiliations(key)
		details = vaultDetails{
			vaultSummary: summarise(vault.Size{
				Key: key, Revision: state.Revision, Records: state.Records, Bytes: state.Bytes, Tombstones: state.Tombstones,
			}), Epoch: hex.EncodeToString(state.Epoch[:]), Created: state.Created,
			Pruned: state.Pruned, KeyVersions: keyVersions{low, high}, Floor: state.Config.KeyVersionFloor,
			Subscriptions: []vault.Account{}, Affiliations: []affiliated{}, Config: state.Config,
		}
		for _, s := range subscriptions {
			details.Subscriptions = append(details.Subscriptions, s.Account)
		}
		for _, a := range people {
			details.Affiliations = append(details.Affiliations, affiliated{a.Account, affiliationNames[a.Affiliation]})
		}
		return errors.Join(err1, err2, err3)
	})
	return details, err
}

func (d *localDesk) erase(ctx context.Context, account vault.Account) (erasure, error) {
	erased, err := d.eraser(ctx, account)
	return erasure{Account: account, Vaults: erased.Vaults, Records: erased.Records}, err
}
