package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"pepvault/component"
	"pepvault/component/lane"
	"pepvault/component/link"
	"pepvault/configs"
	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/store"
	"pepvault/vault"
)

const (
	// drainTimeout bounds the end: first the requests that were taken, then
	// what waits to be written.
	drainTimeout = 10 * time.Second
	// stanzaFrame is what an answer holds beside its records: the addresses
	// and the id of the request, escaped.
	stanzaFrame = 24 << 10
	// inlineBytes is the size up to which an answer counts as small: it is
	// read at once and leaves before all bulk.
	inlineBytes = 8 << 10
)

// service is everything between the configuration and the host.
type service struct {
	config configs.Config
	log    *slog.Logger
	store  vault.Store
	engine *pep.Engine
	writer *lane.Writer
	front  *component.Service
	link   *link.Link

	metrics *metrics
}

// newService opens the store and puts the parts together. Nothing is
// connected yet; run closes the store. told hears of each change of the link.
func newService(ctx context.Context, config configs.Config, log *slog.Logger, told func(attached bool)) (*service, error) {
	s := &service{config: config, log: log, metrics: newMetrics()}
	var err error
	s.store, err = store.Open(ctx, store.Options{
		Driver: config.Store.Driver, Path: config.Store.Path, Logger: log, Committed: s.metrics.Committed,
	})
	if err != nil {
		return nil, err
	}
	s.engine = pep.New(s.engineOptions())
	if err := s.engine.Remember(ctx); err != nil {
		return nil, errors.Join(err, s.store.Close())
	}
	s.writer = lane.New(lane.Options{
		QueueBytes:     config.Stream.QueueBytes,
		Confirm:        func(done func(error)) []byte { return s.link.Ping(0, done) },
		HostWindow:     config.Stream.HostWindowBytes,
		ConfirmTimeout: config.Stream.ConfirmTimeout,
		Heard:          func() time.Time { return s.link.Heard() },
		Logger:         log,
	})
	s.front = component.New(s.frontOptions())
	s.link, err = link.New(s.linkOptions(), watched{s.front, told})
	if err != nil {
		return nil, errors.Join(err, s.store.Close())
	}
	s.metrics.watch(s)
	return s, nil
}

// engineOptions need the store.
func (s *service) engineOptions() pep.Options {
	config, limits := s.config, s.config.Limits
	return pep.Options{
		Store: s.store,
		Limits: vault.Limits{
			Records:          limits.MaxRecords,
			RecordBytes:      limits.MaxRecordBytes,
			Vaults:           limits.MaxVaults,
			AccountBytes:     limits.MaxAccountBytes,
			TombstonesFactor: limits.TombstonesFactor,
			Subscriptions:    limits.MaxSubscriptions,
			Affiliations:     limits.MaxAffiliations,
			Resources:        limits.MaxResources,
			Capabilities:     limits.CapsCache,
			ForeignPayloads:  limits.ForeignPayloads,
			Batches:          limits.MaxBatches,
			StagedBytes:      limits.MaxStagedBytes,
			BatchExpiry:      limits.BatchExpiry,
			MassDeleteShare:  limits.MassDeleteShare,
			MassDeleteMin:    limits.MassDeleteMin,
		},
		Domains:      config.Access.Domains,
		AnswerBytes:  config.Stream.MaxStanzaBytes - stanzaFrame,
		InlineBytes:  inlineBytes,
		StanzaBytes:  config.Stream.MaxStanzaBytes,
		ChunkBytes:   config.Stream.ChunkBytes,
		Window:       config.Stream.DeviceWindow,
		BatchRecords: limits.MaxBatchRecords,
	}
}

// frontOptions need the engine and the writer. The link comes later.
func (s *service) frontOptions() component.Options {
	config, limits := s.config, s.config.Limits
	return component.Options{
		JID:        config.Component.JID,
		Domains:    config.Access.Domains,
		Name:       config.Component.Name,
		Contact:    config.Component.Contact,
		Admins:     admins(config.Access.Admins),
		Version:    version(),
		Engine:     s.engine,
		Writer:     s.writer,
		Wire:       wire.Limits{RecordBytes: limits.MaxRecordBytes, Foreign: limits.ForeignPayloads},
		MaxStanza:  config.Stream.MaxStanzaBytes,
		MaxPending: limits.MaxPendingRequests,
		Rate:       component.Rate{PerSecond: limits.RatePerSecond, Burst: limits.RateBurst},
		Request: func(ctx context.Context, kind, to string, payload []byte, within time.Duration) (link.Stanza, error) {
			return s.link.Request(ctx, kind, to, payload, within)
		},
		Expect: func(to string, within time.Duration, done func(link.Stanza, error)) (string, func()) {
			return s.link.Expect(to, within, done)
		},
		Ping: func(within time.Duration, done func(error)) []byte { return s.link.Ping(within, done) },
		Downloads: component.Downloads{
			OfAccount: limits.MaxDownloads,
			// Each has two places at most: so others have half of them left.
			Overall:    config.Stream.QueueBytes / (4 * lane.SmallAnswer),
			AckTimeout: config.Stream.AckTimeout,
		},
		VerifyTimeout: config.Stream.VerifyTimeout,
		Logger:        s.log,
		Meter:         s.metrics,
	}
}

