package sqlite

import (
	"encoding/json"
	"time"

	"pepvault/vault"
)

// Resources implements vault.View.
func (r *reading) Resources() ([]vault.Resource, error) {
	if err := r.unswift(); err != nil {
		return nil, err
	}
	var all []vault.Resource
	var account, name, address, nodes string
	var seen int64
	var damaged error
	err := r.each("read resources", readResources, nil, []any{&account, &name, &address, &seen, &nodes}, func() {
		resource := vault.Resource{
			Account: vault.Account(account), Name: name, Address: address, Seen: time.UnixMilli(seen).UTC(),
		}
		if err := json.Unmarshal([]byte(nodes), &resource.Nodes); err != nil {
			damaged = err
		}
		all = append(all, resource)
	})
	if err == nil && damaged != nil {
		err = &storageError{doing: "read resources", text: "a resource is damaged", cause: damaged}
	}
	return all, err
}

// KeepResource implements vault.Tx.
func (t *tx) KeepResource(r vault.Resource) error {
	nodes, err := json.Marshal(r.Nodes)
	if err != nil {
		return err
	}
	_, err = t.write("keep a resource", keepResource,
		string(r.Account), r.Name, r.Address, r.Seen.UnixMilli(), string(nodes))
	return err
}

// DropResource implements vault.Tx.
func (t *tx) DropResource(account vault.Account, name string) error {
	_, err := t.write("drop a resource", dropResource, string(account), name)
	return err
}
