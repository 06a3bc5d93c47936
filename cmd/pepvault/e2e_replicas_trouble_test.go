package main_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault/device"
)

// What happens to a place beside the work of its devices.

// gone tells whether a refusal says that there is no vault or record.
func gone(r *wire.StanzaError) bool { return r != nil && r.Condition == "item-not-found" }

func (p *place) purge() {
	p.settle()
	records, _ := p.contents()
	if _, refusal := p.tries(pep.Purge{Node: "notes"}); refusal != nil && !gone(refusal) {
		p.fault("a purge is refused: %v", refusal)
	}
	p.forget(records)
}

func (p *place) deleteVault() {
	p.settle()
	p.muddled = true
	records, _ := p.contents()
	if _, refusal := p.tries(pep.Delete{Node: "notes"}); refusal != nil && !gone(refusal) {
		p.fault("a deletion is refused: %v", refusal)
	}
	p.forget(records)
	p.keys = firstKeys()          // key versions begin anew too
	for _, d := range p.devices { // whoever still held something of it gives that up with it
		p.forget(d.replica.Records())
	}
}

// backup makes a copy while everybody works.
func (p *place) backup() {
	p.copies++
	type result struct {
		said string
		code int
	}
	done := make(chan result, 1)
	go func() {
		_, said, code := p.run("backup", p.copyName(p.copies), "--config", p.config)
		done <- result{said, code}
	}()
	var made *result
	p.until("the backup", func() bool {
		p.edits(1)
		select {
		case r := <-done:
			made = &r
		default:
		}
		return false
	}, func() bool { return made != nil })
	if made.code != 0 {
		p.fault("the backup failed: %s", made.said)
	}
	p.copied = maps.Clone(p.keys)
	p.note("copy %d is made", p.copies)
}

func (p *place) copyName(n int) string { return filepath.Join(p.dir, fmt.Sprint("copy", n, ".db")) }

// restore has the operator bring the latest copy back.
func (p *place) restore() {
	p.comesBack(func(copied string) { p.must("restore", copied) })
}

// copyBack has somebody put the latest copy in the place of the store.
func (p *place) copyBack() {
	p.comesBack(func(copied string) {
		path := filepath.Join(p.dir, storeName)
		raw, err := os.ReadFile(copied)
		for _, beside := range []string{"-wal", "-shm"} {
			if gone := os.Remove(path + beside); !errors.Is(gone, os.ErrNotExist) {
				err = errors.Join(err, gone)
			}
		}
		if err = errors.Join(err, os.WriteFile(path, raw, 0o600)); err != nil {
			p.t.Fatal(err)
		}
	})
}

func (p *place) comesBack(put func(copied string)) {
	p.backup()
	p.edits(10)
	p.comeBack(put)
}

// comeBack has the latest copy come back.
func (p *place) comeBack(put func(copied string)) {
	p.end()
	p.note("copy %d comes back", p.copies)
	put(p.copyName(p.copies))
	p.keys = maps.Clone(p.copied)
	p.beginAmidWork()
	p.forgetLost()
	p.overtake()
}

// overtake has the tool write until the vault may have more revisions than
// before, and other ones. Nobody has asked for anything since.
func (p *place) overtake() {
	records, cursor := p.contents()
	if cursor == pep.NoCursor {
		return
	}
	p.forget(map[string]device.Record{"r0": records["r0"]})
	version := uint32(1)
	for _, r := range records {
		version = r.KeyVersion
	}
	key := p.keyIn(records, version)
	for range p.chance.IntN(30) {
		p.count++
		item := pep.Item{ID: "r0", KeyVersion: version, Payload: sealOf(fmt.Sprint("t", p.count), key)}
		if _, refusal := p.tries(pep.Publish{Node: "notes", Items: []pep.Item{item}}); refusal != nil {
			p.note("the tool can't write: %v", refusal) // the vault is full
			return
		}
	}
}

// rotate has one device, or two at once, seal the vault anew while everybody
// works.
func (p *place) rotate() {
	for _, n := range p.chance.Perm(len(p.devices))[:1+p.chance.IntN(2)] {
		d := p.devices[n]
		if d.session == nil {
			d.connect()
		}
		d.rotate(d.replica.KeyVersion()+1, "")
	}
	for range p.chance.IntN(20) {
		p.pump()
		p.wait()
	}
}

// rotateAndKill has the service be killed somewhere in that.
func (p *place) rotateAndKill() {
	p.killSoon()
	p.rotate()
}

// rotateAndRestore has a vault come back from before its rotation.
func (p *place) rotateAndRestore() {
	p.backup()
	p.rotate()
	p.edits(10)
	p.comeBack(func(copied string) { p.must("restore", copied) })
}
