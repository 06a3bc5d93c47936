package pep

import (
	"context"

	"pepvault/vault"
)

// VaultUsage is what an operator may know of a vault.
type VaultUsage struct {
	Node       string
	Records    int
	Bytes      int64  // sum of the payloads
	KeyVersion uint32 // the highest among the records
}

// Vaults tells what each vault of an account holds, sorted by node.
func (e *Engine) Vaults(ctx context.Context, account vault.Account) (list []VaultUsage, err error) {
	err = e.store.View(ctx, func(v vault.View) error {
		vaults, err := v.Vaults(account)
		if err != nil {
			return err
		}
		list = make([]VaultUsage, len(vaults))
		for i, of := range vaults {
			_, high, err := v.KeyVersions(of.Key)
			if err != nil {
				return err
			}
			list[i] = VaultUsage{Node: of.Key.Node, Records: of.Records, Bytes: of.Bytes, KeyVersion: high}
		}
		return nil
	})
	return list, err
}
