package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func passing(context.Context) error { return nil }

func TestHealthHandler(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		method, path string
		checks       []check
		status       int
		want         string
	}{
		"lives":     {"GET", "/healthz", []check{{"store", fails("gone")}}, 200, "ok\n"},
		"ready":     {"GET", "/readyz", []check{{"store", passing}, {"host", passing}}, 200, "ok\n"},
		"no checks": {"GET", "/readyz", nil, 200, "ok\n"},
		"not ready": {"GET", "/readyz", []check{{"host", fails("not attached")}, {"other", passing}, {"store", fails("disk\nfull")}}, 503,
			"host: not attached\nstore: disk; full\n"},
		"head":       {"HEAD", "/readyz", []check{{"host", fails("x")}}, 503, "host: x\n"}, // a recorder keeps what a server drops
		"post":       {"POST", "/readyz", nil, 405, "Method Not Allowed\n"},
		"other page": {"GET", "/", nil, 404, "404 page not found\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := httptest.NewRecorder()
			healthHandler(test.checks...).ServeHTTP(got, httptest.NewRequest(test.method, test.path, nil))
			if got.Code != test.status || got.Body.String() != test.want {
				t.Errorf("%d %q, want %d %q", got.Code, got.Body, test.status, test.want)
			}
		})
	}
}

func fails(reason string) func(context.Context) error {
	return func(context.Context) error { return errors.New(reason) }
}

// TestReadyzGivesUp has a check that waits for ever.
func TestReadyzGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		got := httptest.NewRecorder()
		begin := time.Now()
		healthHandler(check{"store", hangs}).ServeHTTP(got, httptest.NewRequest("GET", "/readyz", nil))
		if got.Code != 503 || got.Body.String() != "store: context deadline exceeded\n" || time.Since(begin) != checkTimeout {
			t.Errorf("%d %q after %v", got.Code, got.Body, time.Since(begin))
		}
	})
}

func TestHTTPServer(t *testing.T) {
	t.Parallel()
	server, err := startHTTP("127.0.0.1:0", healthHandler(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	address := server.Addr().String()
	if got := get(t, address); got != "ok\n" {
		t.Errorf("got %q", got)
	}

	_, err = startHTTP(address, healthHandler(), slog.New(slog.DiscardHandler))
	if err == nil || strings.Contains(err.Error(), "\n") {
		t.Fatalf("busy port: %v", err)
	}
	for _, want := range []string{address, "http.listen", "address already in use"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}

	if err := server.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	// The port may be another's by now, so who answers there says nothing.
	if _, err := server.listener.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("still listens: %v", err)
	}
}

func get(t *testing.T, address string) string {
	t.Helper()
	response, err := http.Get("http://" + address + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestStopCutsOff ends a server while a request is under way.
func TestStopCutsOff(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{})
	hangs := func(ctx context.Context) error { close(entered); <-ctx.Done(); return ctx.Err() }
	server, err := startHTTP("127.0.0.1:0", healthHandler(check{"x", hangs}), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := server.Stop(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Stop: %v", err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
		t.Errorf("answered %q", line)
	}
}

func TestHTTPServerOff(t *testing.T) {
	t.Parallel()
	server, err := startHTTP("", healthHandler(), slog.New(slog.DiscardHandler))
	if err != nil || server.Addr() != nil {
		t.Fatalf("address %v, error %v", server.Addr(), err)
	}
	if err := server.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
