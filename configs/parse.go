package configs

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// mostBroken bounds the expressions that are no TOML, each of which makes the
// walk begin anew.
const mostBroken = 50

// document is what a file says, read into a Config, with all faults of its
// keys one by one.
type document struct {
	file   string
	config *Config
	keys   map[string]key // by path
	faults Faults

	tables map[string]int  // line of each table header
	lines  map[string]int  // line of each known key that the file has
	bad    map[string]bool // keys whose value can't be judged any further

	current string // the table that the walk is in; "" = top
	skip    bool   // the walk is in a table that nobody knows
}

func newDocument(file string, config *Config) *document {
	d := &document{
		file: file, config: config,
		keys:   make(map[string]key),
		tables: make(map[string]int), lines: make(map[string]int), bad: make(map[string]bool),
	}
	for _, k := range keys() {
		d.keys[k.path()] = k
	}
	return d
}

func (d *document) fault(line int, key, problem string) {
	d.faults = append(d.faults, Fault{File: d.file, Line: line, Key: key, Problem: problem})
}

// read walks the whole text. After a line that is no TOML it goes on at the
// next one that looks like a beginning.
func (d *document) read(text []byte) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	first := 1
	for range mostBroken {
		next, stopped := d.readUntilBroken(text, first)
		if !stopped {
			return
		}
		first += bytes.Count(text[:next], []byte("\n"))
		text = text[next:]
	}
	d.fault(first, "", "not read from here on, for so much of it is not valid TOML; is this a configuration file?")
}

// readUntilBroken reads up to the first line that is no TOML, reports that
// one, and returns where to go on.
func (d *document) readUntilBroken(text []byte, first int) (next int, stopped bool) {
	var p unstable.Parser
	p.Reset(text)
	line := func(r unstable.Range) int { return first + bytes.Count(text[:r.Offset], []byte("\n")) }
	end := 0 // offset behind what has been understood
	for p.NextExpression() {
		node := p.Expression()
		path, at := pathOf(node)
		if node.Kind == unstable.KeyValue {
			end = int(node.Raw.Offset + node.Raw.Length)
			if !d.skip {
				d.keyValue(d.current, path, node, line)
			}
			continue
		}
		end = int(at.Offset + at.Length)
		d.header(path, line(at), node.Kind == unstable.ArrayTable)
	}
	err := p.Error()
	if err == nil {
		return 0, false
	}
	fault := end
	var syntax *unstable.ParserError
	if errors.As(err, &syntax) && len(syntax.Highlight) > 0 {
		fault = int(p.Range(syntax.Highlight).Offset)
	}
	begin := beginOfBroken(text, end, fault)
	d.broken(text[begin:], first+bytes.Count(text[:fault], []byte("\n")), err.Error())
	return resume(text, begin), true
}

// beginOfBroken returns the offset of the expression, after the one that ended
// at end, in which the fault is.
func beginOfBroken(text []byte, end, fault int) int {
	begin := end
	if end > 0 {
		begin = nextLine(text, end)
	}
	for begin < fault {
		line := bytes.TrimSpace(text[begin:nextLine(text, begin)])
		if nextLine(text, begin) > fault || (len(line) > 0 && line[0] != '#') {
			break
		}
		begin = nextLine(text, begin)
	}
	return begin
}

func nextLine(text []byte, from int) int {
	if i := bytes.IndexByte(text[from:], '\n'); i >= 0 {
		return from + i + 1
	}
	return len(text)
}

var (
	looksLikeHeader = regexp.MustCompile(`^\s*\[+\s*([\w.-]+)`)
	looksLikeKey    = regexp.MustCompile(`^\s*([\w.-]+)\s*=`)
	looksLikeBegin  = regexp.MustCompile(`(?m)^[ \t]*(\[[\w.-]+\][ \t]*(#.*)?\r?$|[\w.-]+[ \t]*=)`)
)

// resume returns where the first expression behind the broken one seems to
// begin.
func resume(text []byte, begin int) int {
	from := nextLine(text, begin)
	if at := looksLikeBegin.FindIndex(text[from:]); at != nil {
		return from + at[0]
	}
	return len(text)
}

// broken reports an expression that is no TOML. What can be seen of it counts
// as said, so that it isn't called missing too.
func (d *document) broken(text []byte, line int, message string) {
	if m := looksLikeHeader.FindSubmatch(text); m != nil {
		d.header(strings.Split(string(m[1]), "."), line, false)
		d.fault(line, "", "not valid TOML: "+message)
		return
	}
	m := looksLikeKey.FindSubmatch(text)
	if m == nil || d.skip {
		d.fault(line, "", "not valid TOML: "+message)
		return
	}
	name := string(m[1])
	if d.current != "" {
		name = d.current + "." + name
	}
	if k, ok := d.keys[name]; ok {
		d.bad[name] = true
		d.lines[name] = line
		if k.path() == "component.secret" {
			message = "put it in quotes" // the message would show a character of it
		} else {
			message += "; allowed: " + k.allowed
		}
	}
	d.fault(line, name, "not valid TOML: "+message)
}

