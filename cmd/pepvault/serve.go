package main

import (
	"context"
	"errors"
	"os/signal"
	"sync"
	"syscall"
)

type serveCmd struct {
	configFlag
}

// Run serves until SIGTERM or SIGINT, through every loss of the host.
func (c *serveCmd) Run(ctx context.Context, p *process) (err error) {
	config, err := c.load(p)
	if err != nil {
		return err
	}
	ctx, release := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer release()
	log := newLogger(p.stderr, config.Log)
	systemd := notifier{log: log}
	s, err := newService(ctx, config, log, func(attached bool) {
		if attached {
			systemd.Ready()
			systemd.Status("attached to " + config.Component.Server)
		} else {
			systemd.Status("not attached")
		}
	})
	if err != nil {
		return err
	}
	health := healthHandler(check{"link", s.attached}, check{"store", s.store.Health})
	health.Handle("GET /metrics", s.metrics.handler(log))
	pages, err := startHTTP(config.HTTP.Listen, health, log)
	if err != nil {
		return errors.Join(err, s.store.Close())
	}
	if config.HTTP.Listen != "" {
		log.Info("serving HTTP", "address", pages.Addr().String())
	}
	systemd.Status("waiting for " + config.Component.Server)
	context.AfterFunc(ctx, systemd.Stopping)
	var watching sync.WaitGroup
	watching.Go(func() { systemd.Watchdog(ctx, s.alive) })
	defer watching.Wait()

	err = s.run(ctx)
	// By now nobody is told anything useful, so requests under way may be cut.
	cut, cancel := context.WithCancel(context.WithoutCancel(ctx))
	cancel()
	if stopped := pages.Stop(cut); stopped != nil && !errors.Is(stopped, context.Canceled) {
		err = errors.Join(err, stopped)
	}
	return err
}
