package wire

import (
	"slices"

	"pepvault/pep"
)

// Ad-hoc commands (XEP-0050). Which there are, and what they do, is for the
// service to say.

const (
	// CommandsNode is the node under which all commands are found.
	CommandsNode = pep.CommandsNode
	// CommandPrefix begins the node of every command of ours. In discovery a
	// node that begins so is taken for a command, never for a vault.
	CommandPrefix = pep.CommandPrefix
)

// Command carries a command out, or a step of it.
type Command struct {
	Node    string
	Session string // "" in the first step
	// Action is "execute", "cancel", "prev", "next" or "complete". What a device
	// leaves out is "execute" (§3.3); a form that it closes is "cancel".
	Action string
	Form   *pep.Form // as submitted; nil = none
}

// CommandResult answers [Command].
type CommandResult struct {
	Node    string
	Session string
	Status  string // "executing", "completed" or "canceled"
	// Actions are what may come next: "prev", "next" and "complete"; "execute"
	// means the same as Execute, which is one of them or "" = the last.
	Actions []string
	Execute string
	Notes   []CommandNote
	Form    *pep.Form // to fill in while executing, else a result; nil = none
}

// CommandNote is a sentence for the person at the device.
type CommandNote struct {
	Kind string // "info", "warn" or "error"
	Text string
}

// ListCommands asks which commands there are (XEP-0050 §2.2): below
// [CommandsNode], or below one of them, which has none. [CommandList] answers
// it.
type ListCommands struct{ Node string }

// CommandList answers [ListCommands].
type CommandList struct {
	Node     string // as asked
	Commands []CommandInfo
}

// DescribeCommands asks what [CommandsNode] is; [CommandInfo] answers it.
type DescribeCommands struct{}

// DescribeCommand asks what one command is (XEP-0050 §2.3); [CommandInfo]
// answers it.
type DescribeCommand struct{ Node string }

// CommandInfo names a command, or the list of all: [CommandsNode].
type CommandInfo struct{ Node, Name string }

func decodeCommand(e *element, _ extensions) (Call, error) {
	c := Command{Node: e.attr("node"), Session: e.attr("sessionid"), Action: e.attr("action")}
	switch c.Action {
	case "":
		c.Action = "execute"
	case "execute", "cancel", "prev", "next", "complete":
	default:
		return nil, pep.Refuse(ErrMalformedAction, "a command knows execute, cancel, prev, next and complete")
	}
	if c.Node == "" {
		return nil, pep.Refuse(pep.ErrBadRequest, "the request names no command")
	}
	x := e.child(name{nsForm, "x"})
	if x == nil {
		return c, nil
	}
	form, kind, err := decodeForm(x)
	switch {
	case err == nil && kind == "submit":
		c.Form = &form
	case err == nil && kind == "cancel":
		c.Action = "cancel"
	default:
		return nil, pep.Refuse(ErrBadPayload, "the form of a command comes back with the type submit, and with each field once")
	}
	return c, nil
}

func askCommand(call Call) (kind string, ask func(dst []byte) []byte) {
	c, ok := call.(Command)
	if !ok {
		return "", nil
	}
	return "set", func(dst []byte) []byte {
		dst = appendAttr(append(dst, "<command xmlns='"+nsCommands+"'"...), "node", c.Node)
		dst = appendAttrIf(appendAttrIf(dst, "sessionid", c.Session), "action", c.Action)
		if c.Form == nil {
			return append(dst, "/>"...)
		}
		return append(appendForm(append(dst, '>'), "submit", c.Form), "</command>"...)
	}
}

func appendCommandResult(dst []byte, address string, answer any) ([]byte, bool) {
	switch a := answer.(type) {
	case CommandResult:
		return appendCommandStep(dst, a), true
	case CommandInfo:
		return appendCommandInfo(dst, a), true
	case CommandList:
		dst = append(appendAttrIf(append(dst, "<query xmlns='"+nsDiscoItems+"'"...), "node", a.Node), '>')
		for _, c := range a.Commands {
			dst = appendDiscoItem(dst, address, c.Node, c.Name)
		}
		return append(dst, "</query>"...), true
	}
	return dst, false
}

