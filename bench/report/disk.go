package report

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// The parts of a disk run, in which bytes are counted.
const (
	PartLone   = "lone"   // one save, and the next when nothing is written any more
	PartLoaded = "loaded" // many saves under way at a time
	PartDay    = "day"    // what the users do in a day, without its pauses
)

// Writes is what one part of a disk run wrote, up to the moment at which nothing
// was written any more: one record for each lone save, one for a load, one for a
// day. All but the generator's own is in it.
type Writes struct {
	At          time.Duration `json:"at_ns"`
	Target      string        `json:"target"`
	Round       int           `json:"round"`
	Part        string        `json:"part"`
	Saves       int64         `json:"saves"`                 // acknowledged
	Connections int64         `json:"connections,omitempty"` // of a day: log-ins, each with a load of the vault
	Took        time.Duration `json:"took_ns"`               // up to the last answer
	// Settled says that nothing was written for a while at its end; else the
	// count was ended because writing went on.
	Settled bool                     `json:"settled"`
	Written map[string]int64         `json:"written_bytes"` // to storage, by process
	CPU     map[string]time.Duration `json:"cpu_ns"`        // user and system, by process
	// Unmeasured names the processes whose storage the kernel does not tell; they
	// are not in Written.
	Unmeasured []string `json:"unmeasured,omitempty"`
	Grown      int64    `json:"database_grown_bytes"` // of the database, without its log
	LogGrown   int64    `json:"log_grown_bytes"`
	Log        int64    `json:"log_bytes"` // of the log, at the last answer or when all was settled
}

// Syncs is how long the disk of the stores takes to make a small append
// durable, measured for some seconds while no load runs.
type Syncs struct {
	At    time.Duration `json:"at_ns"`
	Count int           `json:"syncs"`
	P50   time.Duration `json:"p50_ns"`
	P99   time.Duration `json:"p99_ns"`
	Max   time.Duration `json:"max_ns"`
}

// FineSync is the p99 of a disk that is fine.
const FineSync = 3 * time.Millisecond

// Fine reports whether the disk is fast enough for saves that nobody waits for.
func (s Syncs) Fine() bool { return s.Count > 0 && s.P99 <= FineSync }

func (Writes) kind() string { return "writes" }
func (Syncs) kind() string  { return "syncs" }

// Disk is what a target wrote in a disk run, as spreads over its rounds.
type Disk struct {
	Lone   *Written `json:"lone,omitempty"`
	Loaded *Written `json:"loaded,omitempty"`
	Day    *Day     `json:"day,omitempty"`
	Log    *Spread  `json:"log_bytes,omitempty"` // the longest of each round
	// Unsettled counts the parts at whose end writing had not stopped: their
	// bytes are a lower bound.
	Unsettled int `json:"unsettled,omitempty"`
}

// Written is bytes for a save.
type Written struct {
	Saves int64   `json:"saves"`                    // in all rounds
	All   *Spread `json:"bytes_per_save,omitempty"` // mean of a round; nil if a process was not measured
	// Each is of all single saves of all rounds, if they were lone: the median tells
	// what most of them wrote, as the mean has the few in it at which a log was
	// copied. Nil as All.
	Each      *Spread            `json:"bytes_each,omitempty"`
	Processes map[string]*Spread `json:"processes,omitempty"` // host and service apart
}

// Day is a day of the users, replayed.
type Day struct {
	Users       int                `json:"users"`
	Saves       int64              `json:"saves"`                      // of one day
	Connections int64              `json:"connections"`                // of one day
	Seconds     *Spread            `json:"replayed_s"`                 // that the replay took
	CPU         *Spread            `json:"cpu_s"`                      // host and service
	Written     *Spread            `json:"written_bytes,omitempty"`    // nil if a process was not measured
	Processes   map[string]*Spread `json:"process_bytes,omitempty"`    // written
	Grown       *Spread            `json:"database_grown_bytes"`       // by saves that change records
	LogGrown    *Spread            `json:"log_grown_bytes"`            //
	Record      *Spread            `json:"bytes_per_record,omitempty"` // of the database
}

// SyncTimes are Syncs in milliseconds.
type SyncTimes struct {
	Count int     `json:"syncs"`
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"` // of all measurements
	Fine  bool    `json:"fine"`   // p99 of at most 3 ms
}

// disk computes the figures of a target, or nil if it has none.
func (r *Results) disk(target string) *Disk {
	parts := make(map[string]map[int][]Writes)
	logs := make(map[int]float64)
	d := &Disk{}
	for _, w := range r.Writes {
		if w.Target != target {
			continue
		}
		if parts[w.Part] == nil {
			parts[w.Part] = make(map[int][]Writes)
		}
		parts[w.Part][w.Round] = append(parts[w.Part][w.Round], w.own())
		logs[w.Round] = max(logs[w.Round], float64(w.Log))
		if !w.Settled {
			d.Unsettled++
		}
	}
	if len(parts) == 0 {
		return nil
	}
	d.Lone, d.Loaded = written(parts[PartLone]), written(parts[PartLoaded])
	d.Lone.each(parts[PartLone])
	d.Day = r.day(target, parts[PartDay])
	d.Log = ofRounds(logs)
	return d
}

