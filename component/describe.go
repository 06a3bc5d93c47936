package component

import "pepvault/pep"

const (
	nsCommands  = "http://jabber.org/protocol/commands"
	formContact = "http://jabber.org/network/serverinfo" // XEP-0157
)

// describe adds what the engine does not know of the service.
func (s *Service) describe(info pep.ServiceInfo) pep.ServiceInfo {
	info.Name = s.name
	info.Others = append([]string{nsCommands}, info.Others...)
	if s.contact != "" {
		contact := pep.Form{Type: formContact, Fields: []pep.Field{
			{Name: "support-addresses", Kind: "list-multi", Values: []string{s.contact}},
		}}
		info.Forms = append(info.Forms[:len(info.Forms):len(info.Forms)], contact)
	}
	return info
}
