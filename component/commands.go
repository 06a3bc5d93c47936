package component

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault"
)

// The operator's commands (XEP-0050).
const (
	commandUsage  = wire.CommandPrefix + "usage"
	commandVaults = wire.CommandPrefix + "vaults"
	commandErase  = wire.CommandPrefix + "erase"
)

// command is what the service can do for an operator with one account.
type command struct {
	node, name string
	// ask says that the account is asked back about before run is called.
	confirm bool
	run     func(s *Service, ctx context.Context, c *session, r *reply) error
}

func allCommands() []command {
	return []command{
		{node: commandUsage, name: "Usage of an account", run: (*Service).showUsage},
		{node: commandVaults, name: "Vaults of an account", run: (*Service).showVaults},
		{node: commandErase, name: "Erase an account", confirm: true, run: (*Service).eraseAccount},
	}
}

// commands knows who may use them, and who is busy with one.
type commands struct {
	admins   []vault.Account
	all      []command
	sessions *sessions
}

func newCommands(admins []vault.Account) commands {
	return commands{admins: admins, all: allCommands(), sessions: new(sessions)}
}

func (c commands) allow(from party) bool {
	return from.host == "" && slices.Contains(c.admins, from.sender.Account)
}

func (c commands) find(node string) (command, error) {
	for _, one := range c.all {
		if one.node == node {
			return one, nil
		}
	}
	return command{}, pep.Refuse(wire.ErrNoCommand, "there is no such command")
}

// command answers what is asked about commands, and carries them out. The
// names of the commands are no secret, but only operators find them.
func (s *Service) command(ctx context.Context, from party, call wire.Call, r *reply) {
	switch call := call.(type) {
	case wire.DescribeCommands:
		r.answer(wire.CommandInfo{Node: wire.CommandsNode, Name: "Commands"})
	case wire.DescribeCommand:
		c, err := s.commands.find(call.Node)
		if err != nil {
			r.fail(err)
			return
		}
		r.answer(wire.CommandInfo{Node: c.node, Name: c.name})
	case wire.ListCommands:
		list := wire.CommandList{Node: call.Node}
		if call.Node == wire.CommandsNode && s.commands.allow(from) {
			for _, c := range s.commands.all {
				list.Commands = append(list.Commands, wire.CommandInfo{Node: c.node, Name: c.name})
			}
		}
		r.answer(list)
	case wire.Command:
		if !s.commands.allow(from) {
			r.fail(pep.Refuse(pep.ErrForbidden, "commands are for the operators of this service"))
			return
		}
		if err := s.step(ctx, from.sender.Account, call, r); err != nil {
			r.fail(err)
		}
	}
}

// step carries a command one step on. It returns an error, or has answered or
// will do so.
func (s *Service) step(ctx context.Context, by vault.Account, call wire.Command, r *reply) error {
	c, err := s.commands.find(call.Node)
	if err != nil {
		return err
	}
	now := time.Now()
	if call.Session == "" {
		if call.Action != "execute" {
			return pep.Refuse(wire.ErrBadAction, "a command begins with execute")
		}
		r.answer(askAccount(c, s.commands.sessions.begin(c.node, by, now)))
		return nil
	}
	open, err := s.commands.sessions.find(call.Session, c.node, by, now)
	if err != nil {
		return err
	}
	switch {
	case call.Action == "cancel":
		s.commands.sessions.end(open)
		r.answer(wire.CommandResult{Node: c.node, Session: open.id, Status: "canceled"})
		return nil
	case call.Action == "prev" && open.target != "":
		open.target = ""
		r.answer(askAccount(c, open))
		return nil
	case open.target == "":
		return s.named(ctx, c, open, call, r)
	case call.Action != "complete" && call.Action != "execute":
		return pep.Refuse(wire.ErrBadAction, "what comes now is complete, prev or cancel")
	}
	if sure := submitted(call.Form, "confirm"); sure != "true" && sure != "1" {
		return pep.Refuse(wire.ErrBadPayload, "nothing is done unless you confirm it")
	}
	return c.run(s, ctx, open, r)
}

