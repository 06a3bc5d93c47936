package page

import (
	"reflect"
	"regexp"
	"strings"
	"unicode"
)

// cleanse takes out of a run what must not stand in a report: the folders of the
// machine that measured it, and what a page or a table would read as markup.
// Load does it with all texts that come from a file, and nobody else has to.
func cleanse(r *Run) {
	r.Name = printable(r.Name)
	line := command(r.Results.Environment.Command)
	for _, part := range []any{
		&r.Results.Environment, &r.Results.Verdict, &r.Results.Gates, &r.Results.Capacities, &r.Results.Steps, &r.Summary,
	} {
		cleanTexts(reflect.ValueOf(part).Elem())
	}
	r.Results.Environment.Command = line // which has rules of its own
}

// cleanTexts cleans all texts of a value that can be set.
func cleanTexts(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(clean(v.String()))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			cleanTexts(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			cleanTexts(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				cleanTexts(v.Field(i))
			}
		}
	case reflect.Map:
		cleanMap(v)
	}
}

// cleanMap replaces the entries of a map: what is in one can't be set.
func cleanMap(v reflect.Value) {
	for _, key := range v.MapKeys() {
		name, value := reflect.New(key.Type()).Elem(), reflect.New(v.Type().Elem()).Elem()
		name.Set(key)
		value.Set(v.MapIndex(key))
		cleanTexts(name)
		cleanTexts(value)
		v.SetMapIndex(key, reflect.Value{})
		v.SetMapIndex(name, value)
	}
}

// printable keeps a text in its line, and free of what begins or ends code.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '`':
			return '\''
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, text)
}

// apart are the words with a slash that are no paths: stanza errors, systems,
// rates, parts of a number, full addresses, and "with".
var apart = regexp.MustCompile(`^["'(]*((wait|cancel|modify|auth|continue)/[a-z-]+|(linux|darwin|freebsd|netbsd|openbsd|windows)/[a-z0-9]+|` +
	`\d+/\d+|[\d.,]*[A-Za-z]*/s|[^\s/\\@]+@[^\s/\\@]+/[^\s/\\@]+|w/)["'),;:.]*$`)

// clean makes a text printable and leaves of a path in it the last name alone.
// Folders may have any names, with spaces as well; so all between the beginning
// of the first path and the last name of the last one is left out.
func clean(text string) string {
	text = printable(text)
	first, last := -1, -1
	for at := 0; at < len(text); {
		end := at + strings.IndexByte(text[at:]+" ", ' ')
		word := text[at:end]
		if i := strings.LastIndexAny(word, `/\`); i >= 0 && !apart.MatchString(word) {
			if last = at + i + 1; first < 0 {
				first = at + prefix(word)
			}
		}
		at = end + 1
	}
	if first < 0 {
		return text
	}
	return text[:first] + text[last:]
}

// prefix is how much of a word stands before the path in it.
func prefix(word string) int {
	return strings.LastIndexAny(word[:strings.IndexAny(word, `/\`)], `="'([{<`) + 1
}

// base is the last name of a path.
func base(path string) string {
	path = strings.TrimRight(path, `/\`)
	return path[strings.LastIndexAny(path, `/\`)+1:]
}

// hidden stands for what is not shown of a command.
const hidden = "…"

// value is what may follow a flag.
type value int

const (
	nothing value = iota // the flag stands alone
	word
	file
	secret
)

// flags are those of `pepvault-bench run`, and what of their values is shown.
var flags = map[string]value{
	"--echo": nothing, "--short": nothing, "--insecure-tls": nothing,
	"--host": word, "--host-gc": word, "--server": word, "--domain": word, "--user-prefix": word, "--target": word, "--rounds": word,
	"--rate": word, "--outstanding": word, "--duration": word, "--users": word, "--devices": word, "--records": word, "--size": word,
	"--only": word, "--missed": word, "--download": word, "--lone": word, "--max-delivery": word, "--max-memory": word, "--seed": word,
	"--timeout": word, "--pid": word,
	"--out": file, "--ca": file, "--password": secret,
}

// simple is a value that says nothing of the machine: numbers, names, addresses.
var simple = regexp.MustCompile(`^[\w.,:@=\[\]+-]+$`)

// command keeps of a command line what is known to say nothing of the machine
// it was typed on; the program is the one that is built at the beginning.
func command(args []string) []string {
	if len(args) == 0 {
		return nil
	}
	kept, follows := []string{"./pepvault-bench"}, nothing
	for _, arg := range args[1:] {
		name, given, joined := strings.Cut(arg, "=")
		kind, known := flags[name]
		switch {
		case follows != nothing:
			arg, follows = shown(follows, arg), nothing
		case known && joined && kind != nothing:
			arg = name + "=" + shown(kind, given)
		case known && !joined:
			follows = kind
		case strings.HasPrefix(arg, "-"):
			arg = hidden
		default:
			arg = shown(word, arg)
		}
		kept = append(kept, arg)
	}
	return kept
}

func shown(kind value, text string) string {
	switch {
	case kind == file:
		return printable(base(text))
	case kind == word && simple.MatchString(text):
		return text
	}
	return hidden
}

// commandLine is a command as it would be typed.
func commandLine(args []string) string {
	var all []string
	for _, arg := range args {
		all = append(all, quoted(arg))
	}
	return strings.Join(all, " ")
}

var plain = regexp.MustCompile(`^[\w@%+=:,./…-]+$`)

// quoted is a word as a shell takes it.
func quoted(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
