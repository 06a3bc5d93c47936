package runner_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pepvault/bench/fleet"
	"pepvault/bench/report"
	"pepvault/bench/runner"
	"pepvault/bench/workload"
	"pepvault/component/loopback"
)

func lostSaves(c report.Check) int64         { return c.LostSaves }
func lostNotifications(c report.Check) int64 { return c.LostNotifications }
func repeated(c report.Check) int64          { return c.Repeated }
func wrong(c report.Check) int64             { return c.Wrong }

// TestFaultsAreCaught puts a liar between the service and its devices: a run
// on it fails, says why, and has no figures.
func TestFaultsAreCaught(t *testing.T) {
	t.Parallel()
	work := small(runner.Mix)
	shape := runner.ShapeOf(work)
	sealed := func(c workload.Content) []byte {
		return base64.StdEncoding.AppendEncode(nil, shape.AppendRecord(nil, c))
	}
	var last workload.Op // the last save: nothing comes over it
	for _, op := range (workload.Plan{Shape: shape, Mix: workload.StandardMix, Part: 1}).Open(work.Rate, work.WarmUp+work.Duration) {
		if op.Kind == workload.Save {
			last = op
		}
	}
	tests := map[string]fault{
		"lost event":    {losing(7), event, "were not told of version", lostNotifications},
		"doubled event": {doubling(7), event, "was told twice of", repeated},
		"event of something else": {func(s loopback.Stanza, nth int64) []loopback.Stanza {
			if nth == 7 {
				return rewrite(s, []byte("</record>"), []byte("AAAA</record>"))
			}
			return []loopback.Stanza{s}
		}, event, "was told something else", wrong},
		"swapped record": {func(s loopback.Stanza, _ int64) []loopback.Stanza {
			return rewrite(s, sealed(workload.Content{User: 1, Record: 2}), sealed(workload.Content{User: 1, Record: 3}))
		}, result, "under the id", wrong},
		"record of somebody else": {func(s loopback.Stanza, _ int64) []loopback.Stanza {
			return rewrite(s, sealed(workload.Content{User: 1, Record: 2}), sealed(workload.Content{User: 0, Record: 2}))
		}, result, "under the id", wrong},
		"damaged record": {func(s loopback.Stanza, _ int64) []loopback.Stanza {
			good := sealed(workload.Content{User: 1, Record: 2})
			bad := bytes.Clone(good)
			bad[600] ^= 1 // another letter
			return rewrite(s, good, bad)
		}, result, "changed on its way", wrong},
		"lost record": {func(s loopback.Stanza, _ int64) []loopback.Stanza {
			from, to := []byte("<item id='"+shape.RecordID(2)), []byte("</item>")
			i := bytes.Index(s.Raw, from)
			if i < 0 || bytes.Count(s.Raw, to) == 1 {
				return []loopback.Stanza{s}
			}
			end := i + bytes.Index(s.Raw[i:], to) + len(to)
			return rewrite(s, s.Raw[i:end], nil)
		}, result, "is missing", lostSaves},
		"lost write": {func(s loopback.Stanza, _ int64) []loopback.Stanza {
			return rewrite(s, sealed(workload.Content{User: last.User, Record: last.Record, Version: last.Version}),
				sealed(workload.Content{User: last.User, Record: last.Record}))
		}, result, "was acknowledged since", lostSaves},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			catch(t, work, test)
		})
	}
}

// TestFaultsOfAStormAreCaught is the same for devices that come back: what they
// load, what they are told of afterwards, and what the probe reads.
func TestFaultsOfAStormAreCaught(t *testing.T) {
	t.Parallel()
	work := small(runner.Storm)
	shape := runner.ShapeOf(work)
	probes := work
	probes.WarmUp = time.Second // twenty reads of the probe
	tests := map[string]struct {
		work report.Workload
		fault
	}{
		"lost event":    {work, fault{losing(7), event, "were not told of version", lostNotifications}},
		"doubled event": {work, fault{doubling(7), event, "was told twice of", repeated}},
		"damaged record": {work, fault{func(s loopback.Stanza, nth int64) []loopback.Stanza {
			if nth > 1 {
				return []loopback.Stanza{s}
			}
			s.Raw = bytes.Clone(s.Raw)
			letter := &s.Raw[bytes.Index(s.Raw, []byte("</record>"))-300]
			*letter = map[bool]byte{true: 'B', false: 'A'}[*letter == 'A']
			return []loopback.Stanza{s}
		}, readBy("u2"), "changed on its way", wrong}},
		"record of the past": {probes, fault{func(s loopback.Stanza, nth int64) []loopback.Stanza {
			if nth > 1 {
				return []loopback.Stanza{s}
			}
			id := []byte("<item id='" + shape.RecordID(0) + "'")
			return rewrite(s, id, bytes.Replace(id, []byte("000'"), []byte("001'"), 1))
		}, readBy("u4"), "under the id", wrong}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			catch(t, test.work, test.fault)
		})
	}
}

