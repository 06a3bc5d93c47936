package report

import (
	"bufio"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Environment is the first line of a file: all that a reader needs to judge
// the figures and to repeat the run.
type Environment struct {
	Schema  int       `json:"schema"` // set by the Recorder
	Date    time.Time `json:"date"`   // the moment 0 of the file; set by the Recorder
	Program string    `json:"program"`
	Command []string  `json:"command"` // as typed, without secrets: see Command
	Machine Platform  `json:"machine"`
	Host    Host      `json:"host"`
	Work    Workload  `json:"workload"`
	Targets []string  `json:"targets"` // in the order in which a round has them
}

// Platform is the machine and what the bench was built with.
type Platform struct {
	Go      string `json:"go"`
	System  string `json:"system"` // GOOS/GOARCH
	Kernel  string `json:"kernel,omitempty"`
	CPU     string `json:"cpu,omitempty"`
	Cores   int    `json:"cores"` // that the bench may use
	Memory  int64  `json:"memory_bytes,omitempty"`
	Storage string `json:"storage,omitempty"` // kind of file system below the stores
}

// Host is the server under the targets.
type Host struct {
	Name     string            `json:"name"` // prosody, ejabberd, embedded, or as the operator named it
	Version  string            `json:"version,omitempty"`
	Settings map[string]string `json:"settings,omitempty"` // what was chosen: gc, journal, …
	Versions map[string]string `json:"versions,omitempty"` // of other programs in the run: the service, …
}

// Workload is what was asked for. Runs are alike if all of this is equal but
// Rounds.
type Workload struct {
	Name        string        `json:"name"`
	Users       int           `json:"users"`
	Devices     int           `json:"devices"` // of each user
	Records     int           `json:"records"` // of each user
	RecordBytes int           `json:"record_bytes"`
	Rate        float64       `json:"rate"`             // operations a second that the plan has; 0 = closed loop
	Outstanding int           `json:"outstanding"`      // at most that many at once; 0 = unbounded
	Only        Kind          `json:"only,omitempty"`   // the one kind of operation that the load is; "" = the standard mix
	Lone        int           `json:"lone,omitempty"`   // saves of a disk run of which each has the disk to itself
	Missed      int           `json:"missed,omitempty"` // saves to each vault while the devices of a storm are away
	Duration    time.Duration `json:"duration_ns"`      // of the steady phase
	WarmUp      time.Duration `json:"warm_up_ns"`       // of a storm: how long its probe is alone before it, and behind it
	Download    string        `json:"download"`         // plain, paged, pushed, sync
	Seed        uint64        `json:"seed"`
	Rounds      int           `json:"rounds"`
	Sizes       []Size        `json:"sizes,omitempty"` // of servers: of capacity, whose Users are the most then, or the one of a soak
}

// ThisPlatform looks at the machine. What can't be found out stays empty.
func ThisPlatform() Platform {
	p := Platform{Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.GOMAXPROCS(0)}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		p.Kernel = strings.TrimSpace(string(text))
	}
	p.CPU = procField("/proc/cpuinfo", "model name")
	kib := strings.TrimSuffix(procField("/proc/meminfo", "MemTotal"), " kB")
	if n, err := strconv.ParseInt(kib, 10, 64); err == nil {
		p.Memory = n << 10
	}
	return p
}

// procField is the value of the first line `name: value` of a file of /proc,
// or "".
func procField(path, name string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, value, found := strings.Cut(lines.Text(), ":")
		if found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Command is a command line that may be kept: the value of every flag that is
// named in secret (`--password`) is left out, in either spelling.
func Command(args []string, secret ...string) []string {
	kept := slices.Clone(args)
	for i, arg := range kept {
		name, _, joined := strings.Cut(arg, "=")
		if joined && slices.Contains(secret, name) {
			kept[i] = name + "=…"
		}
		if i > 0 && slices.Contains(secret, kept[i-1]) {
			kept[i] = "…"
		}
	}
	return kept
}
