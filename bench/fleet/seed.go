package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pepvault/pep/wire"
)

// seedRecords is how many records one request of a seeding brings to a
// component: well below what a client may send. PEP takes one at a time.
const seedRecords = 64

// fillTries is how often a part of a vault is sent at most.
const fillTries = 5

// setUpTimeout is how long one request may take that makes, fills or deletes a
// vault. That it is slow does not count, but an answer that got lost is not waited
// for.
const setUpTimeout = 2 * time.Minute

// answered bounds a request by setUpTimeout, whose end is an error of its own.
func answered(ctx context.Context, request func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, setUpTimeout)
	defer cancel()
	err := request(bounded)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("no answer within %s while the vaults are set up: %w", setUpTimeout, context.DeadlineExceeded)
	}
	return err
}

// Fill stores the first version of every record of the device's user, with at
// most width requests under way. An answer that does not come within two minutes
// is an error that is context.DeadlineExceeded.
func (d *Device) Fill(ctx context.Context, target, width int) error {
	per := 1
	if t := d.fleet.options.Targets[target]; !t.PEP() {
		per = max(1, min(seedRecords, 150_000/(2*d.fleet.options.Shape.Bytes)))
	}
	var parts [][]int
	for record := range d.fleet.options.Shape.Records {
		if record%per == 0 {
			parts = append(parts, nil)
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], record)
	}
	return each(ctx, width, parts, func(ctx context.Context, records []int) error {
		return d.fillWith(ctx, target, records)
	})
}

// fillWith stores some records. A server that asks to wait is asked again: that
// it is slow to fill does not count.
func (d *Device) fillWith(ctx context.Context, target int, records []int) error {
	for try := 1; ; try++ {
		err := answered(ctx, func(ctx context.Context) error {
			_, err := d.publish(ctx, target, records, 0)
			return err
		})
		var refusal *wire.StanzaError
		if err == nil || try == fillTries || !errors.As(err, &refusal) || refusal.Type != "wait" {
			return err
		}
		select {
		case <-time.After(time.Duration(try) * 200 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
