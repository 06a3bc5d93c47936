package wire

import (
	"fmt"

	"pepvault/pep"
)

// Bounds of one form; ours and those that come in have a few dozen fields.
const (
	maxFields = 256
	maxValues = 4096 // of all fields together, options included
)

// The field that says what a form is about (XEP-0068).
const formType = "FORM_TYPE"

// decodeForm reads an <x/> (XEP-0004) and returns its type too. Of a submitted
// form it does not keep what only the other side can say: the kinds of fields,
// labels and choices.
func decodeForm(x *element) (form pep.Form, kind string, err error) {
	kind = x.attr("type")
	submitted := kind == "submit"
	values, typed := 0, false
	for _, c := range x.children {
		if c.name != (name{nsForm, "field"}) {
			continue
		}
		field := decodeField(c, submitted)
		values += len(field.Values) + len(field.Choices)
		switch {
		case len(form.Fields) >= maxFields || values > maxValues:
			return form, kind, pep.Refuse(pep.ErrPolicy, "a form may have %d fields and %d values", maxFields, maxValues)
		case field.Name == formType && !typed && len(field.Values) == 1:
			form.Type, typed = field.Values[0], true
		case field.Name == "" && submitted && c.attr("type") == "fixed":
		case field.Name == "" && field.Kind != "fixed":
			return form, kind, pep.Refuse(pep.ErrBadRequest, "a field of the form has no name")
		case field.Name == formType, field.Name != "" && form.Field(field.Name) != nil:
			return form, kind, pep.Refuse(pep.ErrBadRequest, "a field of the form stands there twice")
		default:
			form.Fields = append(form.Fields, field)
		}
	}
	if x.mixed() {
		return form, kind, pep.Refuse(pep.ErrBadRequest, "text where only elements belong")
	}
	return form, kind, nil
}

func decodeField(e *element, submitted bool) pep.Field {
	f := pep.Field{Name: e.attr("var")}
	if !submitted {
		f.Kind, f.Label = e.attr("type"), e.attr("label")
	}
	for _, c := range e.children {
		switch c.name {
		case name{nsForm, "value"}:
			f.Values = append(f.Values, string(c.text))
		case name{nsForm, "option"}:
			if !submitted {
				f.Choices = append(f.Choices, pep.Choice{Value: textOf(c, name{nsForm, "value"}), Label: c.attr("label")})
			}
		}
	}
	return f
}

// submission reads the form that a device has put into e: nil if there is
// none, cancel if the device closed it.
func submission(e *element) (form *pep.Form, cancel bool, err error) {
	for _, c := range e.children {
		switch {
		case !known(c.name.space):
			continue
		case c.name != name{nsForm, "x"} || form != nil:
			return nil, false, pep.Refuse(pep.ErrBadRequest, "<%s/> holds one form and nothing else", e.name.local)
		}
		read, kind, err := decodeForm(c)
		if err != nil {
			return nil, false, err
		}
		switch kind {
		case "submit":
		case "cancel":
			read, cancel = pep.Form{}, true
		default:
			return nil, false, pep.Refuse(pep.ErrBadRequest, "a form comes back with the type submit or cancel")
		}
		form = &read
	}
	if e.mixed() {
		return nil, false, pep.Refuse(pep.ErrBadRequest, "text where only elements belong")
	}
	return form, cancel, nil
}

// companionForm reads the form of an element beside an operation, nil if it
// has none. It has no attributes: what it is about, the operation says.
func companionForm(e *element) (*pep.Form, error) {
	if e == nil {
		return nil, nil
	}
	if e.has("node") || e.has("jid") {
		return nil, pep.Refuse(pep.ErrBadRequest, "<%s/> is about what stands before it and names nothing itself", e.name.local)
	}
	form, cancel, err := submission(e)
	if cancel {
		return nil, pep.Refuse(pep.ErrBadRequest, "a form beside an operation can't be cancelled")
	}
	return form, err
}

// formIn reads the form that the service has put into e, nil if there is none.
func formIn(e *element) (*pep.Form, error) {
	x := e.child(name{nsForm, "x"})
	if x == nil {
		return nil, nil
	}
	form, _, err := decodeForm(x)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadReply, err)
	}
	return &form, nil
}

// formsIn reads all of them, as service discovery has them (XEP-0128).
func formsIn(e *element) (forms []pep.Form, err error) {
	for _, c := range e.children {
		if c.name != (name{nsForm, "x"}) {
			continue
		}
		form, _, err := decodeForm(c)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBadReply, err)
		}
		forms = append(forms, form)
	}
	return forms, nil
}

// appendForm appends a form; kind is its type (XEP-0004 §3.1).
func appendForm(dst []byte, kind string, f *pep.Form) []byte {
	dst = append(append(append(dst, "<x xmlns='"+nsForm+"' type='"...), kind...), '\'')
	if f.Type == "" && len(f.Fields) == 0 {
		return append(dst, "/>"...)
	}
	dst = append(dst, '>')
	if f.Type != "" {
		dst = append(dst, "<field var='"+formType+"' type='hidden'>"...)
		dst = append(appendValue(dst, f.Type), "</field>"...)
	}
	for i := range f.Fields {
		dst = appendField(dst, &f.Fields[i])
	}
	return append(dst, "</x>"...)
}

func appendForms(dst []byte, kind string, forms []pep.Form) []byte {
	for i := range forms {
		dst = appendForm(dst, kind, &forms[i])
	}
	return dst
}

func appendField(dst []byte, f *pep.Field) []byte {
	dst = appendAttrIf(append(dst, "<field"...), "var", f.Name)
	dst = appendAttrIf(dst, "type", f.Kind)
	dst = appendAttrIf(dst, "label", f.Label)
	if len(f.Values) == 0 && len(f.Choices) == 0 {
		return append(dst, "/>"...)
	}
	dst = append(dst, '>')
	for _, v := range f.Values {
		dst = appendValue(dst, v)
	}
	for _, c := range f.Choices {
		dst = append(appendAttrIf(append(dst, "<option"...), "label", c.Label), '>')
		dst = append(appendValue(dst, c.Value), "</option>"...)
	}
	return append(dst, "</field>"...)
}

func appendValue(dst []byte, value string) []byte {
	return append(appendText(append(dst, "<value>"...), value), "</value>"...)
}
