package component

import (
	"fmt"
	"slices"
	"strings"

	"pepvault/component/link"
	"pepvault/pep"
	"pepvault/vault"
)

// party is who sent a stanza, as far as the service can tell.
type party struct {
	sender pep.Sender // of a served account; Resource may be empty
	host   string     // the domain, if a server asks for itself
}

// addresses knows whom the service serves, and by which names.
type addresses struct {
	service string   // our JID: a domain
	served  []string // prepared domains
}

// complete tells whether a stanza says enough to be dealt with. The start tag
// of one may be longer than what is read of it, in any order of attributes:
// what lacks its type could be a result, which is never answered. An answer
// needs our address, else the host ends the stream (XEP-0114, invalid-from).
func (a addresses) complete(st *link.Stanza) bool {
	if st.Skipped == link.HugeStart && (st.ID == "" || st.Type == "") {
		return false
	}
	if st.To == "" {
		st.To = a.service
	}
	return st.From != ""
}

// from reads the JID that the host stamped on a stanza. Who is not served
// gets ErrForbidden.
func (a addresses) from(stamped string) (party, error) {
	bare, resource := vault.SplitAddress(stamped)
	if !strings.Contains(bare, "@") {
		domain, err := vault.PrepareDomain(bare)
		if err != nil || !slices.Contains(a.served, domain) {
			return party{}, notServed()
		}
		return party{host: domain}, nil
	}
	account, err := vault.PrepareAccount(bare)
	if err != nil {
		return party{}, fmt.Errorf("%w: %w", pep.ErrMalformedJID, err)
	}
	if !slices.Contains(a.served, account.Domain()) {
		return party{}, notServed()
	}
	return party{sender: pep.Sender{Account: account, Address: stamped, Resource: resource}}, nil
}

func notServed() error {
	return pep.Refuse(pep.ErrForbidden, "this service is for accounts of other domains")
}

// unescape undoes XEP-0106 §4 in one pass: what it makes is not looked at
// again. (mellium's jid.Unescape v0.22.0 reads the wrong digits behind a
// prefix of two characters or more.)
var unescape = strings.NewReplacer(
	`\20`, " ", `\22`, `"`, `\26`, "&", `\27`, "'", `\2f`, "/", `\2F`, "/", `\3a`, ":", `\3A`, ":",
	`\3c`, "<", `\3C`, "<", `\3e`, ">", `\3E`, ">", `\40`, "@", `\5c`, `\`, `\5C`, `\`,
)

// explicit is the address at which others find an account's vaults.
func (a addresses) explicit(owner vault.Account) string {
	return escape(string(owner)) + "@" + a.service
}

// escape makes a JID fit to be a local part (XEP-0106 §4); unescape undoes it.
func escape(jid string) string {
	var b strings.Builder
	for i := range len(jid) {
		code, special := escapes[jid[i]]
		if special && (jid[i] != '\\' || unescape.Replace(jid[i:min(i+3, len(jid))]) != jid[i:min(i+3, len(jid))]) {
			b.WriteString(code)
		} else {
			b.WriteByte(jid[i])
		}
	}
	return b.String()
}

// escapes are the codes of the characters that can't stand in a local part,
// and of the one that begins a code: that is written as one only where it
// would be taken for it.
var escapes = map[byte]string{
	' ': `\20`, '"': `\22`, '&': `\26`, '\'': `\27`, '/': `\2f`, ':': `\3a`,
	'<': `\3c`, '>': `\3e`, '@': `\40`, '\\': `\5c`,
}

// owner tells whose vaults a request to an address is about: the sender's
// own at the bare domain, those of the account that an explicit address names
// (XEP-0106 §4, unescaped in one pass) elsewhere.
func (a addresses) owner(to string, sender vault.Account) (vault.Account, error) {
	bare, _ := vault.SplitAddress(to)
	local, _, explicit := strings.Cut(bare, "@")
	if !explicit {
		return sender, nil
	}
	named := unescape.Replace(local)
	if strings.Count(named, "@") != 1 {
		return "", malformedOwner()
	}
	account, err := vault.PrepareAccount(named)
	if err != nil || !slices.Contains(a.served, account.Domain()) {
		return "", malformedOwner()
	}
	return account, nil
}

func malformedOwner() error {
	return pep.Refuse(pep.ErrMalformedJID, `an account's vaults are at its JID with "@" written as "\40"`)
}
