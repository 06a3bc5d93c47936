package main_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"regexp"
	"testing"
	"time"

	"pepvault/vault/device/c2s"
)

// otherCA is an authority that signed nothing.
func otherCA(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// tool is a client of the account without keys: it can do to the vault what a
// service could.
type tool struct {
	*c2s.Conn
	w *place
}

func (w *place) tool() tool {
	w.t.Helper()
	c, err := c2s.Dial(w.t.Context(), c2s.Options{Server: w.server.Addr, JID: w.account(), Password: password, TLS: w.server.TLS()})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	return tool{c, w}
}

func (o tool) ask(kind, payload string) string {
	o.w.t.Helper()
	ctx, cancel := context.WithTimeout(o.w.t.Context(), patience)
	defer cancel()
	s, err := o.IQ(ctx, kind, o.w.jid, []byte(payload))
	if err != nil || s.Type != "result" {
		o.w.t.Fatalf("%s: %v %s", payload, err, s.Raw)
	}
	return string(s.Raw)
}

var itemPattern = regexp.MustCompile(`<item [^>]*id=['"]([^'"]*)['"][^>]*>(<record .*?</record>)</item>`)

// items reads the sealed records, by id.
func (o tool) items() map[string]string {
	o.w.t.Helper()
	found := map[string]string{}
	for _, m := range itemPattern.FindAllStringSubmatch(o.ask("get", "<pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='notes'/></pubsub>"), -1) {
		found[m[1]] = m[2]
	}
	return found
}

func (o tool) publish(id, record string) {
	o.w.t.Helper()
	o.ask("set", fmt.Sprintf("<pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='notes'><item id='%s'>%s</item></publish></pubsub>", id, record))
}

// testTampered holds that what no device made is noticed, named, and no harm.
func (w *place) testTampered() {
	laptop, phone := w.terminal("laptop"), w.terminal("phone")
	laptop.must(laptop.initArgs()...)
	phone.must(phone.initArgs()...)
	hostile := w.tool()
	key := "-key"
	laptop.mustWith("first of a", "put", "a")
	before := hostile.items()
	delete(before, key)
	var a, b string
	for a = range before {
	}
	laptop.mustWith("second of a", "put", "a")
	laptop.mustWith("content of b", "put", "b")
	phone.must("sync")
	now := hostile.items()
	for id := range now {
		if id != a && id != key {
			b = id
		}
	}
	if len(now) != 3 || a == "" || b == "" {
		w.t.Fatalf("the vault has %d records", len(now))
	}

	hostile.publish(a, now[b]) // swapped
	phone.fails(4, `"a"`, "sync")
	phone.fails(4, "tampered with", "get", "a")
	if r := phone.run("", "get", "--kept", "a"); r.out != "second of a" {
		w.t.Errorf("the last good version: %+v", r)
	}
	phone.fails(4, "tampered with", "rotate")
	hostile.publish(a, before[a]) // an older version
	phone.fails(4, "went back to an older version", "sync")
	phone.mustWith("third of a", "put", "a") // mends it
	laptop.shows("a", "third of a")
	hostile.publish("unknown", now[b])
	laptop.fails(4, `"unknown"`, "sync")
	hostile.ask("set", "<pubsub xmlns='http://jabber.org/protocol/pubsub'><retract node='notes'><item id='unknown'/></retract></pubsub>")
	laptop.must("sync")

	good := hostile.items()[key]
	hostile.publish(key, "<record xmlns='urn:pepvault:record:0' key-version='1'>AgEBAQ==</record>")
	laptop.fails(4, "the record with the vault's keys", "sync")
	laptop.fails(4, "the record with the vault's keys", "get", "a")
	hostile.publish(key, good)
	laptop.shows("a", "third of a")
	laptop.must("rotate")
	phone.shows("b", "content of b")
}
