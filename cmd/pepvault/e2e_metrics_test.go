package main_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pepvault/component/hosttest"
)

// TestMetricsOfTheProgram asks the real program for its figures, as curl and as
// a scraper.
func TestMetricsOfTheProgram(t *testing.T) {
	t.Parallel()
	host := hosttest.New(t)
	s := newService(t, buildProgram(t), host.Component(), host.Addr(), host.Secret(), "")
	config, err := os.ReadFile(s.config)
	if err != nil {
		t.Fatal(err)
	}
	s.config = filepath.Join(t.TempDir(), "pepvault.toml")
	config = []byte(strings.Replace(string(config), `listen = ""`, `listen = "127.0.0.1:0"`, 1))
	if err := os.WriteFile(s.config, config, 0o600); err != nil {
		t.Fatal(err)
	}
	s.start()
	host.Device("alice/phone").Asks("set", `<pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='notes'><item id='a'><n xmlns='urn:example'/></item></publish></pubsub>`)

	found := regexp.MustCompile(`msg="serving HTTP" address=(\S+)`).FindStringSubmatch(s.log.tail(100))
	if found == nil {
		t.Fatal("the log does not say where the pages are")
	}
	for accept, kind := range map[string]string{"*/*": "text/plain", "application/openmetrics-text; version=1.0.0": "application/openmetrics-text"} {
		request, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+found[1]+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", accept)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(response.Body)
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
		if err != nil || response.StatusCode != http.StatusOK || !strings.HasPrefix(response.Header.Get("Content-Type"), kind) {
			t.Fatalf("%v, status %d, type %s", err, response.StatusCode, response.Header.Get("Content-Type"))
		}
		for _, want := range []string{
			`pepvault_requests_total{op="publish",result="ok"} 1`, `pepvault_request_seconds_count{op="publish"} 1`,
			"pepvault_link_connected 1", "pepvault_vaults 1", "pepvault_records 1", `pepvault_queue_bytes{lane="bulk"} 0`,
			"process_resident_memory_bytes ", "go_goroutines ",
		} {
			if !strings.Contains(string(page), "\n"+want) {
				t.Errorf("as %s there is no %s in\n%s", kind, want, page)
			}
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
