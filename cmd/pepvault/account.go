package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"pepvault/vault"
)

type accountCmd struct {
	List  accountListCmd  `cmd:"" help:"List the accounts that own vaults, with their records and bytes."`
	Erase accountEraseCmd `cmd:"" help:"Delete all that the service has of an account: vaults, rights in others' vaults, known devices."`
}

type accountListCmd struct {
	operatorFlags
}

// Run lists the accounts.
func (c *accountListCmd) Run(ctx context.Context, p *process) error {
	return c.withDesk(ctx, p, func(d desk) error {
		found, err := d.accounts(ctx)
		if err != nil {
			return err
		}
		return c.print(p, found, func(t *table) {
			t.row("ACCOUNT", "VAULTS", "RECORDS", "BYTES")
			for _, a := range found {
				t.row(a.Account, a.Vaults, a.Records, a.Bytes)
			}
		})
	})
}

type accountEraseCmd struct {
	operatorFlags
	Account string `arg:"" name:"jid" help:"The account, as in alice@example.org."`
	Yes     bool   `help:"Do not ask. Required where there is no terminal."`
}

// Run erases the account. Its devices hear of it if the service runs.
func (c *accountEraseCmd) Run(ctx context.Context, p *process) error {
	account, err := accountOf(c.Account)
	if err != nil {
		return err
	}
	if !c.Yes && !p.terminal {
		return fmt.Errorf("account erase %s: there is no terminal to ask for a confirmation: add --yes", account)
	}
	return c.withDesk(ctx, p, func(d desk) error {
		if !c.Yes {
			if err := confirm(ctx, p, d, account); err != nil {
				return err
			}
		}
		erased, err := d.erase(ctx, account)
		if err != nil {
			return err
		}
		return c.print(p, erased, func(t *table) {
			t.line("erased %s: %s, %s", account, count(erased.Vaults, "vault"), count(erased.Records, "record"))
		})
	})
}

// confirm asks whether an account is to go.
func confirm(ctx context.Context, p *process, d desk, account vault.Account) error {
	vaults, err := d.vaults(ctx, account)
	if err != nil {
		return err
	}
	records := 0
	for _, v := range vaults {
		records += v.Records
	}
	fmt.Fprintf(p.stderr, "This deletes %s with %s of %s for good.\nType the address to go on: ",
		count(len(vaults), "vault"), count(records, "record"), account)
	typed, _ := bufio.NewReader(p.stdin).ReadString('\n') // what was not typed is no confirmation
	if again, err := vault.PrepareAccount(strings.TrimSpace(typed)); err != nil || again != account {
		return errors.New("nothing was erased: that is not the address")
	}
	return nil
}

// accountOf prepares an address that was typed.
func accountOf(jid string) (vault.Account, error) {
	account, err := vault.PrepareAccount(jid)
	if err != nil || strings.Contains(jid, "/") {
		return "", fmt.Errorf("%q is not the address of an account: write it as in alice@example.org", jid)
	}
	return account, nil
}
