// Package report keeps what a run of the load lab measured: a JSON-lines file
// of the environment, raw samples, samples of processes and of the machine's
// noise, and the verdict; and the figures that are computed from it.
//
// All durations in a file are whole nanoseconds, named `…_ns`, all sizes bytes.
// Moments are nanoseconds since the file began (Environment.Date). The first
// line is the environment, the last one of a whole file is the verdict; a file
// without it is of a run that was cut off.
package report

import (
	"errors"
)

// Schema is the version of the file's format. It rises when an older program
// could misread a newer file.
const Schema = 1

// Names that the figures know. A run may use other phases; they are kept, but
// nothing is computed from them.
const (
	PhaseSeed   = "seed"
	PhaseWarmUp = "warm-up"
	PhaseSteady = "steady" // the one that is measured, in every workload
	PhaseDrain  = "drain"
	PhaseVerify = "verify"
)

// Generator is the name of pepvault-bench's own process among the watched.
const Generator = "generator"

// Service is the name of the service's process among the watched.
const Service = "service"

// Results of operations. A stanza error is TYPE/CONDITION.
const (
	OK        = "ok"         // it did what it should
	Timeout   = "timeout"    // no answer came in time
	Cancelled = "cancelled"  // nobody waited any longer
	Lost      = "connection" // the connection failed before the answer came
	Wrong     = "wrong"      // an answer that nobody could have given
)

// Kind is what an operation was.
type Kind string

// The kinds. Read, Save and Download are the load, and the rate counts them
// alone; the others stand beside it, each with figures of its own.
const (
	Read     Kind = "read"     // one record
	Save     Kind = "save"     // one record
	Download Kind = "download" // a whole vault
	Notify   Kind = "notify"   // from the save's planned moment to the event at another device
	Connect  Kind = "connect"  // from the planned moment to the bound session
	Ready    Kind = "ready"    // a device of the storm: connected, and all of its vault there
	Probe    Kind = "probe"    // a read beside a storm
)

// IsLoad reports whether operations of this kind count towards the rate.
func (k Kind) IsLoad() bool { return k == Read || k == Save || k == Download }

var (
	// ErrDamaged: a line of the file is not what this package writes.
	ErrDamaged = errors.New("damaged results file")
	// ErrSchema: the file was written by a program with another format.
	ErrSchema = errors.New("results file of another version")
	// ErrUnlike: two runs did not do the same work.
	ErrUnlike = errors.New("the runs can't be compared")
)
