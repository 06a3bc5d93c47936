package servers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

// EjabberdAvailable is ProsodyAvailable for ejabberd.
func EjabberdAvailable(binary string) error {
	_, err := findEjabberd(binary)
	return err
}

func findEjabberd(binary string) (string, error) {
	return find(binary, "PEPVAULT_EJABBERD", "ejabberdctl", "ejabberd")
}

// StartEjabberd starts an ejabberd and waits until it serves and all users
// exist. It runs as a plain Erlang process of ours, without node name, port
// mapper or control interface.
func StartEjabberd(ctx context.Context, o Options) (*Server, error) {
	s, err := newEjabberd(o)
	if err != nil {
		return nil, fmt.Errorf("ejabberd: %w", err)
	}
	if err := s.Start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

var (
	erlPath  = regexp.MustCompile(`(?m)^ERL="([^"]+)"`)
	erlLibs  = regexp.MustCompile(`(?m)^ERL_LIBS='?([^'\n]+)'?`)
	erlMore  = regexp.MustCompile(`(?m)^ERL_OPTIONS="\$ERL_OPTIONS ([^"\n]+)"$`)
	ctlRules = [...]*regexp.Regexp{erlPath, erlLibs}
)

func newEjabberd(o Options) (*Server, error) {
	if err := o.prepare(); err != nil {
		return nil, err
	}
	binary, err := findEjabberd(o.Binary)
	if err != nil {
		return nil, err
	}
	script, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	var found [len(ctlRules)]string
	for i, rule := range ctlRules {
		m := rule.FindSubmatch(script)
		if m == nil {
			return nil, fmt.Errorf("%s does not say where Erlang is (no line like %s)", binary, rule)
		}
		found[i] = string(m[1])
	}
	erl, libs := found[0], found[1]
	cert, err := makeCertificate(o.Dir, o.Domain)
	if err != nil {
		return nil, err
	}
	reserved := new(ports)
	clients, err := reserved.take()
	if err != nil {
		return nil, err
	}
	at := func(name string) string { return filepath.Join(o.Dir, name) }
	var more []string
	if o.Control != "" {
		m := erlMore.FindStringSubmatch(o.Control)
		if m == nil {
			return nil, fmt.Errorf("the start script's configuration has no line like %s", erlMore)
		}
		more = strings.Fields(m[1])
	}
	s := &Server{
		Domain: o.Domain, Addr: clients, CA: cert.pool, CAFile: cert.cert, Data: at("spool"),
		name: "ejabberd", dir: o.Dir, components: make(map[string]string), ports: reserved, logger: o.Logger,
		command: command{
			path: erl, wrap: o.Wrap,
			args: slices.Concat([]string{"-noinput", "+K", "true"}, more, []string{"-mnesia", "dir", `"` + at("spool") + `"`,
				"-s", "ejabberd", "-eval", registerUsers}),
			env: []string{
				"ERL_LIBS=" + libs, "HOME=" + o.Dir, "ERL_CRASH_DUMP=" + at("erl_crash.dump"),
				"EJABBERD_CONFIG_PATH=" + at("ejabberd.yml"), "EJABBERD_LOG_PATH=" + at("ejabberd.log"),
				"EJABBERD_PID_PATH=" + at("ejabberd.pid"),
				"PEPVAULT_USERS=" + at("users.term"), "PEPVAULT_USERS_DONE=" + at("users.done"),
			},
			logs: []string{at("ejabberd.log"), at("error.log")},
			done: at("users.done"),
		},
	}
	settings := ejabberdSettings{Options: o, Clients: port(clients), Cert: cert.both}
	for _, c := range o.Components {
		addr, err := reserved.take() // the fragment is a listener of its own
		if err != nil {
			return nil, err
		}
		text, err := attach(o.Fragment, c, addr)
		if err != nil {
			return nil, err
		}
		settings.Attached += strings.TrimRight(text, "\n") + "\n"
		s.components[c.JID] = addr
	}
	if err := os.MkdirAll(at("spool"), 0o700); err != nil {
		return nil, err
	}
	users, err := ejabberdAccounts(o.Domain, o.Users)
	if err != nil {
		return nil, err
	}
	var config strings.Builder
	if err := ejabberdConfig.Execute(&config, settings); err != nil {
		return nil, err
	}
	if err := os.WriteFile(at("users.term"), users, 0o600); err != nil {
		return nil, err
	}
	return s, os.WriteFile(at("ejabberd.yml"), []byte(config.String()), 0o600)
}

// registerUsers runs inside ejabberd once it is up: it adds our rows to the
// password table. Its own registration would hash each password anew, at 30 ms
// an account. What fails ends the server, with the reason in its output.
const registerUsers = `
	{ok, Rows} = file:consult(os:getenv("PEPVAULT_USERS")),
	[ok = mnesia:dirty_write(passwd, Row) || Row <- Rows],
	ok = file:write_file(os:getenv("PEPVAULT_USERS_DONE"), <<"ok">>).`

type ejabberdSettings struct {
	Options
	Clients  string
	Cert     string
	Attached string
}

// ejabberdConfig opens nothing but devices and components; no shaper.
var ejabberdConfig = template.Must(template.New("ejabberd.yml").Parse(`loglevel: info
hosts:
  - "{{.Domain}}"
certfiles:
  - "{{.Cert}}"
auth_method: internal
auth_password_format: scram
disable_sasl_mechanisms: ["digest-md5", "X-OAUTH2"]
s2s_access: none
acl:
  local:
    user_regexp: ""
access_rules:
  local:
    allow: local
  pubsub_createnode:
    allow: local
{{.Global}}
modules:
  mod_blocking: {}
  mod_caps: {}
  mod_client_state: {}
  mod_disco: {}
  mod_ping: {}
  mod_privacy: {}
  mod_private: {}
  mod_pubsub:
    access_createnode: pubsub_createnode
{{- with .MaxItems}}
    max_items_node: {{.}}
{{- end}}
    plugins:
      - flat
      - pep
  mod_roster: {}
  mod_stream_mgmt: {}
  mod_version: {}
listen:
  -
    port: {{.Clients}}
    ip: "127.0.0.1"
    module: ejabberd_c2s
    max_stanza_size: 262144
    starttls_required: true
{{.Attached}}`))
