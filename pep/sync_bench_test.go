package pep_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"pepvault/pep"
	"pepvault/vault"
)

// fillNode publishes n records of about the size that devices save.
func fillNode(b *testing.B, ask func(*testing.B, pep.Op) pep.Outcome, n int) {
	b.Helper()
	op := pep.Publish{Node: "notes"}
	for i := range n {
		op.Items = append(op.Items, sealed(1, fmt.Sprint("record-", i), strings.Repeat("x", 924)))
		if len(op.Items) == 128 || i == n-1 {
			ask(b, op)
			op.Items = nil
		}
	}
}

// BenchmarkSync asks for what changed: one record, or in a full pass all, page
// by page.
func BenchmarkSync(b *testing.B) {
	for _, records := range []int{256, 10_000} {
		_, ask := benchedWith(b, func(o *pep.Options) { o.Limits.Records = 1 << 14 })
		fillNode(b, ask, records)
		before := ask(b, pep.Sync{Node: "notes", Cursor: current(b, ask)}).Answer.(pep.SyncPage).Cursor
		ask(b, pep.Publish{Node: "notes", Items: []pep.Item{sealed(1, "record-7", "changed")}})
		b.Run(fmt.Sprintf("one change of %d", records), func(b *testing.B) {
			for b.Loop() {
				page := ask(b, pep.Sync{Node: "notes", Cursor: before}).Answer.(pep.SyncPage)
				if len(page.Changes) != 1 || page.More {
					b.Fatalf("%d changes", len(page.Changes))
				}
			}
		})
		b.Run(fmt.Sprintf("full pass of %d", records), func(b *testing.B) {
			pages := 0
			for b.Loop() {
				got, cursor := 0, ""
				for more := true; more; pages++ {
					page := ask(b, pep.Sync{Node: "notes", Cursor: cursor}).Answer.(pep.SyncPage)
					got, cursor, more = got+len(page.Changes), page.Cursor, page.More
				}
				if got != records {
					b.Fatalf("%d changes", got)
				}
			}
			b.ReportMetric(float64(pages)/float64(b.N), "pages/op")
		})
	}
}

// current follows a full pass to its end.
func current(b *testing.B, ask func(*testing.B, pep.Op) pep.Outcome) (cursor string) {
	b.Helper()
	for {
		page := ask(b, pep.Sync{Node: "notes", Cursor: cursor}).Answer.(pep.SyncPage)
		if cursor = page.Cursor; !page.More {
			return cursor
		}
	}
}

// BenchmarkRotation commits a rotation of 256 records that are staged already.
// B/commit is what the process has had written meanwhile, which is the log.
func BenchmarkRotation(b *testing.B) {
	_, ask := benchedWith(b, func(o *pep.Options) { o.BatchRecords, o.Limits.StagedBytes, o.Limits.Batches = 1024, 1<<30, 2 })
	const records = 256
	fillNode(b, ask, records)
	bytes := int64(0)
	for n := range b.N {
		b.StopTimer()
		id, version := fmt.Sprint("rotation-", n), uint32(n+2)
		cursor := current(b, ask)
		ask(b, pep.BeginBatch{Node: "notes", ID: id, Cursor: cursor, RotateTo: version})
		for at := 0; at < records; at += 32 {
			op := pep.Publish{Node: "notes", Batch: &pep.BatchRef{ID: id, Cursor: cursor}}
			for i := at; i < at+32; i++ {
				op.Items = append(op.Items, pep.Item{
					ID: fmt.Sprint("record-", i), KeyVersion: version,
					Payload: vault.Payload{Form: vault.Native, Data: []byte(strings.Repeat("y", 924))},
				})
			}
			ask(b, op)
		}
		before := writtenBytes(b)
		b.StartTimer()
		ask(b, pep.CommitBatch{ID: id, Cursor: cursor})
		b.StopTimer()
		bytes += writtenBytes(b) - before
		b.StartTimer()
	}
	b.ReportMetric(float64(bytes)/float64(b.N), "B/commit")
}

// writtenBytes is what this process has had written to disk.
func writtenBytes(b *testing.B) (n int64) {
	b.Helper()
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "write_bytes: ")
	if _, err := fmt.Sscan(after, &n); err != nil {
		b.Fatal(err)
	}
	return n
}
