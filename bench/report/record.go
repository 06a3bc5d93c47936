package report

import "time"

// Record is one line of a results file: an Operation, a Phase, a Process, a
// Noise, a Machine, a Storage, a Check, a Gate, a Writes, a Syncs, a
// CapacityStep, a Capacity or a Verdict.
type Record interface{ kind() string }

// Operation is one sample of the load.
type Operation struct {
	Target string `json:"target"` // one of Environment.Targets
	Round  int    `json:"round"`  // from 1
	Phase  string `json:"phase"`
	Kind   Kind   `json:"op"`
	// Planned is the moment at which the plan wanted it sent; in a closed loop
	// the moment of sending.
	Planned time.Duration `json:"planned_ns"`
	Latency time.Duration `json:"latency_ns"` // from the planned moment to the end of the answer
	Service time.Duration `json:"service_ns"` // from the sending to the end of the answer
	Result  string        `json:"result"`     // OK, else a class of errors: few different texts
	Bytes   int64         `json:"bytes"`      // of record contents, as sealed, read or written
}

// Phase is a part of a run that is over: of one target in one round.
type Phase struct {
	Target string        `json:"target"`
	Round  int           `json:"round"`
	Name   string        `json:"phase"`
	From   time.Duration `json:"from_ns"`
	To     time.Duration `json:"to_ns"` // the last answer to what was planned in it has come
}

// Process is a look at one watched process with its children, if those are
// watched too. All but Resident, Peak and Count only grow; what an ended child
// had used stays counted.
type Process struct {
	At       time.Duration `json:"at_ns"`
	Name     string        `json:"name"`
	Count    int           `json:"processes"` // 0: it has ended
	User     time.Duration `json:"user_ns"`
	System   time.Duration `json:"system_ns"`
	Resident int64         `json:"resident_bytes"`
	Peak     int64         `json:"peak_bytes"`    // highest resident memory that the kernel or the watcher saw
	Read     int64         `json:"read_bytes"`    // from storage
	Written  int64         `json:"written_bytes"` // to storage, as the kernel accounts it when pages are dirtied
	Yielded  int64         `json:"yielded"`       // context switches: it waited
	Forced   int64         `json:"forced"`        // context switches: it was interrupted
	// Beats are moments at which the generator wanted to run, however much it does
	// beside; Waited is the sum of how long after them it did. Of the generator
	// alone; 0 beats: not measured.
	Beats  int64         `json:"beats,omitempty"`
	Waited time.Duration `json:"waited_ns,omitempty"`
	// Periods are those of the generator's control groups in which they wanted to
	// run while they had a limit of CPU; in Throttled ones they used it up.
	Periods   int64 `json:"periods,omitempty"`
	Throttled int64 `json:"throttled,omitempty"`
	// Unmeasured says what the kernel refused to tell ("storage"); then the
	// fields are 0.
	Unmeasured []string `json:"unmeasured,omitempty"`
}

// Noise is what else the machine did, at one moment. Times are sums over all
// cores since the machine started.
type Noise struct {
	At       time.Duration `json:"at_ns"`
	Busy     time.Duration `json:"busy_ns"`   // by anybody, without Stolen
	Others   time.Duration `json:"others_ns"` // Busy without what the watched processes had since watching began
	Stolen   time.Duration `json:"stolen_ns"` // by the hypervisor
	Runnable int           `json:"runnable"`  // tasks that run or want to
}

// Machine is a measurement of the machine itself, made while no load runs.
type Machine struct {
	At     time.Duration `json:"at_ns"`
	Round  int           `json:"round"`     // the round that follows it; 0: after the last one
	Memory float64       `json:"memory_ns"` // one dependent load from memory, median; 0: not measured
	// Syncs of a small file on the disk of the store: how many, and how long
	// they took. 0 syncs: not measured.
	Syncs   int           `json:"syncs"`
	SyncP50 time.Duration `json:"sync_p50_ns"`
	SyncP99 time.Duration `json:"sync_p99_ns"`
	SyncMax time.Duration `json:"sync_max_ns"`
}

// Storage is the size of a database that a target keeps its records in.
type Storage struct {
	At      time.Duration `json:"at_ns"`
	Target  string        `json:"target"`
	Round   int           `json:"round"`
	Bytes   int64         `json:"bytes"`     // without its log, but with what lies only there
	Log     int64         `json:"log_bytes"` // of the log beside it, which has a bound of its own
	Records int64         `json:"records"`
}

// Check is what the verification of one target found. What was lost, repeated
// or wrong fails the run.
type Check struct {
	Target        string `json:"target"`
	Saves         int64  `json:"saves"`         // acknowledged ones
	Notifications int64  `json:"notifications"` // that came once
	// LostSaves are records, at any read, of an older state than the one that
	// was acknowledged.
	LostSaves         int64 `json:"lost_saves"`
	LostNotifications int64 `json:"lost_notifications"`
	Repeated          int64 `json:"repeated_notifications"`
	Wrong             int64 `json:"wrong"` // what nobody saved, or not there
}

// Clean reports whether nothing was lost, repeated or wrong.
func (c Check) Clean() bool {
	return c.LostSaves == 0 && c.LostNotifications == 0 && c.Repeated == 0 && c.Wrong == 0
}

func (Operation) kind() string { return "operation" }
func (Phase) kind() string     { return "phase" }
func (Process) kind() string   { return "process" }
func (Noise) kind() string     { return "noise" }
func (Machine) kind() string   { return "machine" }
func (Storage) kind() string   { return "storage" }
func (Check) kind() string     { return "check" }
func (Verdict) kind() string   { return "verdict" }
