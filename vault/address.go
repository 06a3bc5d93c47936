package vault

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/secure/precis"
	"golang.org/x/text/unicode/norm"
)

// ErrMalformedAddress says that an address can't be prepared into an account.
var ErrMalformedAddress = errors.New("malformed address")

// MaxAddressPart bounds each part of an address, in bytes (RFC 7622 §3.1).
const MaxAddressPart = 1023

// Account is a prepared bare JID: two spellings of one account are equal as
// Accounts. Make one with [PrepareAccount].
type Account string

// Domain returns the part behind the "@".
func (a Account) Domain() string {
	_, domain, _ := strings.Cut(string(a), "@")
	return domain
}

// SplitAddress cuts a JID that a host stamped into its bare part and its
// resource. It neither checks nor changes either part; a JID without a
// resource gives "".
func SplitAddress(address string) (bare, resource string) {
	bare, resource, _ = strings.Cut(address, "/")
	return bare, resource
}

// PrepareAccount turns a bare JID with a local part, as a host or a person
// spelled it, into the account that it names: the local part by PRECIS
// UsernameCaseMapped (RFC 8265 §3.3) where that accepts it, else by NFKC and
// lower case, since hosts admit more than PRECIS does; the domain in lower
// case and NFC, without the dot of an absolute name. The error is
// [ErrMalformedAddress].
func PrepareAccount(bare string) (Account, error) {
	local, domain, found := strings.Cut(bare, "@")
	if !found || local == "" {
		return "", fmt.Errorf("%w: no local part", ErrMalformedAddress)
	}
	local, err := prepareLocal(local)
	if err != nil {
		return "", err
	}
	domain, err = PrepareDomain(domain)
	if err != nil {
		return "", err
	}
	return Account(local + "@" + domain), nil
}

func prepareLocal(local string) (string, error) {
	if len(local) > MaxAddressPart || !utf8.ValidString(local) || strings.ContainsFunc(local, isControl) {
		return "", fmt.Errorf("%w: local part is too long or not plain text", ErrMalformedAddress)
	}
	prepared, err := precis.UsernameCaseMapped.String(local)
	if err != nil {
		prepared = strings.ToLower(norm.NFKC.String(local))
		// Lower-casing can leave text that NFKC would still change.
		prepared = norm.NFKC.String(prepared)
	}
	if prepared == "" || len(prepared) > MaxAddressPart || strings.ContainsAny(prepared, "@/") {
		return "", fmt.Errorf("%w: local part", ErrMalformedAddress)
	}
	return prepared, nil
}

// PrepareDomain returns the comparable spelling of a domain. The error is
// [ErrMalformedAddress].
func PrepareDomain(domain string) (string, error) {
	if len(domain) > MaxAddressPart || !utf8.ValidString(domain) || strings.ContainsFunc(domain, isControl) {
		return "", fmt.Errorf("%w: domain is too long or not plain text", ErrMalformedAddress)
	}
	domain = norm.NFC.String(strings.ToLower(strings.TrimSuffix(domain, ".")))
	if domain == "" || strings.HasSuffix(domain, ".") || len(domain) > MaxAddressPart || strings.ContainsAny(domain, "@/ ") {
		return "", fmt.Errorf("%w: domain", ErrMalformedAddress)
	}
	return domain, nil
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }
