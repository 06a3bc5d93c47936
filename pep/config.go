package pep

import (
	"slices"
	"strconv"

	"pepvault/vault"
)

// XEP-0004 §3.3 names the kinds of fields.
const (
	kindBoolean = "boolean"
	kindText    = "text-single"
	kindList    = "list-single"
	kindLists   = "list-multi"
	kindJIDs    = "jid-multi"
)

// configField is a field of a vault's configuration (XEP-0060 §16.4.4).
type configField struct {
	name    string // without "pubsub#" or, where x is set, in full
	second  string // another name under which it is read; "" = none
	kind    string
	label   string
	choices []Choice
	// hidden leaves it out of the form that is given out.
	hidden bool
	// show gives the one spelling of what the field is worth in a
	// configuration: two configurations differ where their shows do.
	show func(vault.Config, vault.Limits) []string
	// set reads what was submitted. A field that it can't honour is an error
	// with a sentence about the value.
	set func(c *vault.Config, values []string, l vault.Limits) error
}

// maxText stands for as many as the service allows (XEP-0060 §8.2.3).
const maxText = "max"

// configFields is all that a form about a vault may hold: first what the owner
// decides, then what is taken only as it is.
var configFields = []configField{
	textField("title", "Name for people", func(c *vault.Config) *string { return &c.Title }),
	textField("type", "Namespace that every payload must have; empty for any", func(c *vault.Config) *string { return &c.Type }),
	{
		name: "pubsub#max_items", kind: kindText, label: "Most records, or max for the service's own bound",
		show: showMaxItems, set: setMaxItems,
	},
	{
		name: "pubsub#publish_node_full", second: "pubsub#publish_full_node", kind: kindList,
		label:   "When the vault is full and a new record comes",
		choices: []Choice{{"reject", "Refuse the new record"}, {"retract-oldest", "Retract the record that changed longest ago"}},
		show:    showNodeFull, set: setNodeFull,
	},
	{
		name: "pubsub#send_last_published_item", kind: kindList, label: "When the latest record is sent unasked",
		choices: []Choice{
			{sendLastNames[vault.SendNever], "Never"},
			{sendLastNames[vault.SendOnSubscription], "To a new subscription"},
			{sendLastNames[vault.SendOnSubscriptionAndPresence], "To a new subscription and to a device that comes online"},
		},
		show: showSendLast, set: setSendLast,
	},
	muteField("deliver_notifications", "Send events", func(c *vault.Config) *bool { return &c.MuteAll }),
	muteField("deliver_payloads", "Send the records themselves with the events", func(c *vault.Config) *bool { return &c.MutePayloads }),
	muteField("notify_retract", "Send an event when records are removed", func(c *vault.Config) *bool { return &c.MuteRetract }),
	muteField("notify_delete", "Send an event when the vault is deleted", func(c *vault.Config) *bool { return &c.MuteDelete }),
	muteField("notify_config", "Send an event when the configuration changes", func(c *vault.Config) *bool { return &c.MuteConfig }),
	{
		name: "x-pepvault-key-version-floor", kind: kindText, label: "Lowest key version that is taken; it never falls",
		show: showFloor, set: setFloor,
	},

	fixedField("persist_items", kindBoolean, "Keep records", "1"),
	accessModelField(),
	fixedField("publish_model", kindList, "Who may publish", "publishers"),
	fixedField("item_expire", kindText, "Seconds after which a record is removed", maxText, ""),
	payloadSizeField(),
	hide(fixedField("itemreply", kindList, "", "publisher")),
	hide(fixedField("node_type", kindList, "", "leaf")),
	hide(fixedField("notification_type", kindList, "", "headline")),
	hide(fixedField("subscribe", kindBoolean, "", "1")),
	hide(fixedField("presence_based_delivery", kindBoolean, "", "0")),
	hide(fixedField("notify_sub", kindBoolean, "", "0")),
	hide(fixedField("purge_offline", kindBoolean, "", "0")),
	hide(fixedField("tempsub", kindBoolean, "", "0")),
	hide(emptyField("body_xslt", kindText)),
	hide(emptyField("children", "text-multi")),
	hide(emptyField("children_association_policy", kindList)),
	hide(emptyField("children_association_whitelist", kindJIDs)),
	hide(emptyField("children_max", kindText)),
	hide(emptyField("collection", "text-multi")),
	hide(emptyField("contact", kindJIDs)),
	hide(emptyField("dataform_xslt", kindText)),
	hide(emptyField("description", kindText)),
	hide(emptyField("language", kindList)),
	hide(emptyField("roster_groups_allowed", kindLists)),
}

func hide(f configField) configField {
	f.hidden = true
	return f
}

// textField is a line of text that the owner is free to choose.
func textField(name, label string, of func(*vault.Config) *string) configField {
	return configField{
		name: "pubsub#" + name, kind: kindText, label: label,
		show: func(c vault.Config, _ vault.Limits) []string {
			if text := *of(&c); text != "" {
				return []string{text}
			}
			return nil
		},
		set: func(c *vault.Config, values []string, _ vault.Limits) error {
			text, ok := single(values)
			if !ok || text != "" && !vault.ValidName(text) {
				return unfit("is one line of at most %d bytes", vault.MaxNameBytes)
			}
			*of(c) = text
			return nil
		},
	}
}

