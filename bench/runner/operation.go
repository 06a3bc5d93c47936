package runner

import (
	"context"
	"errors"
	"time"

	"pepvault/bench/fleet"
	"pepvault/bench/report"
	"pepvault/bench/workload"
	"pepvault/pep/wire"
)

// kinds are the names of operations in a results file.
var kinds = map[workload.Kind]report.Kind{
	workload.Read: report.Read, workload.Save: report.Save, workload.Download: report.Download,
}

// do carries out one operation, judges what it brought, and records it.
func (r *run) do(ctx context.Context, op workload.Op, m moment) {
	d := r.device(op)
	ctx, cancel := context.WithDeadline(ctx, m.planned.Add(r.Timeout))
	defer cancel()
	sent := time.Now()
	var answer fleet.Answer
	var err error
	switch op.Kind {
	case workload.Save:
		answer, err = r.save(ctx, d, op, m)
	case workload.Download:
		answer, err = r.download(ctx, d, m.target, r.way)
	default:
		answer, err = r.read(ctx, d, m.target, op.Record)
	}
	r.record(kinds[op.Kind], m, sent, answer, err)
}

// record adds a sample.
func (r *run) record(kind report.Kind, m moment, sent time.Time, answer fleet.Answer, err error) {
	at := answer.At
	if at.IsZero() {
		at = time.Now()
	}
	r.Recorder.Operation(report.Operation{
		Target: r.Targets[m.target].Name, Round: m.round, Phase: m.phase, Kind: kind,
		Planned: r.Recorder.At(m.planned), Latency: at.Sub(m.planned), Service: at.Sub(sent),
		Result: class(err), Bytes: int64(answer.Records) * int64(r.shape.Bytes),
	})
}

func (r *run) save(ctx context.Context, d *fleet.Device, op workload.Op, m moment) (fleet.Answer, error) {
	l := r.ledgers[m.target]
	online := r.everyone()
	if r.Work.Name == Capacity { // a person waits for the other devices
		online &^= 1 << op.Device
	}
	s := l.send(op.User, op.Record, op.Version, online, m)
	answer, err := d.Save(ctx, m.target, op.Record, op.Version)
	l.answer(op.User, s, outcomeOf(err))
	return answer, err
}

func (r *run) read(ctx context.Context, d *fleet.Device, target, record int) (fleet.Answer, error) {
	l := r.ledgers[target]
	sent := l.now()
	version, answer, err := d.Read(ctx, target, record)
	return answer, r.judged(target, err, func() bool { return l.read(d.User, record, version, sent, l.now()) })
}

func (r *run) download(ctx context.Context, d *fleet.Device, target int, way fleet.Way) (fleet.Answer, error) {
	l := r.ledgers[target]
	sent := l.now()
	versions, answer, err := d.Download(ctx, target, way)
	return answer, r.judged(target, err, func() bool { return l.vault(d.User, versions, sent, l.now()) })
}

// judged has an answer judged; what is wrong with it is noted, and an error.
func (r *run) judged(target int, err error, judge func() bool) error {
	switch {
	case errors.Is(err, fleet.ErrWrong):
		r.ledgers[target].faults.add(wrong, "%v", err)
	case err == nil && !r.Targets[target].Echo && !judge():
		return fleet.ErrWrong
	}
	return err
}

// hear takes in a notification.
func (r *run) hear(h fleet.Heard) {
	now := time.Now()
	if m, expected := r.ledgers[h.Target].hear(h); expected {
		r.record(report.Notify, m, m.planned, fleet.Answer{At: now, Records: 1}, nil)
	}
}

// outcomeOf tells what became of a save. Only an error that says that it was
// refused counts as that: with any other it may have been made.
func outcomeOf(err error) outcome {
	var refusal *wire.StanzaError
	if err == nil {
		return acknowledged
	}
	if !errors.As(err, &refusal) {
		return pending
	}
	switch refusal.Condition {
	case "resource-constraint", "policy-violation", "conflict", "not-acceptable", "bad-request",
		"forbidden", "not-allowed", "item-not-found", "not-authorized":
		return refused
	}
	return pending
}

// class names the result of an operation in a few words.
func class(err error) string {
	var refusal *wire.StanzaError
	switch {
	case err == nil:
		return report.OK
	case errors.Is(err, fleet.ErrWrong):
		return report.Wrong
	case errors.As(err, &refusal):
		return refusal.Type + "/" + refusal.Condition
	case errors.Is(err, context.DeadlineExceeded):
		return report.Timeout
	case errors.Is(err, context.Canceled):
		return report.Cancelled
	}
	return report.Lost
}