// pathOf returns the parts of the key of a header or a key-value, and where
// the last one is.
func pathOf(node *unstable.Node) ([]string, unstable.Range) {
	var path []string
	var at unstable.Range
	for it := node.Key(); it.Next(); {
		path = append(path, string(it.Node().Data))
		at = it.Node().Raw
	}
	return path, at
}

// header enters a table.
func (d *document) header(path []string, line int, array bool) {
	name := spell(path)
	d.skip, d.current = false, name
	switch {
	case d.isTable(name) && array:
		d.fault(line, name, "is one table, not a list of tables; allowed: ["+name+"]")
	case d.isTable(name) && d.tables[name] > 0:
		d.fault(line, name, fmt.Sprintf("table is repeated; the first is on line %d; allowed: once", d.tables[name]))
	case d.isTable(name):
		d.tables[name] = line
	case d.known(name):
		k := d.keys[name]
		d.bad[name], d.lines[name] = true, line
		d.fault(line, name, k.problem("is a key, not a table"))
		d.skip = true
	default:
		d.unknownTable(name, line)
	}
}

func (d *document) unknownTable(name string, line int) {
	var names []string
	for _, t := range tables() {
		names = append(names, t.name)
	}
	meant := nearest(name, names)
	d.current, d.skip = meant, meant == ""
	hint := "; allowed: [" + strings.Join(names, "], [") + "]"
	if meant != "" {
		hint = "; did you mean [" + meant + "]?"
	}
	d.fault(line, name, "unknown table"+hint)
}

func (d *document) isTable(name string) bool {
	for _, t := range tables() {
		if t.name == name {
			return true
		}
	}
	return false
}

func (d *document) known(path string) bool {
	_, ok := d.keys[path]
	return ok
}

// keyValue takes one key under a table; "" is the top.
func (d *document) keyValue(table string, path []string, node *unstable.Node, line func(unstable.Range) int) {
	_, where := pathOf(node)
	at, value := line(where), node.Value()
	name := spell(path)
	if table != "" {
		name = table + "." + name
	}
	k, ok := d.keys[name]
	switch {
	case ok:
		d.take(k, value, at)
	case d.isTable(name) && value.Kind == unstable.InlineTable:
		for it := value.Children(); it.Next(); {
			inner, _ := pathOf(it.Node())
			d.keyValue(name, inner, it.Node(), line)
		}
	case d.isTable(name):
		d.fault(at, name, "is a table, not a key; allowed: ["+name+"] and its keys below it")
	default:
		d.unknownKey(table, name, at)
	}
}

func (d *document) take(k key, value *unstable.Node, line int) {
	name := k.path()
	if first := d.lines[name]; first > 0 {
		d.fault(line, name, fmt.Sprintf("key is repeated; the first is on line %d; allowed: once", first))
		return
	}
	d.lines[name] = line
	if what := k.set(d.config, value); what != "" {
		d.bad[name] = true
		d.fault(line, name, k.problem(what))
	}
}

// unknownKey suggests the key that was meant, which then isn't called missing.
func (d *document) unknownKey(table, name string, line int) {
	_, last := cutLast(name)
	var here, everywhere []string // names of keys
	paths := make(map[string]string)
	for _, k := range keys() {
		if k.name == last {
			d.bad[k.path()] = true
			d.fault(line, name, "key is in the wrong table; allowed: under ["+k.table+"]")
			return
		}
		paths[k.name] = k.path()
		everywhere = append(everywhere, k.name)
		if k.table == table {
			here = append(here, k.name)
		}
	}
	meant := nearest(last, here)
	if meant == "" {
		meant = nearest(last, everywhere)
	}
	switch {
	case meant != "":
		d.bad[paths[meant]] = true
		d.fault(line, name, "unknown key; did you mean "+paths[meant]+"?")
	case len(here) > 0:
		d.fault(line, name, "unknown key; allowed in ["+table+"]: "+strings.Join(here, ", "))
	default:
		d.fault(line, name, "unknown key; allowed: those that \"pepvault config print\" shows")
	}
}

func cutLast(path string) (table, name string) {
	i := strings.LastIndexByte(path, '.')
	return path[:max(i, 0)], path[i+1:]
}

var bare = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// spell joins the parts of a key as TOML spells it.
func spell(path []string) string {
	parts := make([]string, len(path))
	for i, part := range path {
		parts[i] = part
		if !bare.MatchString(part) {
			parts[i] = strconv.QuoteToGraphic(part)
		}
	}
	return strings.Join(parts, ".")
}

// nearest returns the name that word is probably a misspelling of, or "".
func nearest(word string, names []string) string {
	if len(word) > 64 { // longer than any name could be
		return ""
	}
	word = strings.ToLower(strings.ReplaceAll(word, "-", "_"))
	best, least := "", max(1, len(word)/3)+1
	for _, name := range names {
		if n := distance(word, name); n < least {
			best, least = name, n
		}
	}
	return best
}

// distance is the number of bytes to insert, drop, change or swap with a
// neighbour that turns a into b.
func distance(a, b string) int {
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			change := row[j]
			if a[i] != b[j] {
				change++
			}
			next[j+1] = min(change, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
