package configs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/pelletier/go-toml/v2/unstable"
)

// SecretEnv is the environment variable that goes before secret_file and
// secret.
const SecretEnv = "PEPVAULT_SECRET"

// mostFileBytes bounds a configuration file, mostSecretBytes a secret's.
const (
	mostFileBytes   = 256 << 10
	mostSecretBytes = 4096
)

// Load reads and checks a configuration file. getenv is asked for [SecretEnv]
// only. The error is [Faults], all that is wrong at once; no text in it, and
// none in the result's warnings, holds a secret.
func Load(file string, getenv func(string) string) (Config, error) {
	return load(file, func(d *document, public bool) { d.findSecret(getenv(SecretEnv), public) })
}

// LoadWithoutSecret is Load for what does not attach to a host: the secret is
// not looked for, since a service may get it in a way of its own.
func LoadWithoutSecret(file string) (Config, error) {
	return load(file, func(*document, bool) {})
}

func load(file string, findSecret func(d *document, public bool)) (Config, error) {
	config := defaults()
	d := newDocument(file, &config)
	text, public, err := readSmall(file, mostFileBytes)
	if err != nil {
		d.fault(0, "", reason(err)+`; "pepvault config print" writes one to begin with`)
		return Config{}, d.faults
	}
	d.read(text)
	d.require()
	d.derive()
	d.applyRules()
	d.resolvePaths()
	findSecret(d, public)
	if len(d.faults) > 0 {
		d.faults.sort()
		return Config{}, d.faults
	}
	return config, nil
}

// defaults is the configuration of an empty file.
func defaults() Config {
	var c Config
	for _, k := range keys() {
		if k.value == "" {
			continue
		}
		if what := k.set(&c, parseValue(k.value)); what != "" {
			panic("configs: default of " + k.path() + ": " + what)
		}
	}
	return c
}

// parseValue reads one TOML value of the table.
func parseValue(value string) *unstable.Node {
	p := new(unstable.Parser)
	p.Reset([]byte("x = " + value))
	if !p.NextExpression() {
		panic(fmt.Sprintf("configs: %s is not TOML: %v", value, p.Error()))
	}
	return p.Expression().Value()
}

// readSmall reads a file of at most most bytes and tells whether everybody
// may read it.
func readSmall(file string, most int64) (content []byte, public bool, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	if info.IsDir() {
		return nil, false, syscall.EISDIR
	}
	content, err = io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("larger than %d bytes", most)
	}
	return content, info.Mode().Perm()&0o004 != 0, err
}

// reason is why a file can't be read, without its name.
func reason(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return "can't be read: " + err.Error()
}

// lineOf returns where the file speaks of a key: its line, else that of its
// table, else the first.
func (d *document) lineOf(path string) int {
	if line := d.lines[path]; line > 0 {
		return line
	}
	table, _ := cutLast(path)
	return max(1, d.tables[table])
}

func (d *document) require() {
	for _, k := range keys() {
		path := k.path()
		if k.required && d.lines[path] == 0 && !d.bad[path] {
			d.bad[path] = true
			d.fault(d.lineOf(path), path, k.problem("is missing"))
		}
	}
}

// derive fills what counts from the component's address.
func (d *document) derive() {
	c := d.config
	_, parent, _ := strings.Cut(c.Component.JID, ".")
	fill := func(path string, empty bool, set func()) {
		if !empty || d.bad[path] {
			return
		}
		k := d.keys[path]
		switch {
		case d.lines[path] > 0:
			d.fault(d.lines[path], path, k.problem("is empty"))
		case d.bad["component.jid"]:
		case parent == "":
			d.fault(d.lineOf(path), path, k.problem("is missing, and component.jid has no parent domain to stand in"))
		default:
			set()
		}
	}
	fill("access.domains", len(c.Access.Domains) == 0, func() { c.Access.Domains = []string{parent} })
	fill("stream.confirm_jid", c.Stream.ConfirmJID == "", func() { c.Stream.ConfirmJID = parent })
}

// resolvePaths makes relative paths count from the file's folder.
func (d *document) resolvePaths() {
	c := d.config
	folder, err := filepath.Abs(filepath.Dir(d.file))
	if err != nil {
		d.fault(0, "", "its folder can't be found: "+err.Error())
		return
	}
	for _, path := range []*string{&c.Store.Path, &c.Component.secretFile} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(folder, *path)
		}
	}
}

// findSecret takes the first of environment, file and key. public says that
// everybody may read the configuration itself.
func (d *document) findSecret(env string, public bool) {
	const fileKey, plainKey = "component.secret_file", "component.secret"
	c := &d.config.Component
	switch {
	case env != "":
		c.Secret = NewSecret(env)
	case d.bad[fileKey]:
	case c.secretFile != "":
		d.readSecret(fileKey)
	case d.bad[plainKey]:
	case d.lines[plainKey] > 0 && c.Secret.Empty():
		d.noSecret(plainKey, "is empty")
	case c.Secret.Empty():
		d.noSecret(plainKey, "is missing")
	case public:
		d.warn(plainKey, d.file)
	}
}

func (d *document) readSecret(path string) {
	c := &d.config.Component
	content, public, err := readSmall(c.secretFile, mostSecretBytes)
	if err != nil {
		d.noSecret(path, fmt.Sprintf("%s %s", c.secretFile, reason(err)))
		return
	}
	secret := strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
	if secret == "" {
		d.noSecret(path, c.secretFile+" is empty")
		return
	}
	c.Secret = NewSecret(secret)
	if public {
		d.warn(path, c.secretFile)
	}
}

func (d *document) noSecret(path, what string) {
	d.fault(d.lineOf(path), path, what+"; allowed: a secret that is not empty, from the environment variable "+
		SecretEnv+", else the file that component.secret_file names, else component.secret")
}

func (d *document) warn(path, file string) {
	d.config.Warnings = append(d.config.Warnings, Fault{
		File: d.file, Line: d.lineOf(path), Key: path,
		Problem: "warning: everybody on this machine can read " + file + "; chmod o-r it",
	}.Error())
}
