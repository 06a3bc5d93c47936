package runner

import (
	"fmt"
	"strings"
	"sync"

	"pepvault/bench/report"
)

// maxFaults is how many faults are told of each kind; the rest are counted.
const maxFaults = 3

// faultKind is how a target broke its word.
type faultKind int

const (
	lostSave         faultKind = iota // an acknowledged one is not there
	lostNotification                  // of an acknowledged save
	repeated                          // a notification that had come already
	wrong                             // what nobody saved, or in an order that nobody made
	faultKinds
)

var faultNames = [faultKinds]string{"lost saves", "lost notifications", "repeated notifications", "wrong contents"}

// faults are what a target did wrong.
type faults struct {
	mu    sync.Mutex
	count [faultKinds]int
	first [faultKinds][]string
}

func (f *faults) add(kind faultKind, format string, args ...any) { f.addMany(kind, 1, format, args...) }

// addMany adds so many faults with one text.
func (f *faults) addMany(kind faultKind, count int, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count[kind] += count
	if len(f.first[kind]) < maxFaults {
		f.first[kind] = append(f.first[kind], fmt.Sprintf(format, args...))
	}
}

// check is what the ledger's target did, right and wrong.
func (l *ledger) check(target string) report.Check {
	saves, heard := int64(l.acknowledged()), int64(l.heard()) // books are locked before faults
	f := &l.faults
	f.mu.Lock()
	defer f.mu.Unlock()
	return report.Check{
		Target: target, Saves: saves, Notifications: heard,
		LostSaves: int64(f.count[lostSave]), LostNotifications: int64(f.count[lostNotification]),
		Repeated: int64(f.count[repeated]), Wrong: int64(f.count[wrong]),
	}
}

// text tells the faults: how many of each kind, and the first of them.
func (f *faults) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for kind, count := range f.count {
		if count > 0 {
			all = append(all, fmt.Sprintf("%d %s (%s)", count, faultNames[kind], strings.Join(f.first[kind], "; ")))
		}
	}
	return strings.Join(all, ", ")
}
