package servers

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"text/template"

	_ "modernc.org/sqlite" // makes Prosody's database
)

// ProsodyAvailable returns nil if binary, or the Prosody that Options.Binary =
// "" would mean, can be started, else ErrUnavailable with what to do.
func ProsodyAvailable(binary string) error {
	_, err := findProsody(binary)
	return err
}

func findProsody(binary string) (string, error) {
	return find(binary, "PEPVAULT_PROSODY", "prosody", "prosody")
}

// find looks for a start script: named, from the environment, on the path, or
// where Debian puts what only root needs.
func find(named, variable, name, pkg string) (string, error) {
	if named == "" {
		named = os.Getenv(variable)
	}
	if named == "" {
		named = name
		if _, err := exec.LookPath(name); err != nil {
			named = filepath.Join("/usr/sbin", name)
		}
	}
	path, err := exec.LookPath(named)
	if err != nil {
		return "", fmt.Errorf("%s: %w: install the package %s, or name its start script in %s", name, ErrUnavailable, pkg, variable)
	}
	return filepath.Abs(path)
}

// StartProsody starts a Prosody (0.12 or 13.0) and waits until it serves. Its
// accounts lie in files, all else in SQLite where Prosody can use that.
func StartProsody(ctx context.Context, o Options) (*Server, error) {
	s, err := newProsody(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("prosody: %w", err)
	}
	if err := s.Start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func newProsody(ctx context.Context, o Options) (*Server, error) {
	if err := o.prepare(); err != nil {
		return nil, err
	}
	binary, err := findProsody(o.Binary)
	if err != nil {
		return nil, err
	}
	root := prosodyRoot(binary)
	if root != "" {
		if binary, err = relocateProsody(binary, root, o.Dir); err != nil {
			return nil, err
		}
	}
	cert, err := makeCertificate(o.Dir, o.Domain)
	if err != nil {
		return nil, err
	}
	reserved := new(ports)
	clients, err := reserved.take()
	if err != nil {
		return nil, err
	}
	components, err := reserved.take()
	if err != nil {
		return nil, err
	}
	settings := prosodySettings{
		Options: o, Root: os.Geteuid() == 0, Clients: port(clients), ComponentPort: port(components),
		Cert: cert.cert, Key: cert.key, SQL: luaDBI(), PluginRoot: root,
	}
	s := &Server{
		Domain: o.Domain, Addr: clients, CA: cert.pool, CAFile: cert.cert,
		name: "prosody", dir: o.Dir, components: make(map[string]string), ports: reserved, logger: o.Logger,
		command: command{
			path: binary, wrap: o.Wrap,
			args: []string{"-F", "--config", filepath.Join(o.Dir, "prosody.cfg.lua")},
			logs: []string{filepath.Join(o.Dir, "prosody.log")},
		},
	}
	s.Data = filepath.Join(o.Dir, "data")
	if settings.SQL {
		s.Data = filepath.Join(s.Data, "prosody.sqlite")
	}
	for _, c := range o.Components {
		text, err := attach(o.Fragment, c, components)
		if err != nil {
			return nil, err
		}
		settings.Attached += text + "\n"
		s.components[c.JID] = components
	}
	for _, folder := range []string{"data", "certs"} { // it complains if it can't look for more certificates
		if err := os.MkdirAll(filepath.Join(o.Dir, folder), 0o700); err != nil {
			return nil, err
		}
	}
	if settings.SQL && !o.RollbackJournal {
		if err := makeWAL(ctx, filepath.Join(o.Dir, "data", "prosody.sqlite")); err != nil {
			return nil, err
		}
	}
	if err := writeProsodyAccounts(filepath.Join(o.Dir, "data"), o.Domain, o.Users); err != nil {
		return nil, err
	}
	var config strings.Builder
	if err := prosodyConfig.Execute(&config, settings); err != nil {
		return nil, err
	}
	return s, os.WriteFile(filepath.Join(o.Dir, "prosody.cfg.lua"), []byte(config.String()), 0o600)
}

type prosodySettings struct {
	Options
	Root                   bool
	Clients, ComponentPort string
	Cert, Key              string
	SQL                    bool
	PluginRoot             string
	Attached               string
}

// prosodyConfig opens nothing but devices and components; no admin interface,
// no limits on devices.
var prosodyConfig = template.Must(template.New("prosody.cfg.lua").Parse(`
{{- if .Root}}run_as_root = true
{{end -}}
daemonize = false
pidfile = "{{.Dir}}/prosody.pid"
data_path = "{{.Dir}}/data"
log = { { levels = { min = "info" }, to = "file", filename = "{{.Dir}}/prosody.log" } }
{{if .PluginRoot}}installer_plugin_path = "{{.Dir}}/plugins"
{{end -}}
modules_enabled = {
	"roster", "saslauth", "tls", "disco", "pep", "ping", "version", "blocklist", "smacks", "csi_simple", "vcard4", "private"
}
modules_disabled = { "s2s", "http", "https" }
c2s_interfaces = { "127.0.0.1" }
c2s_ports = { {{.Clients}} }
c2s_direct_tls_ports = { }
c2s_require_encryption = true
component_interfaces = { "127.0.0.1" }
component_ports = { {{.ComponentPort}} }
authentication = "internal_hashed"
password_hash = "SHA-256"
{{if .SQL}}default_storage = "sql"
storage = { accounts = "internal" }
sql = { driver = "SQLite3", database = "prosody.sqlite" }
{{else}}default_storage = "internal"
{{end -}}
{{with .MaxItems}}pep_max_items = {{.}}
{{end -}}
ssl = { certificate = "{{.Cert}}", key = "{{.Key}}" }
{{.Global}}

VirtualHost "{{.Domain}}"

{{.Attached}}`))

func port(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }

// luaDBI reports whether Prosody finds the Lua library for SQLite.
func luaDBI() bool {
	found, err := filepath.Glob("/usr/lib/*/lua/5.4/dbd/sqlite3.so")
	return err == nil && len(found) > 0
}

// makeWAL makes an empty database with a write-ahead log; whoever opens it
// later keeps that.
func makeWAL(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "PRAGMA journal_mode = WAL")
	if closeErr := db.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("make Prosody's database: %w", err)
	}
	return nil
}

// prosodyRoot is the folder that a Prosody was unpacked into, or "" for the
// system's own.
func prosodyRoot(binary string) string {
	root, found := strings.CutSuffix(binary, "/usr/bin/prosody")
	if !found {
		return ""
	}
	return root
}

var prosodyPath = regexp.MustCompile(`(?m)^(CFG_(?:SOURCEDIR|PLUGINDIR)=')(/[^']*')`)

// relocateProsody writes a start script that finds the code below root, which
// the packaged script has by absolute path.
func relocateProsody(binary, root, dir string) (string, error) {
	script, err := os.ReadFile(binary)
	if err != nil {
		return "", err
	}
	moved := prosodyPath.ReplaceAll(script, []byte("${1}"+strings.ReplaceAll(root, "$", "$$")+"${2}"))
	if len(moved) == len(script) {
		return "", fmt.Errorf("%s does not say where its code is, so it can't be run from %s", binary, root)
	}
	path := filepath.Join(dir, "prosody-"+strconv.Itoa(os.Getpid()))
	// What is forked meanwhile would hold it open for writing, and then it can't
	// be run.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return path, os.WriteFile(path, moved, 0o700)
}