// muteField is a boolean that is true by default.
func muteField(name, label string, of func(*vault.Config) *bool) configField {
	return configField{
		name: "pubsub#" + name, kind: kindBoolean, label: label,
		show: func(c vault.Config, _ vault.Limits) []string { return []string{boolText(!*of(&c))} },
		set: func(c *vault.Config, values []string, _ vault.Limits) error {
			on, ok := boolean(values)
			if !ok {
				return unfit("is 0, 1, true or false")
			}
			*of(c) = !on
			return nil
		},
	}
}

// fixedField takes only what the service does anyway: the first value, or one
// of those that mean the same.
func fixedField(name, kind, label string, same ...string) configField {
	f := configField{
		name: "pubsub#" + name, kind: kind, label: label,
		show: func(vault.Config, vault.Limits) []string { return same[:1] },
		set: func(_ *vault.Config, values []string, _ vault.Limits) error {
			text, ok := single(values)
			if kind == kindBoolean {
				var on bool
				on, ok = boolean(values)
				text = boolText(on)
			}
			if !ok || !slices.Contains(same, text) {
				return unfit("is always %q", same[0])
			}
			return nil
		},
	}
	if kind == kindList {
		f.choices = []Choice{{Value: same[0]}}
	}
	return f
}

// emptyField is one that the service has no use for.
func emptyField(name, kind string) configField {
	return configField{
		name: "pubsub#" + name, kind: kind,
		show: func(vault.Config, vault.Limits) []string { return nil },
		set: func(_ *vault.Config, values []string, _ vault.Limits) error {
			if slices.ContainsFunc(values, func(v string) bool { return v != "" }) {
				return unfit("is always empty")
			}
			return nil
		},
	}
}

func accessModelField() configField {
	f := fixedField("access_model", kindList, "Who may read", "whitelist")
	fits := f.set
	f.set = func(c *vault.Config, values []string, l vault.Limits) error {
		if fits(c, values, l) != nil {
			return &unfitError{err: ErrAccessModel, text: `is always "whitelist"`}
		}
		return nil
	}
	return f
}

func payloadSizeField() configField {
	return configField{
		name: "pubsub#max_payload_size", kind: kindText, label: "Most bytes of a record",
		show: func(_ vault.Config, l vault.Limits) []string { return []string{strconv.Itoa(l.RecordBytes)} },
		set: func(_ *vault.Config, values []string, l vault.Limits) error {
			if n, ok := number(values, l.RecordBytes); !ok || n != l.RecordBytes {
				return unfit("is always %d", l.RecordBytes)
			}
			return nil
		},
	}
}

// maxItems is how many records a vault may hold.
func maxItems(c vault.Config, l vault.Limits) int {
	if c.MaxItems == 0 {
		return l.Records
	}
	return min(c.MaxItems, l.Records)
}

func showMaxItems(c vault.Config, l vault.Limits) []string {
	if n := maxItems(c, l); n < l.Records {
		return []string{strconv.Itoa(n)}
	}
	return []string{maxText}
}

func setMaxItems(c *vault.Config, values []string, l vault.Limits) error {
	if text, ok := single(values); ok && text == maxText {
		c.MaxItems = 0
		return nil
	}
	n, ok := number(values, l.Records)
	if !ok || n == 0 {
		return unfit("is a number from 1 to %d, or max", l.Records)
	}
	if c.MaxItems = n; n == l.Records {
		c.MaxItems = 0
	}
	return nil
}

func showNodeFull(c vault.Config, _ vault.Limits) []string {
	if c.EvictOldest {
		return []string{"retract-oldest"}
	}
	return []string{"reject"}
}

func setNodeFull(c *vault.Config, values []string, _ vault.Limits) error {
	text, _ := single(values)
	switch text {
	case "reject", "retract-oldest":
		c.EvictOldest = text == "retract-oldest"
		return nil
	default:
		return unfit("is reject or retract-oldest: nothing is discarded silently")
	}
}

// sendLastNames are the values of pubsub#send_last_published_item.
var sendLastNames = [...]string{
	vault.SendNever:                     "never",
	vault.SendOnSubscription:            "on_sub",
	vault.SendOnSubscriptionAndPresence: "on_sub_and_presence",
}

func showSendLast(c vault.Config, _ vault.Limits) []string {
	return []string{sendLastNames[c.SendLast]}
}

func setSendLast(c *vault.Config, values []string, _ vault.Limits) error {
	text, _ := single(values)
	i := slices.Index(sendLastNames[:], text)
	if i < 0 {
		return unfit("is never, on_sub or on_sub_and_presence")
	}
	c.SendLast = vault.SendLast(i)
	return nil
}

func showFloor(c vault.Config, _ vault.Limits) []string {
	return []string{strconv.FormatUint(uint64(c.KeyVersionFloor), 10)}
}

func setFloor(c *vault.Config, values []string, _ vault.Limits) error {
	n, ok := number(values, vault.MaxKeyVersion)
	if !ok {
		return unfit("is a number from 0 to %d", vault.MaxKeyVersion)
	}
	c.KeyVersionFloor = uint32(n)
	return nil
}
