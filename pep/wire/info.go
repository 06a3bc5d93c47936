package wire

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"pepvault/pep"
)

// Info is what a client answers to a disco#info request.
type Info struct {
	Identities []Identity
	Features   []string
	// Forms are the fields of each form beside it (XEP-0128), FORM_TYPE among
	// them.
	Forms [][]pep.Field

	lang  string // of the identities that name none (XML 1.0 §2.12)
	odd   bool   // it holds what XEP-0390 does not hash
	table bool   // a form of it holds what neither XEP hashes
}

// Identity is one of the things that a client is.
type Identity struct{ Category, Type, Lang, Name string }

// maxAnnounced bounds for how many nodes one client may want events.
const maxAnnounced = 256

// AskInfo returns the type and the child of the <iq/> that asks a client what
// it can do. node is that of a pep.CapsHash.
func AskInfo(node string) (kind string, payload []byte) {
	return "get", askQuery(nil, nsDiscoInfo, node, nil)
}

// DecodeInfo reads the <iq/> that answers [AskInfo]. One of type error is a
// [*StanzaError]; other errors are [ErrBadReply].
func DecodeInfo(raw []byte) (Info, error) {
	iq, err := decodeStanza(raw, "iq")
	if err != nil {
		return Info{}, err
	}
	query, err := within(iq, name{nsDiscoInfo, "query"})
	if err != nil || iq.attr("type") != "result" {
		return Info{}, badReply("no answer to a disco#info request")
	}
	info := Info{lang: cmp.Or(langOf(query), langOf(iq))}
	for _, c := range query.children {
		switch c.name {
		case name{nsDiscoInfo, "identity"}:
			info.Identities = append(info.Identities, Identity{c.attr("category"), c.attr("type"), langOf(c), c.attr("name")})
		case name{nsDiscoInfo, "feature"}:
			info.Features = append(info.Features, c.attr("var"))
		case name{nsForm, "x"}:
			info.readForm(c)
		default:
			info.odd = true
		}
	}
	return info, nil
}

func (i *Info) readForm(x *element) {
	fields := []pep.Field{}
	for _, c := range x.children {
		switch c.name {
		case name{nsForm, "field"}:
			fields = append(fields, decodeField(c, false))
		case name{nsForm, "reported"}, name{nsForm, "item"}:
			i.odd, i.table = true, true
		}
	}
	i.Forms = append(i.Forms, fields)
}

func langOf(e *element) string {
	for _, a := range e.attrs {
		if a.space == nsXML && a.local == "lang" {
			return a.value
		}
	}
	return ""
}

const notifySuffix = "+notify"

// Announced tells what the client wants to hear of: the nodes of its features
// that end in "+notify", sorted and each once, and at most the first 256; and
// whether it follows states.
func (i Info) Announced() pep.Announced {
	var a pep.Announced
	for _, f := range i.Features {
		if node, ok := strings.CutSuffix(f, notifySuffix); ok && node != "" {
			a.Nodes = append(a.Nodes, node)
		}
		a.Sync = a.Sync || f == nsSync
	}
	slices.Sort(a.Nodes)
	a.Nodes = slices.Compact(a.Nodes)
	a.Nodes = a.Nodes[:min(len(a.Nodes), maxAnnounced)]
	return a
}

// Verify reports whether this is what a hash stands for (XEP-0115 §5.4,
// XEP-0390 §4.4).
func (i Info) Verify(c pep.CapsHash) bool {
	paper, rest, _ := strings.Cut(c.Hash, ":")
	of, digest, _ := strings.Cut(rest, ":")
	a, known := algorithmOf(of)
	input := map[string]func(Info, string) ([]byte, bool){caps115: Info.input115, caps390: Info.input390}[paper]
	if !known || input == nil {
		return false
	}
	// Whether a language came from the client's own stream, or was put on by
	// its host, does not show; no feature depends on it.
	for _, lang := range slices.Compact([]string{"", i.lang}) {
		if data, ok := input(i, lang); ok && a.digest(data) == digest {
			return true
		}
	}
	return false
}

// formTypeOf returns the FORM_TYPE of a form; ok is false if it has more than
// one. A form without is none of XEP-0068.
func formTypeOf(fields []pep.Field) (formKind string, has, ok bool) {
	for _, f := range fields {
		if f.Name != formType || f.Kind != "hidden" {
			continue
		}
		values := slices.Compact(slices.Clone(f.Values))
		if has || len(values) != 1 {
			return "", false, false
		}
		formKind, has = values[0], true
	}
	return formKind, has, true
}

