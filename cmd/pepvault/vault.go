package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"pepvault/vault"
)

type vaultCmd struct {
	List vaultListCmd `cmd:"" help:"List vaults with their revision, records and bytes."`
	Show vaultShowCmd `cmd:"" help:"Show the state of one vault; what is in its records is not shown."`
}

type vaultListCmd struct {
	operatorFlags
	Account string `arg:"" optional:"" name:"jid" help:"Only those of this account."`
}

// Run lists the vaults of an account, or all.
func (c *vaultListCmd) Run(ctx context.Context, p *process) error {
	var account vault.Account
	if c.Account != "" {
		var err error
		if account, err = accountOf(c.Account); err != nil {
			return err
		}
	}
	return c.withDesk(ctx, p, func(d desk) error {
		found, err := d.vaults(ctx, account)
		if err != nil {
			return err
		}
		return c.print(p, found, func(t *table) {
			t.row("ACCOUNT", "NODE", "REVISION", "RECORDS", "BYTES", "TOMBSTONES")
			for _, v := range found {
				t.row(v.Account, v.Node, v.Revision, v.Records, v.Bytes, v.Tombstones)
			}
		})
	})
}

type vaultShowCmd struct {
	operatorFlags
	Account string `arg:"" name:"jid" help:"The owner, as in alice@example.org."`
	Node    string `arg:"" help:"The vault's node."`
}

// Run shows a vault.
func (c *vaultShowCmd) Run(ctx context.Context, p *process) error {
	account, err := accountOf(c.Account)
	if err != nil {
		return err
	}
	return c.withDesk(ctx, p, func(d desk) error {
		v, err := d.vault(ctx, vault.Key{Account: account, Node: c.Node})
		if err != nil {
			return err
		}
		return c.print(p, v, func(t *table) { t.vault(v) })
	})
}

// vault prints one vault, a line for each part.
func (t *table) vault(v vaultDetails) {
	t.row("account", v.Account)
	t.row("node", v.Node)
	t.row("created", v.Created.Format(time.RFC3339))
	t.row("epoch", v.Epoch)
	t.row("revision", v.Revision)
	t.row("records", v.Records)
	t.row("bytes", v.Bytes)
	t.row("tombstones", fmt.Sprintf("%d (forgotten up to revision %v)", v.Tombstones, v.Pruned))
	t.row("key versions", fmt.Sprintf("%d to %d, floor %d", v.KeyVersions.Lowest, v.KeyVersions.Highest, v.Floor))
	subscriptions := make([]string, len(v.Subscriptions))
	for i, account := range v.Subscriptions {
		subscriptions[i] = string(account)
	}
	t.row("subscriptions", strings.Join(subscriptions, " "))
	affiliations := make([]string, len(v.Affiliations))
	for i, a := range v.Affiliations {
		affiliations[i] = string(a.Account) + " (" + a.Affiliation + ")"
	}
	t.row("affiliations", strings.Join(affiliations, " "))
	for _, line := range configLines(v.Config) {
		t.row("config", line)
	}
}

// configLines gives what differs from the default, in JSON so that a title
// can't disturb a terminal.
func configLines(c vault.Config) []string {
	var fields map[string]json.RawMessage
	raw, err := json.Marshal(c)
	if err == nil {
		err = json.Unmarshal(raw, &fields)
	}
	if err != nil {
		panic(err) // of a plain struct
	}
	var lines []string
	for name, value := range fields {
		lines = append(lines, name+" = "+string(value))
	}
	slices.Sort(lines)
	return lines
}
