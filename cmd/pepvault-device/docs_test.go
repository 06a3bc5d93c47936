package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// step is a command of the page, and what it says that comes of it.
type step struct {
	device, command string
	output          string
}

var whose = regexp.MustCompile(`\b(laptop|phone)\b`)

// steps reads the walk-through of docs/device.md: which device a block belongs to,
// the last mention before it says.
func steps(t *testing.T) (all []step) {
	t.Helper()
	page, err := os.ReadFile("../../docs/device.md")
	if err != nil {
		t.Fatal(err)
	}
	_, walk, found := strings.Cut(string(page), "## Two terminals")
	walk, _, ends := strings.Cut(walk, "\n## ")
	if !found || !ends {
		t.Fatal("the page has no walk-through")
	}
	device := ""
	for line := range strings.Lines(walk) {
		code, isCode := strings.CutPrefix(line, "    ")
		switch {
		case !isCode:
			if m := whose.FindAllString(line, -1); m != nil {
				device = m[len(m)-1]
			}
		case strings.Contains(code, "pepvault-device "):
			all = append(all, step{device: device, command: strings.TrimSpace(code)})
		default:
			for i := len(all) - 1; i >= 0; i-- { // of that device's last command
				if all[i].device == device {
					all[i].output += code
					break
				}
			}
		}
	}
	return all
}

// testPage runs the walk-through of docs/device.md as it stands there.
func (w *place) testPage() {
	devices := map[string]*terminal{"laptop": w.terminal("laptop"), "phone": w.terminal("phone")}
	type watching struct {
		*exec.Cmd
		seen *lockedBuffer
		want string
	}
	watches := map[string]watching{}
	end := func(device string) {
		if watch, under := watches[device]; under {
			for line := range strings.Lines(watch.want) {
				watch.seen.await(w.t, line, 1)
			}
			_ = watch.Process.Signal(syscall.SIGTERM)
			if err := watch.Wait(); err != nil {
				w.t.Errorf("watch: %v", err)
			}
			delete(watches, device)
		}
	}
	for _, d := range devices {
		d.write("photo.jpg", "a picture")
		d.write("new-passphrase", "another one\n")
	}
	count := 0
	for _, s := range steps(w.t) {
		d := devices[s.device]
		if d == nil {
			w.t.Fatalf("%q is of no device", s.command)
		}
		end(s.device)
		here := strings.NewReplacer("alice@example.org", w.account()+" --server "+w.server.Addr+" --ca ca.pem --service "+w.jid).Replace(s.command)
		if strings.HasPrefix(here, "pepvault-device watch") {
			here = "exec " + here + " --verbose"
		}
		cmd := exec.CommandContext(w.t.Context(), "sh", "-c", here)
		cmd.Dir = d.dir
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(w.device)+":"+os.Getenv("PATH"), "XDG_CONFIG_HOME="+d.dir)
		if strings.HasPrefix(here, "exec ") {
			seen := new(lockedBuffer)
			cmd.Stdout, cmd.Stderr = seen, seen
			if err := cmd.Start(); err != nil {
				w.t.Fatal(err)
			}
			watches[s.device] = watching{cmd, seen, s.output}
			seen.await(w.t, "pep.Sync", 1)
			count++
			continue
		}
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil || s.output != "" && out.String() != s.output {
			w.t.Errorf("%s, %s: %v, %q; want %q\n%s", s.device, s.command, err, &out, s.output, &errs)
		}
		count++
	}
	for device := range devices {
		end(device)
	}
	if count < 10 {
		w.t.Errorf("the walk-through has %d steps", count)
	}
}

// TestPageCommands holds that the page shows no command that the walk-through does
// not run, but for the build.
func TestPageCommands(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/device.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for line := range strings.Lines(string(page)) {
		if code, isCode := strings.CutPrefix(line, "    "); isCode && strings.Contains(code, "pepvault-device ") {
			shown++
		}
	}
	if run := len(steps(t)); run != shown {
		t.Errorf("the page shows %d commands, the walk-through has %d", shown, run)
	}
}
