package pep

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"pepvault/vault"
)

// unfitError says why a value can't be honoured, in words that follow the
// name of the field.
type unfitError struct {
	err  error // a sentinel beside that of the form; nil = none
	text string
}

func (u *unfitError) Error() string { return u.text }

func (u *unfitError) Unwrap() error { return u.err }

func unfit(format string, args ...any) error {
	return &unfitError{text: fmt.Sprintf(format, args...)}
}

// single gives the only value of a field; none is as good as an empty one.
func single(values []string) (string, bool) {
	if len(values) == 0 {
		return "", true
	}
	return values[0], len(values) == 1
}

// boolean reads a value as XEP-0004 §3.3 spells it.
func boolean(values []string) (on, ok bool) {
	text, _ := single(values)
	switch text {
	case "1", "true":
		return true, len(values) == 1
	case "0", "false":
		return false, len(values) == 1
	default:
		return false, false
	}
}

func boolText(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// number reads decimal digits, up to a bound.
func number(values []string, most int) (int, bool) {
	text, ok := single(values)
	if !ok || text == "" {
		return 0, false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n <= most
}

// quote shows a name of a device's in a sentence.
func quote(name string) string {
	const most = 64
	if len(name) > most {
		return strconv.Quote(name[:most]) + "…"
	}
	return strconv.Quote(name)
}

// find returns the field of a submitted name, or nil.
func find(name string) *configField {
	i := slices.IndexFunc(configFields, func(f configField) bool {
		return f.name == name || f.second != "" && f.second == name
	})
	if i < 0 {
		return nil
	}
	return &configFields[i]
}

// submitted is a field of the table with what a form says about it.
type submitted struct {
	*configField
	as     string // the name in the form
	values []string
}

// assign finds the fields of a form. One that is unknown, or that stands there
// twice, is refused with refusal; two spellings of one field may both be there
// if they say the same.
func assign(form *Form, refusal error) ([]submitted, error) {
	var list []submitted
	for _, given := range form.Fields {
		f := find(given.Name)
		if f == nil {
			return nil, Refuse(refusal, "there is no field %s", quote(given.Name))
		}
		for _, other := range list {
			if other.configField == f && (other.as == given.Name || !slices.Equal(other.values, given.Values)) {
				return nil, Refuse(refusal, "the field %s stands there twice", quote(given.Name))
			}
		}
		list = append(list, submitted{configField: f, as: given.Name, values: given.Values})
	}
	return list, nil
}

// configured applies a form to a configuration (XEP-0060 §8.2.4). What can't
// be honoured is ErrBadConfig or ErrAccessModel. A form without FORM_TYPE is
// taken: it can't mean anything else.
func (e *Engine) configured(c vault.Config, form *Form) (vault.Config, error) {
	if form.Type != FormConfig && form.Type != "" {
		return c, Refuse(ErrBadConfig, "the FORM_TYPE of a configuration is %s", FormConfig)
	}
	list, err := assign(form, ErrBadConfig)
	if err != nil {
		return c, err
	}
	for _, s := range list {
		if err := s.set(&c, s.values, e.limits); err != nil {
			sentinel := ErrBadConfig
			if errors.Is(err, ErrAccessModel) {
				sentinel = ErrAccessModel
			}
			return c, Refuse(sentinel, "the field %s %v", s.as, err)
		}
	}
	return c, nil
}

// reconfigured is configured for a vault that exists.
func (e *Engine) reconfigured(v vault.Vault, form *Form) (vault.Config, error) {
	c, err := e.configured(v.Config, form)
	if err != nil {
		return c, err
	}
	if c.KeyVersionFloor < v.Config.KeyVersionFloor {
		return c, Refuse(ErrBadConfig, "the key version floor is %d and never falls", v.Config.KeyVersionFloor)
	}
	if most := maxItems(c, e.limits); most < v.Records && most < maxItems(v.Config, e.limits) {
		return c, Refuse(ErrBadConfig, "the vault holds %d records, more than pubsub#max_items would allow", v.Records)
	}
	return c, nil
}

// fulfils checks publish-options against a vault's configuration, by meaning
// (XEP-0060 §7.1.5). Whatever does not fit is ErrPrecondition.
func (e *Engine) fulfils(c vault.Config, list []submitted) error {
	for _, s := range list {
		wanted := c
		err := s.set(&wanted, s.values, e.limits)
		if err != nil {
			return Refuse(ErrPrecondition, "the field %s %v", s.as, err)
		}
		if is := s.show(c, e.limits); !slices.Equal(is, s.show(wanted, e.limits)) {
			value, _ := single(is)
			return Refuse(ErrPrecondition, "the field %s is %s", s.as, quote(value))
		}
	}
	return nil
}

// readPublishOptions finds the fields of publish-options; nil has none.
func readPublishOptions(form *Form) ([]submitted, error) {
	if form == nil {
		return nil, nil
	}
	if form.Type != FormPublish {
		return nil, Refuse(ErrBadRequest, "the FORM_TYPE of publish-options is %s", FormPublish)
	}
	return assign(form, ErrPrecondition)
}

// configFrom makes the configuration of a new vault out of publish-options.
func (e *Engine) configFrom(list []submitted) (c vault.Config, err error) {
	for _, s := range list {
		if err := s.set(&c, s.values, e.limits); err != nil {
			return c, Refuse(ErrPrecondition, "the field %s %v", s.as, err)
		}
	}
	return c, nil
}

// configForm is the form that tells a configuration, to fill in or to look at.
func (e *Engine) configForm(c vault.Config) Form {
	form := Form{Type: FormConfig}
	for _, f := range configFields {
		if !f.hidden {
			form.Fields = append(form.Fields, Field{
				Name: f.name, Kind: f.kind, Label: f.label, Choices: f.choices, Values: f.show(c, e.limits),
			})
		}
	}
	return form
}

// alike reports whether two configurations mean the same.
func (e *Engine) alike(a, b vault.Config) bool {
	for _, f := range configFields {
		if !slices.Equal(f.show(a, e.limits), f.show(b, e.limits)) {
			return false
		}
	}
	return true
}
