package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"

	"pepvault/store"
	"pepvault/vault"
)

// remoteDesk is the desk of a running service.
type remoteDesk struct {
	path   string
	client *http.Client
}

// reachService finds the service that has a store.
func reachService(ctx context.Context, o store.Options) (*remoteDesk, error) {
	path, err := socketPath(o)
	if err != nil {
		return nil, err
	}
	var dialer net.Dialer
	d := &remoteDesk{path: path, client: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dialer.DialContext(ctx, "unix", path) },
	}}}
	within, cancel := context.WithTimeout(ctx, greetingTimeout)
	defer cancel()
	var name string
	err = d.ask(within, http.MethodGet, "/", nil, &name)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("no right to open %s: run this as the user of the service, or as root", path)
	case err != nil:
		return nil, fmt.Errorf("store %s: %w, and no service answers at %s: end that process, or try again when it has ended",
			o.Path, vault.ErrInUse, path)
	}
	return d, nil
}

// ask makes one request; result takes the document of the answer.
func (d *remoteDesk) ask(ctx context.Context, method, path string, body []byte, result any) error {
	// The name of the host is of no use on a socket.
	request, err := http.NewRequestWithContext(ctx, method, "http://pepvault"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := d.client.Do(request)
	if err != nil {
		return fmt.Errorf("the service at %s: %w", d.path, err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("the service at %s: %w", d.path, err)
	}
	if response.StatusCode != http.StatusOK {
		var f fault
		if json.Unmarshal(raw, &f) != nil || f.Error == "" {
			f.Error = "the service at " + d.path + " does not know this command: it is of another version"
		}
		return errors.New(f.Error)
	}
	return json.Unmarshal(raw, result)
}

func (d *remoteDesk) close() error {
	d.client.CloseIdleConnections()
	return nil
}

func (d *remoteDesk) accounts(ctx context.Context) (found []accountSummary, err error) {
	err = d.ask(ctx, http.MethodGet, "/accounts", nil, &found)
	return found, err
}

func (d *remoteDesk) vaults(ctx context.Context, account vault.Account) (found []vaultSummary, err error) {
	err = d.ask(ctx, http.MethodGet, "/vaults?"+url.Values{"account": {string(account)}}.Encode(), nil, &found)
	return found, err
}

func (d *remoteDesk) vault(ctx context.Context, key vault.Key) (found vaultDetails, err error) {
	query := url.Values{"account": {string(key.Account)}, "node": {key.Node}}
	err = d.ask(ctx, http.MethodGet, "/vault?"+query.Encode(), nil, &found)
	return found, err
}

func (d *remoteDesk) erase(ctx context.Context, account vault.Account) (found erasure, err error) {
	body, err := json.Marshal(order{Account: account})
	if err != nil {
		return found, err
	}
	err = d.ask(ctx, http.MethodPost, "/erase", body, &found)
	return found, err
}
