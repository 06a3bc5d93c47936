package main

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"pepvault/vault"
	"pepvault/vault/device/cache"
	"pepvault/vault/device/client"
	"pepvault/vault/seal"
)

// settingsFile is beside the sealed state. It names files with secrets and has
// none.
const settingsFile = "device.json"

// settings are what init was given.
type settings struct {
	Account      string `json:"account"`
	Server       string `json:"server,omitempty"`
	PasswordFile string `json:"password_file,omitempty"`
	Service      string `json:"service"`
	Vault        string `json:"vault"`
	CA           string `json:"ca,omitempty"`
	InsecureTLS  bool   `json:"insecure_tls,omitempty"`
	Resource     string `json:"resource"`
	// Unlock is "passphrase" or "keyfile", SecretFile where it is; "" = a person
	// is asked.
	Unlock     string `json:"unlock"`
	SecretFile string `json:"secret_file,omitempty"`
}

// app is one call of the program.
type app struct {
	*process
	globals
	settings settings
	kept     settings // as they lie in the folder
	store    *cache.Store
}

// folder is where this device keeps what it has.
func (a *app) folder() (string, error) {
	if a.State != "" {
		return a.State, nil
	}
	config, err := os.UserConfigDir()
	if err != nil {
		return "", usageError("--state is missing: " + err.Error())
	}
	return filepath.Join(config, "pepvault-device"), nil
}

// load reads the settings of the folder and puts the flags of this call before
// them.
func (a *app) load() error {
	text, err := a.store.ReadFile(settingsFile)
	if err == nil {
		if bad := json.Unmarshal(text, &a.kept); bad != nil {
			dir, _ := a.folder() // it was found
			err = fmt.Errorf("%s is damaged; remove it and run pepvault-device init again: %w", filepath.Join(dir, settingsFile), bad)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s := a.kept
	s.Account = cmp.Or(a.Account, s.Account)
	s.Server = cmp.Or(a.Server, s.Server)
	s.Vault = cmp.Or(a.Vault, s.Vault, "secrets")
	switch {
	case a.CA != "":
		s.CA, s.InsecureTLS = absolute(a.CA), false
	case a.InsecureTLS:
		s.CA, s.InsecureTLS = "", true
	}
	if a.PasswordFile != "" {
		s.PasswordFile = absolute(a.PasswordFile)
	}
	if s.Account == "" {
		return usageError("--account is missing, and this device was not set up by init")
	}
	account, err := vault.PrepareAccount(s.Account)
	if err != nil {
		return usageError(fmt.Sprintf("--account %q: %v", s.Account, err))
	}
	if !vault.ValidName(s.Vault) {
		return usageError("--vault: 1 to 512 bytes of plain text")
	}
	s.Service = cmp.Or(a.Service, s.Service, "vault."+account.Domain())
	s.Resource = cmp.Or(s.Resource, "device-"+strings.ToLower(rand.Text()[:10]))
	a.settings = s
	return a.sameVault()
}

// sameVault refuses to mix two vaults in one folder.
func (a *app) sameVault() error {
	if a.kept.Account == "" {
		return nil
	}
	before, err := vault.PrepareAccount(a.kept.Account)
	now, _ := vault.PrepareAccount(a.settings.Account)
	if err != nil || before != now || a.kept.Vault != a.settings.Vault {
		dir, _ := a.folder()
		return fmt.Errorf("%s holds the vault %s of %s; name another folder by --state", dir, a.kept.Vault, a.kept.Account)
	}
	return nil
}

// keep writes settings into the folder, if they are new.
func (a *app) keep(s settings) error {
	if s == a.kept {
		return nil
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	a.kept = s
	return a.store.WriteFile(settingsFile, append(text, '\n'))
}

func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

// options are those of the device.
func (a *app) options() client.Options {
	account, _ := vault.PrepareAccount(a.settings.Account) // it was checked
	source := client.Source{Kind: seal.PassPhrase, File: a.settings.SecretFile}
	if a.settings.Unlock == "keyfile" {
		source.Kind = seal.KeyFile
	}
	return client.Options{
		Account: account, Service: a.settings.Service, Node: a.settings.Vault, Store: a.store,
		Source: source, Logger: a.logger(),
		Secret: func(kind seal.LockKind) ([]byte, error) {
			if kind != source.Kind {
				return nil, fmt.Errorf("%w: the vault is locked with a %s", seal.ErrWrongSecret, map[seal.LockKind]string{seal.KeyFile: "key file", seal.PassPhrase: "pass phrase"}[kind])
			}
			return a.secret(source)
		},
	}
}

// secret reads a pass phrase or a key file.
func (a *app) secret(source client.Source) ([]byte, error) {
	if source.File == "" {
		return a.askFor("Pass phrase of the vault: ", "--passphrase-file")
	}
	text, err := os.ReadFile(source.File)
	if err != nil {
		return nil, err
	}
	if source.Kind == seal.PassPhrase {
		text = bytes.TrimRight(text, "\r\n")
	}
	return text, nil
}

// password reads the account's password.
func (a *app) password() (string, error) {
	if a.settings.PasswordFile == "" {
		text, err := a.askFor("Password of "+a.settings.Account+": ", "--password-file")
		return string(text), err
	}
	text, err := os.ReadFile(a.settings.PasswordFile)
	return string(bytes.TrimRight(text, "\r\n")), err
}

// askFor asks a person, without showing what is typed.
func (a *app) askFor(prompt, flag string) ([]byte, error) {
	if !a.asks {
		return nil, usageError(flag + " is missing, and nobody is there to be asked")
	}
	fmt.Fprint(a.stderr, prompt)
	text, err := term.ReadPassword(int(a.stdin.Fd()))
	fmt.Fprintln(a.stderr)
	return text, err
}