// own leaves out processes that stand idle beside the target.
func (w Writes) own() Writes {
	idle := func(name string) bool { return !counts(name, w.Target) }
	w.Written, w.CPU, w.Unmeasured = maps.Clone(w.Written), maps.Clone(w.CPU), slices.DeleteFunc(slices.Clone(w.Unmeasured), idle)
	maps.DeleteFunc(w.Written, func(name string, _ int64) bool { return idle(name) })
	maps.DeleteFunc(w.CPU, func(name string, _ time.Duration) bool { return idle(name) })
	return w
}

// written is bytes for a save; each round is the sum of its records.
func written(rounds map[int][]Writes) *Written {
	if len(rounds) == 0 {
		return nil
	}
	w := &Written{Processes: make(map[string]*Spread)}
	all := make(map[int]float64)
	apart := make(map[string]map[int]float64)
	blind := false
	for round, writes := range rounds {
		var saves, total int64
		bytes := make(map[string]int64)
		for _, one := range writes {
			saves += one.Saves
			blind = blind || len(one.Unmeasured) > 0
			for name, n := range one.Written {
				bytes[name] += n
				total += n
			}
		}
		w.Saves += saves
		if saves == 0 {
			continue
		}
		all[round] = float64(total) / float64(saves)
		for name, n := range bytes {
			if apart[name] == nil {
				apart[name] = make(map[int]float64)
			}
			apart[name][round] = float64(n) / float64(saves)
		}
	}
	if !blind {
		w.All = ofRounds(all)
	}
	for name, values := range apart {
		w.Processes[name] = ofRounds(values)
	}
	return w
}

// each computes what single saves wrote; of nil there are none.
func (w *Written) each(rounds map[int][]Writes) {
	if w == nil || w.All == nil {
		return
	}
	var single []float64
	for _, writes := range rounds {
		for _, one := range writes {
			if one.Saves == 1 {
				single = append(single, float64(sum(one.Written)))
			}
		}
	}
	w.Each = spread(single)
}

// day is the figures of the replayed days.
func (r *Results) day(target string, rounds map[int][]Writes) *Day {
	if len(rounds) == 0 {
		return nil
	}
	d := &Day{Users: r.Environment.Work.Users, Processes: make(map[string]*Spread), Record: r.bytesPerRecord(target)}
	of := func(value func(Writes) float64) *Spread {
		values := make(map[int]float64)
		for round, writes := range rounds {
			for _, w := range writes {
				values[round] += value(w)
			}
		}
		return ofRounds(values)
	}
	blind, names := false, make(map[string]bool)
	for _, writes := range rounds {
		for _, w := range writes {
			d.Saves, d.Connections = w.Saves, w.Connections
			blind = blind || len(w.Unmeasured) > 0
			for name := range w.Written {
				names[name] = true
			}
		}
	}
	d.Seconds = of(func(w Writes) float64 { return w.Took.Seconds() })
	d.CPU = of(func(w Writes) float64 { return sum(w.CPU).Seconds() })
	if !blind {
		d.Written = of(func(w Writes) float64 { return float64(sum(w.Written)) })
	}
	for name := range names {
		d.Processes[name] = of(func(w Writes) float64 { return float64(w.Written[name]) })
	}
	d.Grown = of(func(w Writes) float64 { return float64(w.Grown) })
	d.LogGrown = of(func(w Writes) float64 { return float64(w.LogGrown) })
	return d
}

func sum[N ~int64](of map[string]N) (all N) {
	for _, n := range of {
		all += n
	}
	return all
}

// ofRounds is the spread of one value a round.
func ofRounds(rounds map[int]float64) *Spread {
	values := make([]float64, 0, len(rounds))
	for _, n := range sortedKeys(rounds) {
		values = append(values, rounds[n])
	}
	return spread(values)
}

// syncTimes is the slowest measurement of the disk, with the slowest sync of all, or
// nil.
func (r *Results) syncTimes() *SyncTimes {
	if len(r.Syncs) == 0 {
		return nil
	}
	slowest := slices.MaxFunc(r.Syncs, func(a, b Syncs) int { return cmp.Compare(a.Max, b.Max) }).Max
	worst := slices.MaxFunc(r.Syncs, func(a, b Syncs) int { return cmp.Compare(a.P99, b.P99) })
	ms := func(d time.Duration) float64 { return short(d.Seconds() * 1000) }
	return &SyncTimes{Count: worst.Count, P50: ms(worst.P50), P99: ms(worst.P99), Max: ms(slowest), Fine: worst.Fine()}
}

// figures are those that can be compared; of nil there are none.
func (d *Disk) figures() (all []figure) {
	if d == nil {
		return nil
	}
	for _, part := range []struct {
		name string
		of   *Written
	}{{PartLone, d.Lone}, {PartLoaded, d.Loaded}} {
		if part.of == nil {
			continue
		}
		all = append(all, figure{part.name + ": written per save", octets, part.of.All})
		if part.of.Each != nil {
			all = append(all, figure{part.name + ": written by one save (median, and the ends)", octets, part.of.Each})
		}
		for _, name := range sortedKeys(part.of.Processes) {
			all = append(all, figure{part.name + ": written per save by " + name, octets, part.of.Processes[name]})
		}
	}
	if d.Day != nil {
		all = append(all,
			figure{"day: CPU", seconds, d.Day.CPU}, figure{"day: written", octets, d.Day.Written},
			figure{"day: database grown", octets, d.Day.Grown})
	}
	return append(all, figure{"longest log", octets, d.Log})
}
