package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"pepvault/store"
	"pepvault/vault"
)

const (
	// socketSuffix ends the name of the operator's socket beside the store.
	socketSuffix = ".sock"
	// greetingTimeout bounds how long a service may take to say that it lives.
	greetingTimeout = 5 * time.Second
	// maxOrderBytes bounds what an operator's command sends.
	maxOrderBytes = 64 << 10
)

// longestSocketPath is what the system allows.
const longestSocketPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// socketPath returns where the service on a store listens for its operator.
func socketPath(o store.Options) (string, error) {
	path, err := store.Beside(o, socketSuffix)
	if err != nil {
		return "", err
	}
	if len(path) > longestSocketPath {
		return "", fmt.Errorf("the socket %s has a path of %d bytes, the system allows %d: use a shorter store.path", path, len(path), longestSocketPath)
	}
	return path, nil
}

// order is what a command sends to change something.
type order struct {
	Account vault.Account `json:"account"`
}

// fault is the answer to what could not be done.
type fault struct {
	Error string `json:"error"`
}

// operatorHandler lets commands of the same machine use a desk. Who may open
// the socket may do all of it.
func operatorHandler(d desk) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { reply(w, "pepvault", nil) })
	mux.HandleFunc("GET /accounts", func(w http.ResponseWriter, r *http.Request) {
		found, err := d.accounts(r.Context())
		reply(w, found, err)
	})
	mux.HandleFunc("GET /vaults", func(w http.ResponseWriter, r *http.Request) {
		found, err := d.vaults(r.Context(), vault.Account(r.FormValue("account")))
		reply(w, found, err)
	})
	mux.HandleFunc("GET /vault", func(w http.ResponseWriter, r *http.Request) {
		found, err := d.vault(r.Context(), vault.Key{Account: vault.Account(r.FormValue("account")), Node: r.FormValue("node")})
		reply(w, found, err)
	})
	mux.HandleFunc("POST /erase", func(w http.ResponseWriter, r *http.Request) {
		var o order
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrderBytes)).Decode(&o)
		if err == nil {
			o.Account, err = vault.PrepareAccount(string(o.Account))
		}
		if err != nil {
			reply(w, nil, err)
			return
		}
		erased, err := d.erase(r.Context(), o.Account)
		reply(w, erased, err)
	})
	return mux
}

// reply writes a JSON document.
func reply(w http.ResponseWriter, document any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusUnprocessableEntity)
		document = fault{oneLine(err.Error())}
	}
	_ = json.NewEncoder(w).Encode(document) // the command may be gone
}

// operatorSocket serves an operator; the zero value is one that is off.
type operatorSocket struct {
	path   string
	server *http.Server
	done   chan error
}

// startOperatorSocket listens beside the store that this process has. What an
// earlier service left there is replaced.
func startOperatorSocket(o store.Options, handler http.Handler, log *slog.Logger) (*operatorSocket, error) {
	path, err := socketPath(o)
	if err != nil {
		return nil, err
	}
	if err := onlyStale(path); err != nil {
		return nil, err
	}
	listener, err := listenPrivately(path)
	if err != nil {
		return nil, fmt.Errorf("can't listen at %s: %w", path, err)
	}
	s := &operatorSocket{
		path: path,
		server: &http.Server{
			Handler: handler, ReadHeaderTimeout: greetingTimeout, MaxHeaderBytes: maxHeaderBytes,
			ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		},
		done: make(chan error, 1),
	}
	go func() { s.done <- s.server.Serve(listener) }()
	return s, nil
}

// onlyStale makes sure that what is at a path is not alive, and a socket.
func onlyStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s is no socket: move it away", path)
	}
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		return fmt.Errorf("another process listens at %s: stop it", path)
	}
	return nil
}

// listenPrivately makes a socket that only this user can open, at no moment
// anybody else: it is bound in a folder of its own and then moved.
func listenPrivately(path string) (net.Listener, error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	bound := filepath.Join(dir, "s")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: bound, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false) // it would look for the first name
	err = os.Chmod(bound, 0o600)
	if err == nil {
		err = os.Rename(bound, path)
	}
	if err != nil {
		listener.Close()
		return nil, err
	}
	return listener, nil
}

// Stop ends the server: it waits for commands under way until ctx ends. The
// process must still have the store, or the socket could be another's.
func (s *operatorSocket) Stop(ctx context.Context) error {
	if s.server == nil {
		return nil
	}
	err := os.Remove(s.path)
	if stopped := s.server.Shutdown(ctx); stopped != nil {
		err = errors.Join(err, stopped, s.server.Close())
	}
	if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
