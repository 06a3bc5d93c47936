package hosttest

import (
	"maps"
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	const body = "<iq type='result' id='1'>"
	tests := map[string]struct {
		want, got string
		err       string // part of the error, "" for none
		vars      string // a=…, of what was bound
	}{
		"same":                    {body + "<a/></iq>", body + "<a/></iq>", "", ""},
		"attribute order, quotes": {`<iq id="1" type="result"></iq>`, "<iq type='result' id='1'/>", "", ""},
		"prefix":                  {body + "<a xmlns='x'><b/></a></iq>", body + "<p:a xmlns:p='x'><p:b/></p:a></iq>", "", ""},
		"escapes and CDATA":       {"<iq>&lt;&#65;</iq>", "<iq><![CDATA[<A]]></iq>", "", ""},
		"white space":             {"<iq>\n <a/>\n</iq>", "<iq><a/></iq>", "", ""},
		"white space in text":     {"<iq> a</iq>", "<iq>a</iq>", `got "a", want " a"`, ""},
		"text beside elements":    {"<iq>a<b/></iq>", "<iq>a<b/>c</iq>", `got "c", want ""`, ""},
		"to and lang of the host": {"<iq/>", "<iq to='x' xml:lang='en'/>", "", ""},
		"to that is named":        {"<iq to='y'/>", "<iq to='x'/>", `/iq@to: got "x", want "y"`, ""},
		"to inside":               {"<iq><a/></iq>", "<iq><a to='x'/></iq>", "/iq/a: unexpected attribute to", ""},
		"namespace":               {"<iq><a xmlns='x'/></iq>", "<iq><a xmlns='y'/></iq>", "got element {y}a, want {x}a", ""},
		"stanza":                  {"<iq/>", "<message/>", "stanza: got element message, want iq", ""},
		"missing attribute":       {"<iq id='*'/>", "<iq/>", "attribute id is missing", ""},
		"additional attribute":    {"<iq/>", "<iq id='1'/>", "unexpected attribute id", ""},
		"attribute namespace":     {"<iq><a p:b='1' xmlns:p='x'/></iq>", "<iq><a p:b='1' xmlns:p='y'/></iq>", "{x}b is missing", ""},
		"missing element":         {"<iq><a/><b/></iq>", "<iq><a/></iq>", "got 1 children [a], want 2 [a b]", ""},
		"element order":           {"<iq><a/><b/></iq>", "<iq><b/><a/></iq>", "got element b, want a", ""},
		"any value":               {"<iq id='*'><a>*</a></iq>", "<iq id='9'><a>text</a></iq>", "", ""},
		"any content":             {"<iq><a>*</a></iq>", "<iq><a><b/>c</a></iq>", "", ""},
		"any content, attribute":  {"<iq><a>*</a></iq>", "<iq><a b='c'><b/></a></iq>", "unexpected attribute b", ""},
		"bound":                   {"<iq id='$new'><a>$text</a></iq>", "<iq id='9'><a>t</a></iq>", "", "new=9 text=t"},
		"bound twice":             {"<iq id='$new'><a>$new</a></iq>", "<iq id='9'><a>9</a></iq>", "", "new=9"},
		"bound differently":       {"<iq id='$new'><a>$new</a></iq>", "<iq id='9'><a>8</a></iq>", `got "8", want "9"`, ""},
		"known":                   {"<iq id='$known'/>", "<iq id='k'/>", "", ""},
		"known, in part":          {"<iq id='a${known}b'/>", "<iq id='akb'/>", "", ""},
		"unknown in part":         {"<iq id='a$new'/>", "<iq id='ab'/>", "variable without a value: $new", ""},
		"dollar":                  {"<iq id='$$known'/>", "<iq id='$known'/>", "", ""},
		"no binding on failure":   {"<iq id='$new'><a/></iq>", "<iq id='9'/>", "children", ""},
		"bad expectation":         {"<iq", "<iq/>", "the expectation", ""},
		"bad stanza":              {"<iq/>", "<iq>", "EOF", ""},
		"two":                     {"<iq/>", "<iq/><iq/>", "more than one element", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vars := Vars{"known": "k"}
			want := maps.Clone(vars)
			for _, pair := range strings.Fields(test.vars) {
				name, value, _ := strings.Cut(pair, "=")
				want[name] = value
			}
			err := Match(test.want, []byte(test.got), vars)
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got error %v, want %q", err, test.err)
			}
			if !maps.Equal(vars, want) {
				t.Errorf("got variables %v, want %v", vars, want)
			}
		})
	}
}