func appendCommandStep(dst []byte, a CommandResult) []byte {
	dst = appendAttr(append(dst, "<command xmlns='"+nsCommands+"'"...), "node", a.Node)
	dst = append(appendAttr(appendAttrIf(dst, "sessionid", a.Session), "status", a.Status), '>')
	if len(a.Actions) > 0 {
		dst = append(appendAttrIf(append(dst, "<actions"...), "execute", a.Execute), '>')
		for _, action := range a.Actions {
			dst = append(append(append(dst, '<'), action...), "/>"...)
		}
		dst = append(dst, "</actions>"...)
	}
	for _, note := range a.Notes {
		dst = append(appendAttr(append(dst, "<note"...), "type", note.Kind), '>')
		dst = append(appendText(dst, note.Text), "</note>"...)
	}
	if a.Form != nil {
		kind := "result"
		if a.Status == "executing" {
			kind = "form"
		}
		dst = appendForm(dst, kind, a.Form)
	}
	return append(dst, "</command>"...)
}

func appendCommandInfo(dst []byte, a CommandInfo) []byte {
	kind := "command-node"
	if a.Node == CommandsNode {
		kind = "command-list"
	}
	dst = appendAttr(append(dst, "<query xmlns='"+nsDiscoInfo+"'"...), "node", a.Node)
	dst = appendAttr(append(dst, "><identity category='automation'"...), "type", kind)
	dst = append(appendAttrIf(dst, "name", a.Name), "/>"...)
	dst = appendFeature(appendFeature(dst, nsCommands), nsForm)
	return append(dst, "</query>"...)
}

func decodeCommandReply(iq *element, call Call) (any, error) {
	switch call.(type) {
	case Command:
		return decodeCommandStep(iq)
	case DescribeCommands, DescribeCommand:
		return decodeCommandInfo(iq)
	case ListCommands:
		query, err := within(iq, name{nsDiscoItems, "query"})
		if err != nil {
			return nil, err
		}
		a := CommandList{Node: query.attr("node")}
		for _, c := range query.children {
			a.Commands = append(a.Commands, CommandInfo{Node: c.attr("node"), Name: c.attr("name")})
		}
		return a, nil
	}
	return nil, nil
}

func decodeCommandStep(iq *element) (any, error) {
	e, err := within(iq, name{nsCommands, "command"})
	if err != nil {
		return nil, err
	}
	a := CommandResult{Node: e.attr("node"), Session: e.attr("sessionid"), Status: e.attr("status")}
	if !slices.Contains([]string{"executing", "completed", "canceled"}, a.Status) {
		return nil, badReply("status is %q", a.Status)
	}
	for _, c := range e.children {
		switch c.name {
		case name{nsCommands, "actions"}:
			a.Execute = c.attr("execute")
			for _, action := range c.children {
				a.Actions = append(a.Actions, action.name.local)
			}
		case name{nsCommands, "note"}:
			kind := c.attr("type")
			if kind == "" {
				kind = "info"
			}
			a.Notes = append(a.Notes, CommandNote{Kind: kind, Text: string(c.text)})
		}
	}
	a.Form, err = formIn(e)
	return a, err
}

func decodeCommandInfo(iq *element) (any, error) {
	query, err := within(iq, name{nsDiscoInfo, "query"})
	if err != nil {
		return nil, err
	}
	for _, c := range query.children {
		if c.name == (name{nsDiscoInfo, "identity"}) && c.attr("category") == "automation" {
			return CommandInfo{Node: query.attr("node"), Name: c.attr("name")}, nil
		}
	}
	return nil, badReply("not a command")
}
