package report

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"
)

// bufferBytes is how much may be lost of a run that is killed. Any line but an
// operation's is written at once, and the watcher makes some each half second.
const bufferBytes = 64 << 10

// Recorder writes a results file and keeps what the figures need of it. Its
// methods may be called by any goroutine. The first error of the file is kept
// and told by Finish; the figures go on without it.
type Recorder struct {
	began time.Time // with the monotonic clock

	mu      sync.Mutex
	w       io.Writer
	closer  io.Closer // nil: w isn't ours
	buf     []byte
	err     error
	results *Results
	done    bool
}

// Create makes a file that must not exist yet, so that no run overwrites
// another's, and writes the environment into it. With the path "" nothing is
// written; the figures are the same.
func Create(path string, env Environment) (*Recorder, error) {
	if path == "" {
		return NewRecorder(io.Discard, env)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("results file: %w", err)
	}
	r, err := NewRecorder(f, env)
	if err != nil {
		f.Close()
		return nil, err
	}
	r.closer = f
	return r, nil
}

// NewRecorder writes to w, which nobody else may use until Finish returns.
func NewRecorder(w io.Writer, env Environment) (*Recorder, error) {
	return newRecorder(w, env, time.Now())
}

func newRecorder(w io.Writer, env Environment, began time.Time) (*Recorder, error) {
	env.Schema, env.Date = Schema, began.UTC().Round(0)
	r := &Recorder{began: began, w: w, results: newResults(env)}
	line, err := encode("environment", env)
	if err != nil {
		return nil, fmt.Errorf("results file: %w", err)
	}
	if _, err := w.Write(line); err != nil {
		return nil, fmt.Errorf("results file: %w", err)
	}
	return r, nil
}

// Since is the moment now, as the records have it.
func (r *Recorder) Since() time.Duration { return time.Since(r.began) }

// At is a moment as the records have it.
func (r *Recorder) At(moment time.Time) time.Duration { return moment.Sub(r.began) }

// Operation adds a sample; it takes well under a microsecond, and some tens
// when the buffer has to be written.
func (r *Recorder) Operation(o Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		return
	}
	r.buf = appendOperation(r.buf, &o)
	r.results.operation(&o)
	if len(r.buf) >= bufferBytes {
		r.flush()
	}
}

// Phase, Process, Noise, Machine, Storage, Check, Writes, Syncs, Step and Capacity
// add their record and write what the buffer holds.
func (r *Recorder) Phase(p Phase)     { r.add(p) }
func (r *Recorder) Process(p Process) { r.add(p) }
func (r *Recorder) Noise(n Noise)     { r.add(n) }
func (r *Recorder) Machine(m Machine) { r.add(m) }
func (r *Recorder) Storage(s Storage) { r.add(s) }
func (r *Recorder) Check(c Check)     { r.add(c) }
func (r *Recorder) Writes(w Writes)   { r.add(w) }
func (r *Recorder) Syncs(s Syncs)     { r.add(s) }

func (r *Recorder) Step(s CapacityStep) { r.add(s) }
func (r *Recorder) Capacity(c Capacity) { r.add(c) }

func (r *Recorder) add(record Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		return
	}
	r.append(record)
	r.flush()
}

// append encodes a record and shows it to the results.
func (r *Recorder) append(record Record) {
	line, err := encode(record.kind(), record)
	if err != nil {
		r.fail(err)
		return
	}
	r.buf = append(r.buf, line...)
	r.results.add(record)
}

func (r *Recorder) flush() {
	if r.err == nil {
		_, err := r.w.Write(r.buf)
		r.fail(err)
	}
	r.buf = r.buf[:0]
}

func (r *Recorder) fail(err error) {
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("results file: %w", err)
	}
}

// Finish ends the run: failure is why it does not count (nil: it was verified),
// and the verdict says so, with figures only if there is none. What comes
// later is dropped. The error is the first one of the file.
func (r *Recorder) Finish(failure error) (Verdict, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	verdict := r.results.Judge(failure)
	if r.done {
		return verdict, r.err
	}
	r.append(verdict)
	r.flush()
	r.done = true
	if f, ok := r.closer.(*os.File); ok {
		r.fail(f.Sync())
		r.fail(f.Close())
	}
	return verdict, r.err
}

// encode makes a line: {"record":KIND, …the fields of v}.
func encode(kind string, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	line := append(make([]byte, 0, len(text)+32), `{"record":"`...)
	line = append(append(line, kind...), `",`...)
	return append(append(line, text[1:]...), '\n'), nil
}

// appendOperation is encode for the one kind that there are many of.
func appendOperation(b []byte, o *Operation) []byte {
	b = append(b, `{"record":"operation","target":`...)
	b = appendText(b, o.Target)
	b = append(b, `,"round":`...)
	b = strconv.AppendInt(b, int64(o.Round), 10)
	b = append(b, `,"phase":`...)
	b = appendText(b, o.Phase)
	b = append(b, `,"op":`...)
	b = appendText(b, string(o.Kind))
	b = append(b, `,"planned_ns":`...)
	b = strconv.AppendInt(b, int64(o.Planned), 10)
	b = append(b, `,"latency_ns":`...)
	b = strconv.AppendInt(b, int64(o.Latency), 10)
	b = append(b, `,"service_ns":`...)
	b = strconv.AppendInt(b, int64(o.Service), 10)
	b = append(b, `,"result":`...)
	b = appendText(b, o.Result)
	b = append(b, `,"bytes":`...)
	b = strconv.AppendInt(b, o.Bytes, 10)
	return append(b, "}\n"...)
}

// appendText is a JSON string, made without allocation if nothing in it needs
// an escape.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			text, err := json.Marshal(s)
			if err != nil { // no string is refused
				panic(err)
			}
			return append(b, text...)
		}
	}
	b = append(append(b, '"'), s...)
	return append(b, '"')
}

// Environment is the first line of the file.
func (r *Recorder) Environment() Environment {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.results.Environment
}
