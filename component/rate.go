package component

import (
	"time"

	"golang.org/x/time/rate"

	"pepvault/pep"
	"pepvault/vault"
)

// Rate bounds how often an account may ask, whatever it asks of whose vaults.
type Rate struct {
	PerSecond int // gets and sets, at least 1
	Burst     int // at once above that, at least 1
}

// rates holds a bucket for each account that asked lately. Only the reader
// uses it, so it needs no lock.
//
// A bucket that nothing was taken from for as long as it takes to fill is as
// good as none. So there are two generations: when the younger is that old, the
// older is dropped as a whole, with all that was not asked for since. Memory is
// bounded by the accounts that ask within two such times, and nobody has to
// sweep.
type rates struct {
	limit rate.Limit
	burst int
	fills time.Duration // until an empty bucket is full

	young, old map[vault.Account]*rate.Limiter
	began      time.Time // when young did
}

func newRates(r Rate) rates {
	fills := time.Duration(float64(r.Burst) / float64(r.PerSecond) * float64(time.Second))
	return rates{
		limit: rate.Limit(r.PerSecond), burst: r.Burst,
		fills: max(fills, time.Second), // a generation should last
		young: map[vault.Account]*rate.Limiter{},
	}
}

// allow tells whether the account may ask once more. at never goes back.
func (r *rates) allow(account vault.Account, at time.Time) bool {
	if at.Sub(r.began) >= r.fills {
		r.old, r.young, r.began = r.young, map[vault.Account]*rate.Limiter{}, at
	}
	bucket := r.young[account]
	if bucket == nil {
		if bucket = r.old[account]; bucket == nil {
			bucket = rate.NewLimiter(r.limit, r.burst)
		}
		r.young[account] = bucket
	}
	return bucket.AllowN(at, 1)
}

// tooOften is the refusal. At one request a second or more, the next one is
// allowed within a second.
func tooOften() error {
	return &pep.Refusal{Err: pep.ErrRate, Text: "this account asks too often", RetryAfter: 1}
}
