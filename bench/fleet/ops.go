package fleet

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"pepvault/bench/workload"
	"pepvault/pep"
	"pepvault/vault"
)

// pageRecords is how many records a page of a paged download asks for: about
// 32 KB.
const pageRecords = 24

// Way is how a whole vault is loaded.
type Way string

const (
	Plain  Way = "plain"  // one request for all
	Paged  Way = "paged"  // page by page (XEP-0059)
	Pushed Way = "pushed" // in chunks that the service pushes
	Sync   Way = "sync"   // what is new since the device's cursor
)

// Absent stands for a record that a device does not have.
const Absent = ^uint32(0)

// Answer is what an operation brought.
type Answer struct {
	At      time.Time // when its last byte was there, before anything was judged
	Records int       // that it brought or took
}

// Save stores a content of the device's user.
func (d *Device) Save(ctx context.Context, target, record int, version uint32) (Answer, error) {
	return d.publish(ctx, target, []int{record}, version)
}

// publish stores several records in one request.
func (d *Device) publish(ctx context.Context, target int, records []int, version uint32) (Answer, error) {
	shape := d.fleet.options.Shape
	op := pep.Publish{Node: Node}
	for _, record := range records {
		data := shape.AppendRecord(nil, workload.Content{User: d.User, Record: record, Version: version})
		op.Items = append(op.Items, pep.Item{
			ID: shape.RecordID(record), KeyVersion: 1, Payload: vault.Payload{Form: vault.Native, Data: data},
		})
	}
	_, err := d.ask(ctx, target, op)
	return Answer{At: time.Now(), Records: len(records)}, err
}

// Read loads one record and tells its version.
func (d *Device) Read(ctx context.Context, target, record int) (uint32, Answer, error) {
	raw, err := d.ask(ctx, target, pep.Items{Node: Node, IDs: []string{d.fleet.options.Shape.RecordID(record)}})
	answer := Answer{At: time.Now(), Records: 1}
	if err != nil || d.fleet.options.Targets[target].Echo {
		return Absent, answer, err
	}
	version := Absent
	err = eachItem(raw, func(id string, ciphertext []byte) error {
		c, err := d.judge(id, ciphertext)
		if err == nil && (c.Record != record || version != Absent) {
			err = fmt.Errorf("%w: record %d instead of %d", ErrWrong, c.Record, record)
		}
		version = c.Version
		return err
	})
	return version, answer, err
}

// Download loads the whole vault and tells the version of each record. PEP
// knows neither cursors nor chunks: there it is plain then.
func (d *Device) Download(ctx context.Context, target int, way Way) ([]uint32, Answer, error) {
	var raws [][]byte
	var err error
	own := d.fleet.options.Targets[target].PEP()
	switch {
	case way == Sync && !own:
		return d.sync(ctx, target)
	case way == Pushed && !own:
		return d.download(ctx, target)
	case way == Paged:
		raws, err = d.pages(ctx, target, pageRecords)
	default:
		raws, err = d.pages(ctx, target, 0)
	}
	answer := Answer{At: time.Now()}
	if err != nil {
		return nil, answer, err
	}
	versions := absent(d.fleet.options.Shape.Records)
	for _, raw := range raws {
		// A record that is saved anew moves to a later page.
		n, err := d.takeItems(target, raw, versions, len(raws) > 1)
		answer.Records += n
		if err != nil {
			return nil, answer, err
		}
	}
	return versions, answer, nil
}

func absent(records int) []uint32 {
	versions := make([]uint32, records)
	for i := range versions {
		versions[i] = Absent
	}
	return versions
}

// pages asks for all records, in pages if size is not 0 or the service wants it.
func (d *Device) pages(ctx context.Context, target, size int) (raws [][]byte, err error) {
	op := pep.Items{Node: Node}
	if size > 0 {
		op.Page = &pep.PageRequest{Max: size}
	}
	for {
		raw, err := d.ask(ctx, target, op)
		if err != nil {
			return raws, err
		}
		raws = append(raws, raw)
		tail := raw[max(0, bytes.LastIndex(raw, []byte("<set "))):]
		last := elementText(tail, "last")
		if last == "" || !bytes.HasPrefix(tail, []byte("<set ")) {
			return raws, nil
		}
		if op.Page == nil {
			op.Page = &pep.PageRequest{Max: -1}
		}
		op.Page.After = last
	}
}

// takeItems judges the records of an answer, notes their versions and counts
// them. again says that one may be there already.
func (d *Device) takeItems(target int, raw []byte, versions []uint32, again bool) (count int, err error) {
	if d.fleet.options.Targets[target].Echo {
		return bytes.Count(raw, []byte("</item>")), nil
	}
	err = eachItem(raw, func(id string, ciphertext []byte) error {
		c, err := d.judge(id, ciphertext)
		if err != nil {
			return err
		}
		if !again && versions[c.Record] != Absent {
			return fmt.Errorf("%w: record %d came twice", ErrWrong, c.Record)
		}
		count++
		versions[c.Record] = c.Version
		return nil
	})
	return count, err
}