// input115 is the text that XEP-0115 §5.1 hashes; false if §5.4 has this info
// ill-formed. lang is the language of identities that name none.
//
// That text does not tell features from what else is in it, so that a liar
// could find another info of the same text, with a node that somebody wants
// made a part of a form or of an identity (XEP-0115 §8.4). So what looks like
// that, and what holds the separator, is refused too.
func (i Info) input115(lang string) ([]byte, bool) {
	identities := slices.Clone(i.Identities)
	slices.SortFunc(identities, func(a, b Identity) int {
		return cmp.Or(cmp.Compare(a.Category, b.Category), cmp.Compare(a.Type, b.Type),
			cmp.Compare(cmp.Or(a.Lang, lang), cmp.Or(b.Lang, lang)), cmp.Compare(a.Name, b.Name))
	})
	var parts []string
	for _, id := range identities {
		parts = append(parts, strings.Join([]string{id.Category, id.Type, cmp.Or(id.Lang, lang), id.Name}, "/"))
	}
	if twice(parts) || slices.ContainsFunc(parts, passesForFeature) {
		return nil, false
	}
	features := slices.Sorted(slices.Values(i.Features))
	if twice(features) {
		return nil, false
	}
	forms, ok := i.forms115()
	if !ok || slices.ContainsFunc(forms, passesForFeature) {
		return nil, false
	}
	parts = slices.Concat(parts, features, forms)
	if i.table || slices.ContainsFunc(parts, func(s string) bool { return strings.Contains(s, "<") }) {
		return nil, false
	}
	return []byte(strings.Join(append(parts, ""), "<")), true
}

// twice looks for equal neighbours.
func twice(sorted []string) bool { return len(slices.Compact(slices.Clone(sorted))) < len(sorted) }

// passesForFeature reports whether a text would matter if it were a feature.
func passesForFeature(s string) bool { return strings.HasSuffix(s, notifySuffix) || s == nsSync }

func (i Info) forms115() (parts []string, ok bool) {
	byKind := map[string][]string{}
	for _, fields := range i.Forms {
		kind, has, ok := formTypeOf(fields)
		if !ok {
			return nil, false
		}
		if !has {
			continue
		}
		if _, again := byKind[kind]; again {
			return nil, false
		}
		own := []string{kind}
		sorted := slices.Clone(fields)
		slices.SortStableFunc(sorted, func(a, b pep.Field) int { return cmp.Compare(a.Name, b.Name) })
		for _, f := range sorted {
			if f.Name != formType {
				own = append(append(own, f.Name), slices.Sorted(slices.Values(f.Values))...)
			}
		}
		byKind[kind] = own
	}
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		parts = append(parts, byKind[kind]...)
	}
	return parts, true
}

// The separators of XEP-0390 §4.1, which no XML can hold.
const (
	endPart  = "\x1f"
	endGroup = "\x1e"
	endForm  = "\x1d"
	endAll   = "\x1c"
)

// input390 is the text that XEP-0390 §4.1 hashes; false if the info is none
// that has a hash. lang is as of input115.
func (i Info) input390(lang string) ([]byte, bool) {
	if i.odd {
		return nil, false
	}
	var identities, forms []string
	for _, id := range i.Identities {
		identities = append(identities, strings.Join([]string{id.Category, id.Type, cmp.Or(id.Lang, lang), id.Name, endGroup}, endPart))
	}
	for _, fields := range i.Forms {
		if _, has, ok := formTypeOf(fields); !has || !ok {
			return nil, false
		}
		var own []string
		for _, f := range fields {
			own = append(own, f.Name+endPart+joined(f.Values, endPart)+endGroup)
		}
		forms = append(forms, joined(own, "")+endForm)
	}
	return []byte(joined(i.Features, endPart) + endAll + joined(identities, "") + endAll + joined(forms, "") + endAll), true
}

// joined puts texts together from lesser to greater, each with an end, which
// counts in their order.
func joined(texts []string, end string) string {
	ended := make([]string, len(texts))
	for i, s := range texts {
		ended[i] = s + end
	}
	slices.Sort(ended)
	return strings.Join(ended, "")
}

// AppendInfo appends the <query/> that answers a disco#info request for node.
func AppendInfo(dst []byte, node string, info Info) []byte {
	dst = append(appendAttrIf(append(dst, "<query xmlns='"+nsDiscoInfo+"'"...), "node", node), '>')
	for _, id := range info.Identities {
		dst = appendAttr(appendAttr(append(dst, "<identity"...), "category", id.Category), "type", id.Type)
		dst = append(appendAttrIf(appendAttrIf(dst, "xml:lang", id.Lang), "name", id.Name), "/>"...)
	}
	for _, f := range info.Features {
		dst = appendFeature(dst, f)
	}
	for _, fields := range info.Forms {
		dst = appendForm(dst, "result", &pep.Form{Fields: fields})
	}
	return append(dst, "</query>"...)
}
