package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	// checkTimeout bounds all checks of one request together.
	checkTimeout = 2 * time.Second
	// httpTimeout bounds each side of a request; it leaves room for the checks.
	httpTimeout = 5 * time.Second
	// maxHeaderBytes is plenty for a prober.
	maxHeaderBytes = 16 << 10
)

// check is one condition of being ready: nil, or why not. It may be called by
// many goroutines at once and gives up when ctx ends. Its error is shown to
// whoever asks, so it holds nothing private.
type check struct {
	name string
	ok   func(ctx context.Context) error
}

// healthHandler answers /healthz (the process lives) and /readyz (all checks
// pass, else 503 and a line for each one that doesn't). Further pages may be
// added to it.
func healthHandler(checks ...check) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, "ok\n")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
		defer cancel()
		if reasons := failing(ctx, checks); reasons != "" {
			answer(w, http.StatusServiceUnavailable, reasons)
			return
		}
		answer(w, http.StatusOK, "ok\n")
	})
	return mux
}

// failing returns a line for each check that fails, in their order.
func failing(ctx context.Context, checks []check) string {
	lines := ""
	for _, c := range checks {
		if err := c.ok(ctx); err != nil {
			lines += c.name + ": " + oneLine(err.Error()) + "\n"
		}
	}
	return lines
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // whoever asked may be gone
}

// httpServer serves pages for operators; the zero value is one that is off.
type httpServer struct {
	server   *http.Server
	listener net.Listener
	done     chan error
}

// startHTTP listens at address, the value of http.listen, and serves handler
// until Stop. With "" it does neither.
func startHTTP(address string, handler http.Handler, log *slog.Logger) (*httpServer, error) {
	if address == "" {
		return new(httpServer), nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err // the rest is said here
		}
		return nil, fmt.Errorf("can't listen at %s: %w; set http.listen to a free address, or to \"\" for no HTTP server", address, err)
	}
	h := &httpServer{
		server: &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: httpTimeout,
			ReadTimeout:       httpTimeout,
			WriteTimeout:      httpTimeout,
			IdleTimeout:       time.Minute,
			MaxHeaderBytes:    maxHeaderBytes,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		},
		listener: listener,
		done:     make(chan error, 1),
	}
	go func() { h.done <- h.server.Serve(listener) }()
	return h, nil
}

// Addr is where the server listens, nil if it is off.
func (h *httpServer) Addr() net.Addr {
	if h.listener == nil {
		return nil
	}
	return h.listener.Addr()
}

// Stop ends the server: it waits for the requests under way until ctx ends,
// then cuts them off. Call it once.
func (h *httpServer) Stop(ctx context.Context) error {
	if h.server == nil {
		return nil
	}
	err := h.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, h.server.Close())
	}
	if served := <-h.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