// fault is what a liar between the service and its devices does.
type fault struct {
	lie  func(s loopback.Stanza, nth int64) []loopback.Stanza // nth stanza that it is asked about
	when func(loopback.Stanza) bool
	want string
	kind func(report.Check) int64
}

// losing loses the nth stanza, doubling has it come twice.
func losing(nth int64) func(loopback.Stanza, int64) []loopback.Stanza {
	return func(s loopback.Stanza, n int64) []loopback.Stanza {
		if n == nth {
			return nil
		}
		return []loopback.Stanza{s}
	}
}

func doubling(nth int64) func(loopback.Stanza, int64) []loopback.Stanza {
	return func(s loopback.Stanza, n int64) []loopback.Stanza {
		if n == nth {
			return []loopback.Stanza{s, s}
		}
		return []loopback.Stanza{s}
	}
}

// event says whether a stanza tells of a save, result whether it brings
// records, readBy whether it brings them to that user.
func event(s loopback.Stanza) bool {
	return s.Name == "message" && bytes.Contains(s.Raw, []byte("#event"))
}

func result(s loopback.Stanza) bool {
	return s.Name == "iq" && s.Type == "result" && bytes.Contains(s.Raw, []byte("</record>"))
}

func readBy(user string) func(loopback.Stanza) bool {
	return func(s loopback.Stanza) bool { return result(s) && strings.HasPrefix(s.To, user+"@") }
}

func rewrite(s loopback.Stanza, old, with []byte) []loopback.Stanza {
	s.Raw = bytes.ReplaceAll(s.Raw, old, with)
	return []loopback.Stanza{s}
}

// catch has a run fail by a fault, say why, count it, and give no figures.
func catch(t *testing.T, work report.Workload, f fault) {
	t.Helper()
	host := embedded(t)
	var count atomic.Int64
	host.SetIntercept(func(dir loopback.Direction, s loopback.Stanza) []loopback.Stanza {
		if dir != loopback.FromComponent || !f.when(s) {
			return []loopback.Stanza{s}
		}
		return f.lie(s, count.Add(1))
	})
	verdict, err := play(t, host, work)
	if !errors.Is(err, runner.ErrFailed) || !strings.Contains(err.Error(), f.want) {
		t.Errorf("got %v, want %q", err, f.want)
	} else if strings.Contains(err.Error(), "and then") {
		t.Errorf("the fault ended the run before it was verified: %v", err)
	}
	if verdict.OK || verdict.Outcome != nil || verdict.Reason == "" {
		t.Errorf("the verdict is %s", verdict.Line())
	}
	if len(verdict.Checks) != 1 || f.kind(verdict.Checks[0]) == 0 || verdict.Checks[0].Saves == 0 {
		t.Errorf("the verdict counts %+v", verdict.Checks)
	}
}

// TestLostAnswersAreErrors holds that a save without an answer is an error, and
// no fault: it may have been made or not.
func TestLostAnswersAreErrors(t *testing.T) {
	t.Parallel()
	host := embedded(t)
	var count atomic.Int64
	host.SetIntercept(func(dir loopback.Direction, s loopback.Stanza) []loopback.Stanza {
		answer := dir == loopback.FromComponent && s.Name == "iq" && bytes.Contains(s.Raw, []byte("<publish"))
		if answer && count.Add(1)%10 == 0 {
			return nil
		}
		return []loopback.Stanza{s}
	})
	verdict, err := playFor(t, fleet.Embedded{Host: host}, small(runner.Mix), 3*time.Second, fleet.Target{Name: "component", JID: host.Component()})
	if err != nil {
		t.Fatal(err)
	}
	if verdict.Errors == 0 || verdict.Kinds[report.Save].Count == 0 {
		t.Errorf("%d errors beside %d saves", verdict.Errors, verdict.Kinds[report.Save].Count)
	}
}

// TestStuckDeviceEndsAStorm: where one device never gets its vault, the run ends
// when it has waited long enough, and says so.
func TestStuckDeviceEndsAStorm(t *testing.T) {
	t.Parallel()
	host := embedded(t)
	var count atomic.Int64
	host.SetIntercept(func(dir loopback.Direction, s loopback.Stanza) []loopback.Stanza {
		vault := dir == loopback.FromComponent && bytes.Count(s.Raw, []byte("<record ")) > 1
		if vault && strings.HasPrefix(s.To, "u2@") {
			count.Add(1)
			return nil
		}
		return []loopback.Stanza{s}
	})
	began := time.Now()
	_, err := playFor(t, fleet.Embedded{Host: host}, small(runner.Storm), 3*time.Second, fleet.Target{Name: "component", JID: host.Component()})
	if err == nil || !strings.Contains(err.Error(), "not every device was ready within 3s") || count.Load() == 0 {
		t.Errorf("%d answers were lost, and the run ended with: %v", count.Load(), err)
	}
	if took := time.Since(began); took > 5*time.Minute {
		t.Errorf("it took %s, with a limit of three seconds", took)
	}
}
