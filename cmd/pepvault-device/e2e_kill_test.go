package main_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pepvault/vault"
	"pepvault/vault/device/c2s"
	"pepvault/vault/device/cache"
	"pepvault/vault/device/client"
	"pepvault/vault/seal"
)

// tap is a connection to the server that stands still once so many bytes went
// through one way, so that a device is stopped at that point of its work.
type tap struct {
	listener net.Listener
	to       string
	passes   bool // it only tells that it came so far
	most     int  // bytes from the server, or, if below 0, from the device
	still    chan struct{}
	once     sync.Once
	mu       sync.Mutex
	up, down int
	open     []net.Conn
}

func newTap(t *testing.T, to string, most int, passes bool) *tap {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tap{listener: listener, to: to, most: most, passes: passes, still: make(chan struct{})}
	var busy sync.WaitGroup
	busy.Go(func() {
		for {
			device, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = device.Close()
				continue
			}
			p.mu.Lock()
			p.open = append(p.open, device, server)
			p.mu.Unlock()
			busy.Go(func() { p.carry(server, device, &p.up, max(-most, 0)) })
			busy.Go(func() { p.carry(device, server, &p.down, max(most, 0)) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		for _, c := range p.open {
			_ = c.Close()
		}
		p.mu.Unlock()
		busy.Wait()
	})
	return p
}

func (p *tap) addr() string { return p.listener.Addr().String() }

func (p *tap) carry(to, from net.Conn, count *int, most int) {
	defer to.Close()
	buffer := make([]byte, 512)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		*count += n
		reached := most > 0 && *count >= most
		p.mu.Unlock()
		if reached {
			p.once.Do(func() { close(p.still) })
			if !p.passes {
				continue // it reads on, so that nobody sees an end
			}
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// killed runs a command through a tap and kills it there, as kill -9 does. It
// reports whether it got so far.
func (d *terminal) killed(most int, args ...string) bool {
	d.t.Helper()
	p := newTap(d.t, d.addr, most, false)
	cmd := d.command(append([]string{"--server", p.addr()}, args...)...)
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	select {
	case <-p.still:
		_ = cmd.Process.Kill()
		<-ended
		return true
	case <-ended:
		return false
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		<-ended
		d.t.Fatalf("%v neither ended nor came to byte %d", args, most)
		return false
	}
}

// traffic is how many bytes a command sends and gets.
func (d *terminal) traffic(args ...string) (up, down int) {
	d.t.Helper()
	p := newTap(d.t, d.addr, 0, false)
	d.must(append([]string{"--server", p.addr()}, args...)...)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.up, p.down
}

// spread returns n places between from and to; those of what goes up are below 0.
func spread(up, down int, from float64, n int) (places []int) {
	for i := range n {
		part := from + (1-from)*float64(i)/float64(n)
		places = append(places, int(float64(down)*part))
		if up > 0 {
			places = append(places, -int(float64(up)*part))
		}
	}
	return places
}

// testKilledPut holds that a put that was stopped anywhere is made once: the
// device has it, and no conflict comes of it.
func (w *place) testKilledPut() {
	laptop, phone := w.terminal("laptop"), w.terminal("phone")
	laptop.must(laptop.initArgs()...)
	phone.must(phone.initArgs()...)
	laptop.write("file", "first")
	up, down := laptop.traffic("put", "a", "file")
	stopped := 0
	for i, most := range spread(up, down, 0.6, 3) {
		want := fmt.Sprint("content ", i)
		laptop.write("file", want)
		if laptop.killed(most, "put", "a", "file") {
			stopped++
		}
		if i%2 == 0 {
			laptop.must("sync")
		}
		laptop.shows("a", want)
		phone.shows("a", want)
	}
	if stopped < 4 {
		w.t.Errorf("only %d puts were stopped", stopped)
	}
}

// testKilledRotation holds that a rotation that was stopped anywhere is finished
// by the next one, or by anything else, and that nobody sees a part of it.
func (w *place) testKilledRotation() {
	laptop, phone := w.terminal("laptop"), w.terminal("phone")
	laptop.must(laptop.initArgs()...)
	phone.must(phone.initArgs()...)
	w.fill(20, 2000)
	up, down := laptop.traffic("rotate")
	version, stopped := 2, 0
	for i, most := range spread(up, down, 0.3, 3) {
		if laptop.killed(most, "rotate") {
			stopped++
		}
		w.has(phone, 20, 2000)
		finish := []string{"rotate"}
		if i%2 == 1 {
			finish = []string{"sync"}
		}
		out := laptop.must(finish...)
		switch {
		case strings.Contains(out, fmt.Sprint("key version ", version+1)):
			version++
		case i%2 == 0 && strings.Contains(out, fmt.Sprint("key version ", version+2)):
			version += 2 // it had been made before it was stopped
		case i%2 == 1 && strings.Contains(out, fmt.Sprint("key version ", version)):
		default:
			w.t.Errorf("stopped at %d: %s", most, out)
		}
		w.has(phone, 20, 2000)
		w.has(laptop, 20, 2000)
	}
	if stopped < 4 {
		w.t.Errorf("only %d rotations were stopped", stopped)
	}
	laptop.write("new", "another pass phrase")
	laptop.killed(down*7/10, "rotate", "--passphrase-file", "new")
	laptop.must("rotate", "--passphrase-file", "new")
	tablet := w.terminal("tablet")
	tablet.fails(1, "wrong pass phrase", tablet.initArgs()...)
	tablet.write("passphrase", "another pass phrase")
	tablet.must(tablet.initArgs()...)
	w.has(tablet, 20, 2000)
	w.has(laptop, 20, 2000)
}

// testKilledDownload holds that a download goes on where it was stopped.
func (w *place) testKilledDownload() {
	phone := w.terminal("phone")
	phone.must(phone.initArgs()...)
	const records, size = 60, 8000
	w.fill(records, size)
	wentOn := 0
	for _, part := range []int{30, 30, 20} {
		if !phone.killed(records*size*4/3*part/100, "download") {
			w.t.Errorf("it was not stopped at %d %%", part)
		}
		r := phone.run("", "--verbose", "list", "--offline")
		if r.out != "" {
			w.t.Errorf("a part of a download is shown: %s", r.out)
		}
	}
	r := phone.run("", "--verbose", "download")
	wentOn += strings.Count(r.err, "goes on with a sync")
	if r.code != 0 || wentOn != 1 {
		w.t.Errorf("exit %d; it went on %d times: %s", r.code, wentOn, r.err)
	}
	w.has(phone, records, size)
	if left, err := filepath.Glob(filepath.Join(phone.dir, "state", "pass*")); err != nil || len(left) > 0 {
		w.t.Errorf("left behind: %v %v", left, err)
	}
}

// testServiceKilled holds that nothing is lost where the service ends in the middle.
func (w *place) testServiceKilled() {
	laptop, phone := w.terminal("laptop"), w.terminal("phone")
	laptop.must(laptop.initArgs()...)
	phone.must(phone.initArgs()...)
	seen, stop := phone.watch()
	for i := range 4 {
		cmd := laptop.command("put", fmt.Sprint("record ", i), "file")
		laptop.write("file", fmt.Sprint("content ", i))
		if err := cmd.Start(); err != nil {
			w.t.Fatal(err)
		}
		w.kill()
		w.start()
		if err := cmd.Wait(); err != nil {
			w.t.Errorf("put: %v", err)
		}
		laptop.must("sync")
		seen.await(w.t, fmt.Sprintf("record %d\tchanged", i), 1)
	}
	stop()
	w.fill(20, 2000)
	cmd := laptop.command("rotate")
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.kill()
	w.start()
	_ = cmd.Wait() // it may have given up
	laptop.must("rotate")
	w.has(phone, 20, 2000)
	for i := range 4 {
		phone.shows(fmt.Sprint("record ", i), fmt.Sprint("content ", i))
	}

	const records, size = 60, 8000
	w.fill(records, size)
	p := newTap(w.t, phone.addr, 100_000, true)
	cmd = phone.command("--server", p.addr(), "download")
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	<-p.still
	w.kill()
	w.start()
	if err := cmd.Wait(); err != nil {
		w.t.Errorf("download: %v", err)
	}
	w.has(phone, records, size)
}

// testRestored holds that a backup that is restored under two devices takes
// nothing from them.
func (w *place) testRestored() {
	laptop, phone := w.terminal("laptop"), w.terminal("phone")
	laptop.must(laptop.initArgs()...)
	phone.must(phone.initArgs()...)
	laptop.mustWith("old", "put", "a")
	copied := filepath.Join(w.t.TempDir(), "copy.db")
	w.operate("backup", copied)
	laptop.mustWith("new", "put", "a")
	laptop.mustWith("b", "put", "b")
	phone.must("sync")
	laptop.must("rotate") // and a key that the backup does not know
	phone.mustWith("c", "put", "c")
	w.kill()
	w.operate("restore", copied)
	w.start()
	for i, d := range []*terminal{laptop, phone, laptop} {
		r := d.run("", "sync")
		if told := strings.Contains(r.err, "went back to an older state"); r.code != 0 || told != (i < 2) {
			w.t.Errorf("sync of %s: %+v", d.name, r)
		}
	}
	for name, want := range map[string]string{"a": "new", "b": "b", "c": "c"} {
		laptop.shows(name, want)
		phone.shows(name, want)
	}
	tablet := w.terminal("tablet")
	tablet.must(tablet.initArgs()...)
	tablet.shows("c", "c")
}

// library is a device in this process.
func (w *place) library() (*client.Device, client.Dial) {
	w.t.Helper()
	store, err := cache.Acquire(filepath.Join(w.t.TempDir(), "state"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = store.Close() })
	d := client.Join(client.Options{
		Account: vault.Account(w.account()), Service: w.jid, Node: "notes", Store: store, Source: client.Source{Kind: seal.PassPhrase},
		Secret: func(seal.LockKind) ([]byte, error) { return []byte("correct horse battery staple"), nil },
	})
	dial := func(ctx context.Context, handle func(c2s.Stanza) bool) (client.Stream, error) {
		c, err := c2s.Dial(ctx, c2s.Options{Server: w.server.Addr, JID: w.account(), Password: password, TLS: w.server.TLS(), Handle: handle})
		if err != nil {
			return nil, err
		}
		return c, nil
	}
	if err := d.Run(w.t.Context(), dial, client.Once); err != nil {
		w.t.Fatal(err)
	}
	return d, dial
}

func contentOf(i, size int) string { return strings.Repeat(fmt.Sprint(i%10), size) }

// fill has a device of its own make records.
func (w *place) fill(n, size int) {
	w.t.Helper()
	d, dial := w.library()
	for i := range n {
		if err := d.Put(fmt.Sprint("filled ", i), []byte(contentOf(i, size))); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := d.Run(w.t.Context(), dial, client.Once); err != nil || d.Waiting() > 0 {
		w.t.Fatal(errors.Join(err, fmt.Errorf("%d wait", d.Waiting())))
	}
}

// has holds that a device shows all that fill made.
func (w *place) has(d *terminal, n, size int) {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "all.json")
	d.must("export", path)
	text, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range n {
		if want := fmt.Sprintf("\"name\": \"filled %d\",\n      \"text\": %q", i, contentOf(i, size)); !strings.Contains(string(text), want) {
			w.t.Errorf("%s has not record %d as it was made", d.name, i)
		}
	}
}