// named takes the account that the command is about.
func (s *Service) named(ctx context.Context, c command, open *session, call wire.Command, r *reply) error {
	last := "complete"
	if c.confirm {
		last = "next"
	}
	if call.Action != last && call.Action != "execute" {
		return pep.Refuse(wire.ErrBadAction, "what comes now is %s or cancel", last)
	}
	account, err := vault.PrepareAccount(submitted(call.Form, "jid"))
	if err != nil || !slices.Contains(s.addresses.served, account.Domain()) {
		return pep.Refuse(wire.ErrBadPayload, "that is no JID of an account that is served here")
	}
	open.target = account
	if !c.confirm {
		err := c.run(s, ctx, open, r)
		if err != nil {
			open.target = "" // so the same step may be tried again
		}
		return err
	}
	usage, err := s.engine.Usage(ctx, account)
	if err != nil {
		open.target = ""
		return err
	}
	r.answer(wire.CommandResult{
		Node: c.node, Session: open.id, Status: "executing", Actions: []string{"prev", "complete"}, Execute: "complete",
		Form: &pep.Form{Fields: []pep.Field{
			{Kind: "fixed", Values: []string{fmt.Sprintf("All that the service has of %s will be removed for good: %d vaults with %d records.", account, usage.Vaults, usage.Records)}},
			{Name: "confirm", Kind: "boolean", Label: "Erase it", Values: []string{"false"}},
		}},
	})
	return nil
}

// submitted is the value of a field that has one, else "".
func submitted(form *pep.Form, field string) string {
	if form == nil {
		return ""
	}
	if f := form.Field(field); f != nil && len(f.Values) == 1 {
		return f.Values[0]
	}
	return ""
}

func askAccount(c command, open *session) wire.CommandResult {
	last := "complete"
	if c.confirm {
		last = "next"
	}
	return wire.CommandResult{
		Node: c.node, Session: open.id, Status: "executing", Actions: []string{last}, Execute: last,
		Form: &pep.Form{Fields: []pep.Field{{Name: "jid", Kind: "jid-single", Label: "JID of the account"}}},
	}
}

// done is the result of a command that has ended.
func (s *Service) done(open *session, fields ...pep.Field) wire.CommandResult {
	s.commands.sessions.end(open)
	about := pep.Field{Name: "jid", Kind: "jid-single", Label: "Account", Values: []string{string(open.target)}}
	return wire.CommandResult{
		Node: open.node, Session: open.id, Status: "completed",
		Form: &pep.Form{Fields: append([]pep.Field{about}, fields...)},
	}
}

func counted[N int | int64](name, label string, n N) pep.Field {
	return pep.Field{Name: name, Kind: "text-single", Label: label, Values: []string{strconv.FormatInt(int64(n), 10)}}
}

func (s *Service) showUsage(ctx context.Context, open *session, r *reply) error {
	usage, err := s.engine.Usage(ctx, open.target)
	if err != nil {
		return err
	}
	r.answer(s.done(open, counted("vaults", "Vaults", usage.Vaults), counted("records", "Records", usage.Records),
		counted("bytes", "Bytes", usage.Bytes)))
	return nil
}

// maxListBytes bounds what is listed of an account's vaults.
const maxListBytes = 32 << 10

func (s *Service) showVaults(ctx context.Context, open *session, r *reply) error {
	vaults, err := s.engine.Vaults(ctx, open.target)
	if err != nil {
		return err
	}
	list, bytes := pep.Field{Name: "list", Kind: "text-multi", Label: "Vaults: records, bytes, highest key version"}, 0
	var notes []wire.CommandNote
	for i, v := range vaults {
		line := fmt.Sprintf("%s: %d records, %d bytes, key version %d", v.Node, v.Records, v.Bytes, v.KeyVersion)
		if bytes += len(line); bytes > maxListBytes {
			notes = []wire.CommandNote{{Kind: "warn", Text: fmt.Sprintf("%d more vaults are not listed.", len(vaults)-i)}}
			break
		}
		list.Values = append(list.Values, line)
	}
	result := s.done(open, counted("vaults", "Vaults", len(vaults)), list)
	result.Notes = notes
	r.answer(result)
	return nil
}

func (s *Service) eraseAccount(ctx context.Context, open *session, r *reply) error {
	return s.engine.Erase(ctx, open.target, func(out pep.Outcome) {
		defer r.guard() // this may be the store's commit loop
		erased := out.Answer.(pep.Erased)
		r.answer(s.done(open, counted("vaults", "Vaults", erased.Vaults), counted("records", "Records", erased.Records)))
		s.notify(out.Notices)
	})
}
