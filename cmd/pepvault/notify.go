package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// notifier tells systemd about the service (sd_notify). Without systemd it
// does nothing. Its methods may be called by many goroutines.
type notifier struct {
	log *slog.Logger
}

// Ready says that the service is up. Repeats do no harm.
func (n notifier) Ready() { n.send(daemon.SdNotifyReady) }

// Stopping says that the service has begun to end.
func (n notifier) Stopping() { n.send(daemon.SdNotifyStopping) }

// Status shows text in "systemctl status".
func (n notifier) Status(text string) { n.send("STATUS=" + oneLine(text)) }

// Watchdog tells systemd until ctx ends that the process lives, as long as
// alive says so; it returns at once if nobody asked for that. A call of alive
// that does not return counts as no life.
func (n notifier) Watchdog(ctx context.Context, alive func(context.Context) error) {
	limit, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		n.log.Warn("watchdog of systemd not understood", "err", err)
		return
	}
	if limit <= 0 {
		return
	}
	tick := time.NewTicker(limit / 2)
	defer tick.Stop()
	for {
		if err := alive(ctx); err == nil {
			n.send(daemon.SdNotifyWatchdog)
		} else if ctx.Err() == nil {
			n.log.Error("no sign of life given to systemd", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if ctx.Err() != nil { // both may have come
				return
			}
		}
	}
}

func (n notifier) send(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		n.log.Warn("systemd not told", "err", err)
	}
}
