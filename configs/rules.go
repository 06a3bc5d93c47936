package configs

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// envelopeBytes is room in a stanza for what stands around the payload of
	// one record: its names at their longest and worst escaping (16 KiB,
	// vault.Record.Cost), the addresses and the id of the stanza (24 KiB).
	envelopeBytes = 40960
	// mostStanzaBytes is what hosts take, less room for what they add.
	mostStanzaBytes = 524288 - 4096
	// escaping is how much longer text becomes where each character is
	// written as an entity (&apos;).
	escaping = 6
)

func base64Len(n int) int { return (n + 2) / 3 * 4 }

// rule ties a key to others. It is looked at only if all their values are
// good.
type rule struct {
	key, other string
	// check returns what is wrong and what is allowed, or "".
	check func(c *Config) string
}

func rules() []rule {
	return []rule{
		{"access.admins", "access.domains", func(c *Config) string {
			for _, admin := range c.Access.Admins {
				_, domain, _ := strings.Cut(admin, "@")
				if !slices.Contains(c.Access.Domains, domain) {
					return fmt.Sprintf("names %q, which is of no domain of access.domains and so would not be heard; allowed: %s", admin, strings.Join(c.Access.Domains, ", "))
				}
			}
			return ""
		}},
		{"limits.max_batch_records", "limits.max_records", func(c *Config) string {
			return atLeast(c.Limits.MaxBatchRecords, c.Limits.MaxRecords,
				"is below limits.max_records, so a key rotation could not replace every record")
		}},
		{"limits.max_account_bytes", "limits.max_record_bytes", func(c *Config) string {
			return atLeast(c.Limits.MaxAccountBytes, int64(c.Limits.MaxRecordBytes), "can't hold one record of limits.max_record_bytes")
		}},
		{"limits.max_staged_bytes", "limits.max_record_bytes", func(c *Config) string {
			return atLeast(c.Limits.MaxStagedBytes, int64(c.Limits.MaxRecordBytes), "can't hold one record of limits.max_record_bytes")
		}},
		{"limits.max_inbound_bytes", "limits.max_record_bytes", func(c *Config) string {
			return atLeast(c.Limits.MaxInboundBytes, escaping*c.Limits.MaxRecordBytes+envelopeBytes,
				fmt.Sprintf("can't let in one record of limits.max_record_bytes, which can arrive %d times as large by escaping, with %d bytes around it", escaping, envelopeBytes))
		}},
		{"stream.max_stanza_bytes", "limits.max_record_bytes", func(c *Config) string {
			return atLeast(c.Stream.MaxStanzaBytes, base64Len(c.Limits.MaxRecordBytes)+envelopeBytes,
				fmt.Sprintf("can't hold one record of limits.max_record_bytes, which takes %d bytes in base64, with %d bytes around it", base64Len(c.Limits.MaxRecordBytes), envelopeBytes))
		}},
		{"stream.chunk_bytes", "stream.max_stanza_bytes", func(c *Config) string {
			if c.Stream.ChunkBytes <= c.Stream.MaxStanzaBytes {
				return ""
			}
			return fmt.Sprintf("%d is above stream.max_stanza_bytes; allowed: at most %d", c.Stream.ChunkBytes, c.Stream.MaxStanzaBytes)
		}},
	}
}

func atLeast[T wholeNumber](n, least T, what string) string {
	if n >= least {
		return ""
	}
	return fmt.Sprintf("%d %s; allowed: at least %d", n, what, least)
}

// applyRules reports each broken rule at its key, or where that one is at its
// default, at the other.
func (d *document) applyRules() {
	for _, r := range rules() {
		if d.bad[r.key] || d.bad[r.other] {
			continue
		}
		if problem := r.check(d.config); problem != "" {
			line := d.lines[r.key]
			if line == 0 {
				line = d.lines[r.other]
			}
			d.fault(line, r.key, problem)
		}
	}
}
