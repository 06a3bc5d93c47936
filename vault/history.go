package vault

import "slices"

// RunStart says that a run of the service committed a vault's revision First
// and those behind it, up to the next RunStart.
type RunStart struct {
	First Revision
	Run   Run
}

// Runs tell which run committed which revision of a vault, in the order of
// revisions.
type Runs []RunStart

// at returns the place of the run that committed r; -1 if none is known.
func (rs Runs) at(r Revision) int {
	place := -1
	for i, s := range rs {
		if s.First > r {
			break
		}
		place = i
	}
	return place
}

// Of returns the run that committed a revision; false if none is known.
func (rs Runs) Of(r Revision) (Run, bool) {
	i := rs.at(r)
	if i < 0 {
		return 0, false
	}
	return rs[i].Run, true
}

// Shared returns the revision up to which the history behind a cursor is
// surely that of the vault, whose revision is latest and whose runs are rs. A
// run writes to one history only, so a known one vouches for all before it. One
// that the vault does not know wrote to a copy that is gone, and nothing tells
// where that one began: then it is 0.
func (rs Runs) Shared(c Cursor, latest Revision) Revision {
	for i, s := range rs {
		if s.Run != c.Run {
			continue
		}
		end := min(c.Revision, latest)
		if i+1 < len(rs) {
			end = min(end, rs[i+1].First-1)
		}
		if end < s.First { // no run's cursor lies before its first write
			return 0
		}
		return end
	}
	return 0
}

// Forked is Shared for a cursor of an earlier epoch, of which the vault has the
// history up to known. A cursor behind that, of a run that the vault does not
// know, began behind it: a restore is known to have gone back to there.
func (rs Runs) Forked(c Cursor, known, latest Revision) Revision {
	isKnown := func(s RunStart) bool { return s.Run == c.Run }
	if c.Revision > known && !slices.ContainsFunc(rs, isKnown) {
		return known
	}
	return rs.Shared(c, latest)
}

// Judge tells whether a cursor of the vault's own epoch is good for the
// changes since: NoReset, or why not. v is the vault's state.
func (rs Runs) Judge(c Cursor, v Vault) Reset {
	run, known := rs.Of(c.Revision)
	if c.Revision > v.Revision || !known || run != c.Run {
		return ResetLost
	}
	seen := c.Revision // up to here the device has seen every removal
	if c.Pass.Reset != NoReset {
		seen = c.Pass.Start
	}
	if seen < v.Pruned {
		return ResetPruned
	}
	return NoReset
}
