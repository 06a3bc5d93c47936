package sqlite

import (
	"encoding/json"
	"errors"
	"time"

	"pepvault/vault"
)

// storedKey is a vault.Key in JSON.
type storedKey struct {
	Account vault.Account `json:"account"`
	Node    string        `json:"node"`
}

// encodeKeys never writes null, as an empty list in Go would be.
func encodeKeys(keys []vault.Key) (string, error) {
	stored := make([]storedKey, len(keys))
	for i, key := range keys {
		stored[i] = storedKey(key)
	}
	text, err := json.Marshal(stored)
	return string(text), err
}

func decodeKeys(text string) ([]vault.Key, error) {
	var stored []storedKey
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return nil, err
	}
	keys := make([]vault.Key, len(stored))
	for i, key := range stored {
		keys[i] = vault.Key(key)
	}
	return keys, nil
}

// encodeList never writes null either.
func encodeList[T ~string](list []T) (string, error) {
	if list == nil {
		list = []T{}
	}
	text, err := json.Marshal(list)
	return string(text), err
}

func decodeList[T ~string](text string) (list []T, err error) {
	err = json.Unmarshal([]byte(text), &list)
	return list, err
}

// Resources implements vault.View.
func (r *reading) Resources() ([]vault.Resource, error) {
	const doing = "read resources"
	if err := r.unswift(); err != nil {
		return nil, err
	}
	var all []vault.Resource
	var account, name, address, owners, vaults, caps string
	var seen int64
	var errs []error
	dest := []any{&account, &name, &address, &seen, &owners, &vaults, &caps}
	err := r.each(doing, readResources, nil, dest, func() {
		resource := vault.Resource{
			Account: vault.Account(account), Name: name, Address: address, Seen: time.UnixMilli(seen).UTC(), Caps: caps,
		}
		var err1, err2 error
		resource.Owners, err1 = decodeList[vault.Account](owners)
		resource.Vaults, err2 = decodeKeys(vaults)
		errs = append(errs, err1, err2)
		all = append(all, resource)
	})
	if err == nil {
		err = damaged(doing, "a resource is damaged", errs)
	}
	return all, err
}

// damaged makes one failure of the store of all that could not be decoded.
func damaged(doing, text string, errs []error) error {
	cause := errors.Join(errs...)
	if cause == nil {
		return nil
	}
	return &storageError{doing: doing, text: text, cause: cause}
}

// KeepResource implements vault.Tx.
func (t *tx) KeepResource(r vault.Resource) error {
	owners, err := encodeList(r.Owners)
	if err != nil {
		return err
	}
	vaults, err := encodeKeys(r.Vaults)
	if err != nil {
		return err
	}
	_, err = t.write("keep a resource", keepResource,
		string(r.Account), r.Name, r.Address, r.Seen.UnixMilli(), owners, vaults, r.Caps)
	return err
}

// DropResource implements vault.Tx.
func (t *tx) DropResource(account vault.Account, name string) error {
	_, err := t.write("drop a resource", dropResource, string(account), name)
	return err
}

// ForgetResources implements vault.Tx.
func (t *tx) ForgetResources(account vault.Account) error {
	_, err := t.write("forget resources", forgetResources, string(account))
	return err
}

// Capabilities implements vault.View.
func (r *reading) Capabilities() ([]vault.Capabilities, error) {
	const doing = "read capabilities"
	if err := r.unswift(); err != nil {
		return nil, err
	}
	var all []vault.Capabilities
	var hash, nodes string
	var sync bool
	var used int64
	var errs []error
	err := r.each(doing, readCapabilities, nil, []any{&hash, &nodes, &sync, &used}, func() {
		list, err := decodeList[string](nodes)
		errs = append(errs, err)
		all = append(all, vault.Capabilities{Hash: hash, Nodes: list, Sync: sync, Used: time.UnixMilli(used).UTC()})
	})
	if err == nil {
		err = damaged(doing, "capabilities are damaged", errs)
	}
	return all, err
}

// KeepCapabilities implements vault.Tx.
func (t *tx) KeepCapabilities(c vault.Capabilities) error {
	nodes, err := encodeList(c.Nodes)
	if err != nil {
		return err
	}
	_, err = t.write("keep capabilities", keepCapabilities, c.Hash, nodes, c.Sync, c.Used.UnixMilli())
	return err
}

// DropCapabilities implements vault.Tx.
func (t *tx) DropCapabilities(hash string) error {
	_, err := t.write("drop capabilities", dropCapabilities, hash)
	return err
}
