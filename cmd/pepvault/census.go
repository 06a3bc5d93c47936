package main

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"pepvault/vault"
)

// countEvery is how old the number of records may be: to count them takes a
// walk through their names.
const countEvery = time.Minute

// census counts what is stored, when somebody asks and the last count is older
// than countEvery. Writers do not wait for it.
type census struct {
	store vault.Store
	now   func() time.Time

	vaults, records *prometheus.Desc

	mu      sync.Mutex // held while it counts: who asks meanwhile gets that count
	counted time.Time
	totals  vault.Totals
}

func newCensus(store vault.Store, now func() time.Time) *census {
	return &census{
		store: store, now: now,
		vaults:  prometheus.NewDesc("pepvault_vaults", "Vaults in the store, as counted within the last minute.", nil, nil),
		records: prometheus.NewDesc("pepvault_records", "Records in the store, as counted within the last minute.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *census) Describe(to chan<- *prometheus.Desc) {
	to <- c.vaults
	to <- c.records
}

// Collect implements prometheus.Collector. While the store can't be read there
// are no such series: an old count would look like a good one.
func (c *census) Collect(to chan<- prometheus.Metric) {
	totals, err := c.count()
	if err != nil {
		return // /readyz says why
	}
	to <- prometheus.MustNewConstMetric(c.vaults, prometheus.GaugeValue, float64(totals.Vaults))
	to <- prometheus.MustNewConstMetric(c.records, prometheus.GaugeValue, float64(totals.Records))
}

func (c *census) count() (vault.Totals, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if !c.counted.IsZero() && now.Sub(c.counted) < countEvery {
		return c.totals, nil
	}
	// A collector is given no context; this bounds the wait for a free reader.
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	err := c.store.View(ctx, func(v vault.View) (err error) {
		c.totals, err = v.Totals()
		return err
	})
	if err == nil {
		c.counted = now
	}
	return c.totals, err
}
