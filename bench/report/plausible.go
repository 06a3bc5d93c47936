package report

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Bounds of what a file may say. They are far above anything that is measured,
// and low enough for sums over all its lines.
const (
	mostNumber   = 1 << 53 // of counts, bytes and figures
	mostDuration = time.Duration(1) << 61
	mostLatency  = 30 * 24 * time.Hour
	mostBytes    = 1 << 40 // of one operation
)

// signed are the numbers that may be below 0: databases that shrink, and a
// difference of two clocks of the kernel.
var signed = []string{"others_ns", "others_cores", "database_grown_bytes", "log_grown_bytes"}

// plausible says what is wrong with the numbers of a record, or nil. The error
// names the field, as it stands in the file.
func plausible(record any) error {
	if o, ok := record.(Operation); ok {
		return o.plausible()
	}
	if err := numbers("", reflect.ValueOf(record)); err != nil {
		return err
	}
	switch r := record.(type) {
	case Phase:
		return ordered("from_ns", r.From, "to_ns", r.To)
	case Machine:
		return cmp.Or(ordered("sync_p50_ns", r.SyncP50, "sync_p99_ns", r.SyncP99), ordered("sync_p99_ns", r.SyncP99, "sync_max_ns", r.SyncMax))
	case Syncs:
		return cmp.Or(ordered("p50_ns", r.P50, "p99_ns", r.P99), ordered("p99_ns", r.P99, "max_ns", r.Max))
	case CapacityStep:
		return ordered("from_ns", r.From, "to_ns", r.To)
	case Capacity:
		return ordered("plan_people", r.Plan, "people", r.People)
	}
	return nil
}

// plausible is apart from the others as there are so many operations.
func (o Operation) plausible() error {
	for _, field := range []struct {
		name  string
		value int64
		most  int64
	}{
		{"round", int64(o.Round), mostNumber}, {"planned_ns", int64(o.Planned), int64(mostDuration)}, {"latency_ns", int64(o.Latency), int64(mostLatency)},
		{"service_ns", int64(o.Service), int64(mostLatency)}, {"bytes", o.Bytes, mostBytes},
	} {
		if field.value < 0 || field.value > field.most {
			return fmt.Errorf("%s is %d", field.name, field.value)
		}
	}
	return nil
}

func ordered[N cmp.Ordered](lowName string, low N, highName string, high N) error {
	if low > high {
		return fmt.Errorf("%s is %v, and %s is %v", lowName, low, highName, high)
	}
	return nil
}

// numbers looks at all numbers of a value, whose field has that name.
func numbers(name string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		most := int64(mostNumber)
		if v.Type() == reflect.TypeFor[time.Duration]() {
			most = int64(mostDuration)
		}
		if n := v.Int(); n > most || n < -most || n < 0 && !slices.Contains(signed, name) {
			return fmt.Errorf("%s is %d", name, n)
		}
	case reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.Abs(f) > mostNumber || f < 0 && !slices.Contains(signed, name) {
			return fmt.Errorf("%s is %g", name, f)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return numbers(name, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := numbers(name, v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			inner := name
			if slices.Contains(signed, entries.Key().String()) {
				inner = entries.Key().String()
			}
			if err := numbers(inner, entries.Value()); err != nil {
				return err
			}
		}
	case reflect.Struct:
		return inside(name, v)
	}
	return nil
}

// inside looks at the fields of a struct. Times have none that count.
func inside(name string, v reflect.Value) error {
	if v.Type() == reflect.TypeFor[time.Time]() {
		return nil
	}
	for i := range v.NumField() {
		inner, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if err := numbers(cmp.Or(inner, name), v.Field(i)); err != nil {
			return err
		}
	}
	return nil
}

// consistent says in what a verdict and what was recorded before it contradict
// each other, or nil.
func (r *Results) consistent(v Verdict) error {
	switch {
	case v.Workload != r.Environment.Work.Name:
		return fmt.Errorf("the verdict is of %q, the file of %q", v.Workload, r.Environment.Work.Name)
	case len(v.Checks) > 0 && !slices.Equal(v.Checks, r.Checks): // older files repeat none
		return errors.New("the verdict's checks are not those that were recorded")
	case len(v.Gates) > 0 && !slices.Equal(v.Gates, r.Gates):
		return errors.New("the verdict's gates are not those that were recorded")
	case v.OK && v.Reason != "":
		return errors.New("the verdict is good, and has a reason why not")
	}
	for _, c := range r.Checks {
		if v.OK && !c.Clean() {
			return fmt.Errorf("the verdict is good, and the check of %q is not", c.Target)
		}
	}
	for _, g := range r.Gates {
		if v.OK && !g.OK || g.OK && g.Unmeasured == "" && g.Value > g.Most {
			return fmt.Errorf("the bound %q is missed, and said to be kept", g.Name)
		}
	}
	return nil
}