func admins(jids []string) []vault.Account {
	accounts := make([]vault.Account, len(jids))
	for i, jid := range jids {
		accounts[i] = vault.Account(jid)
	}
	return accounts
}

func (s *service) linkOptions() link.Options {
	o := link.Options{
		Server:    s.config.Component.Server,
		JID:       s.config.Component.JID,
		Secret:    link.Secret(s.config.Component.Secret.Reveal()),
		PingTo:    s.config.Stream.ConfirmJID,
		KeepAlive: link.KeepAlive{Answer: s.config.Stream.ConfirmTimeout},
		Serve:     s.writer.Serve,
		Send:      s.writer.Small,
		Logger:    s.log,
		Limits:    link.Limits{Bytes: s.config.Limits.MaxInboundBytes, Depth: s.config.Limits.MaxInboundDepth},
	}
	if s.config.Component.TLS == configs.TLSDirect {
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return o
}

// watched tells of the link's changes beside handling them.
type watched struct {
	link.Handler
	told func(attached bool)
}

func (w watched) Attached(ctx context.Context, s link.Stream) {
	w.Handler.Attached(ctx, s)
	w.told(true)
}

func (w watched) Detached(err error) {
	w.Handler.Detached(err)
	w.told(false)
}

// run serves until ctx ends, then answers what was taken, ends the stream and
// closes the store.
func (s *service) run(ctx context.Context) error {
	linked, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	socket := s.openSocket()
	var parts sync.WaitGroup
	parts.Go(func() {
		if err := s.link.Run(linked); err != nil && !errors.Is(err, context.Canceled) {
			s.log.Warn("stream ended", "err", err)
		}
	})
	parts.Go(func() {
		s.engine.KeepRemembering(linked, func(err error) { s.log.Warn("known resources not stored", "err", err) })
	})
	parts.Go(func() {
		s.engine.KeepExpiring(linked, func(err error) { s.log.Warn("expired batches not removed", "err", err) })
	})
	parts.Go(func() { s.verifyUnseen(linked) })

	<-ctx.Done()
	s.log.Info("stopping")
	s.closeSocket(linked, socket)
	s.drain(linked)
	cut()
	parts.Wait()
	if err := s.store.Close(); err != nil {
		return fmt.Errorf("close the store: %w", err)
	}
	s.log.Info("stopped")
	return nil
}

// openSocket listens for the operator's commands. A service without them is
// better than none.
func (s *service) openSocket() *operatorSocket {
	socket, err := startOperatorSocket(storeOptions(s.config), operatorHandler(&localDesk{store: s.store, eraser: s.front.EraseAccount}), s.log)
	if err != nil {
		s.log.Warn("no socket for the operator's commands", "err", err)
		return new(operatorSocket)
	}
	return socket
}

// closeSocket ends it while the store is still ours.
func (s *service) closeSocket(ctx context.Context, socket *operatorSocket) {
	limit, release := context.WithTimeout(ctx, drainTimeout)
	defer release()
	if err := socket.Stop(limit); err != nil {
		s.log.Warn("socket for the operator's commands", "err", err)
	}
}

// verifyUnseen has resources asked that were not heard of for long.
func (s *service) verifyUnseen(ctx context.Context) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			s.front.VerifyUnseen(now.AddDate(0, 0, -s.config.Limits.ResourceDays))
		case <-ctx.Done():
			return
		}
	}
}

// drain has all that was taken answered, and the answers written.
func (s *service) drain(ctx context.Context) {
	limit, release := context.WithTimeout(ctx, drainTimeout)
	defer release()
	err := s.front.Stop(limit)
	if err == nil {
		err = s.writer.Drain(limit)
	}
	if err != nil && !errors.Is(err, lane.ErrDetached) {
		s.log.Warn("stopped before all was answered", "err", err)
	}
}

// attached is a check for /readyz.
func (s *service) attached(context.Context) error {
	if up, reason := s.link.State(); !up {
		return errors.New("not attached: " + reason)
	}
	return nil
}

// alive returns unless the store hangs: a failing disk is no reason to be
// started anew.
func (s *service) alive(ctx context.Context) error {
	_ = s.store.Health(ctx)
	return ctx.Err()
}
