package pep

// Form is a data form as plain values (XEP-0004, XEP-0068).
type Form struct {
	Type   string // FORM_TYPE; "" = none
	Fields []Field
}

// Field is one field of a form.
type Field struct {
	Name    string
	Kind    string // XEP-0004 §3.3, such as "text-single"; "" in a submitted form
	Label   string // for people; "" = none
	Values  []string
	Choices []Choice // of a list
}

// Choice is a value that a list offers.
type Choice struct{ Value, Label string }

// Field returns the field of that name, or nil.
func (f *Form) Field(name string) *Field {
	for i := range f.Fields {
		if f.Fields[i].Name == name {
			return &f.Fields[i]
		}
	}
	return nil
}

// Types of the forms of pubsub (XEP-0060 §16.4) and of ours.
const (
	FormConfig    = "http://jabber.org/protocol/pubsub#node_config"
	FormPublish   = "http://jabber.org/protocol/pubsub#publish-options"
	FormSubscribe = "http://jabber.org/protocol/pubsub#subscribe_options"
	FormMetaData  = "http://jabber.org/protocol/pubsub#meta-data"
	FormLimits    = "urn:pepvault:limits:0"
	FormUsage     = "urn:pepvault:usage:0"
)

// Nodes that belong to the service: no vault has such a name, since discovery
// would take it for the commands (XEP-0050 §2.1).
const (
	CommandsNode  = "http://jabber.org/protocol/commands"
	CommandPrefix = "urn:pepvault:command:"
)
