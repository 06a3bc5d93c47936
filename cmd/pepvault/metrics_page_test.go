package main

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"pepvault/component"
)

// documentedMetrics are a contract with whoever watches a service, each with
// its labels.
var documentedMetrics = map[string][]string{
	"pepvault_requests_total":         {"op", "result"},
	"pepvault_request_seconds":        {"op"},
	"pepvault_notifications_total":    {"result"},
	"pepvault_downloads_active":       {},
	"pepvault_chunk_bytes_total":      {},
	"pepvault_queue_bytes":            {"lane"},
	"pepvault_host_unconfirmed_bytes": {},
	"pepvault_link_connected":         {},
	"pepvault_link_reconnects_total":  {},
	"pepvault_store_commit_seconds":   {},
	"pepvault_store_commits_total":    {},
	"pepvault_store_batch_size":       {},
	"pepvault_vaults":                 {},
	"pepvault_records":                {},
	"pepvault_rejected_total":         {"reason"},
}

// TestMetricsAreAsDocumented: after some traffic there is every series of the
// contract with its labels and no other, spelled as the tools of the field
// expect.
func TestMetricsAreAsDocumented(t *testing.T) {
	t.Parallel()
	m := newMetered(t, nil)
	m.asks(connect(t, m.host, "alice", "phone"), "get", pinging)
	families, err := m.service.metrics.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	others := 0
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "pepvault_") {
			others++
			continue
		}
		labels := []string{}
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, label.GetName())
		}
		found[family.GetName()] = labels
		if family.GetHelp() == "" || strings.HasSuffix(family.GetName(), "_seconds") && !strings.Contains(family.GetHelp(), "in seconds") ||
			strings.Contains(family.GetName(), "_bytes") && !strings.Contains(family.GetHelp(), "in bytes") {
			t.Errorf("%s is explained as %q", family.GetName(), family.GetHelp())
		}
	}
	if diff := cmp.Diff(documentedMetrics, found); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	if others < 20 {
		t.Errorf("only %d of the process and of Go", others)
	}
	problems, err := testutil.GatherAndLint(m.service.metrics.registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range documentedMetrics {
		if !strings.Contains(string(page), "`"+name) {
			t.Errorf("docs/operations.md does not name %s", name)
		}
	}
}

func TestMetricsPage(t *testing.T) {
	t.Parallel()
	m := newMetrics()
	pages := m.handler(slog.New(slog.DiscardHandler))
	for name, test := range map[string]struct {
		accept, kind, end string
	}{
		"OpenMetrics": {"application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3", "application/openmetrics-text; version=1.0.0; charset=utf-8", "# EOF\n"},
		"a browser":   {"text/html,*/*;q=0.8", "text/plain; version=0.0.4; charset=utf-8", "\n"},
		"curl":        {"", "text/plain; version=0.0.4; charset=utf-8", "\n"},
	} {
		request := httptest.NewRequest("GET", "/metrics", nil)
		request.Header.Set("Accept", test.accept)
		got := httptest.NewRecorder()
		pages.ServeHTTP(got, request)
		kind, _, _ := strings.Cut(got.Header().Get("Content-Type"), "; escaping=")
		if got.Code != 200 || kind != test.kind || !strings.HasSuffix(got.Body.String(), test.end) {
			t.Errorf("%s: status %d, type %q, want %q, ends %q", name, got.Code, kind, test.kind, got.Body.String()[max(0, got.Body.Len()-20):])
		}
		if got.Header().Get("Cache-Control") != "no-store" || !strings.Contains(got.Body.String(), "pepvault_store_commits_total 0") {
			t.Errorf("%s: header %v, page %.300s", name, got.Header(), got.Body)
		}
	}
}

// What devices make up is in no label, so they can't have many made.
func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	m := newMetered(t, nil)
	const mark = "m4rk"
	asked := 0
	for account := range 10 {
		d := connect(t, m.host, fmt.Sprint(mark, account), mark)
		for i := range 30 {
			name := fmt.Sprintf("%s-%d-%d", mark, account, i)
			for _, payload := range []string{
				"<" + name + " xmlns='urn:" + name + "'/>",
				"<query xmlns='http://jabber.org/protocol/disco#info' node='" + name + "'/>",
				"<pubsub xmlns='http://jabber.org/protocol/pubsub'><" + name + "/></pubsub>",
				"<pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='" + name + "'/></pubsub>",
				"<command xmlns='http://jabber.org/protocol/commands' node='urn:pepvault:command:" + name + "'/>",
				"<command xmlns='http://jabber.org/protocol/commands' node='x' action='" + name + "'/>",
			} {
				m.asks(d, "set", payload)
				m.asks(d, "get", payload)
				asked += 2
			}
		}
	}
	values := map[string][]string{
		"op": component.Operations(), "result": append(conditions, component.ResultOK, "sent", "missed", "bounced"),
		"lane": {"small", "refusals", "bulk"}, "reason": {"rate", "pending", "room", "size", "stopping", "sender"},
	}
	families, err := m.service.metrics.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	answered, series := 0.0, 0
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "pepvault_") {
			continue
		}
		for _, one := range family.GetMetric() {
			series++
			for _, label := range one.GetLabel() {
				if !slices.Contains(values[label.GetName()], label.GetValue()) {
					t.Errorf("%s has %s=%q", family.GetName(), label.GetName(), label.GetValue())
				}
			}
			if family.GetName() == "pepvault_requests_total" {
				answered += one.GetCounter().GetValue()
			}
		}
	}
	if answered != float64(asked) {
		t.Errorf("%v requests were counted, want %d", answered, asked)
	}
	if series > 100 {
		t.Errorf("%d series", series)
	}
	page := httptest.NewRecorder()
	m.service.metrics.handler(slog.New(slog.DiscardHandler)).ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	if text := page.Body.String(); strings.Contains(text, mark) || strings.Contains(text, "@") {
		t.Error("what devices made up is on the page")
	}
}

// conditions are those of RFC 6120 §8.3.3.
var conditions = []string{
	"bad-request", "conflict", "feature-not-implemented", "forbidden", "gone", "internal-server-error", "item-not-found",
	"jid-malformed", "not-acceptable", "not-allowed", "not-authorized", "policy-violation", "recipient-unavailable", "redirect",
	"registration-required", "remote-server-not-found", "remote-server-timeout", "resource-constraint", "service-unavailable",
	"subscription-required", "undefined-condition", "unexpected-request",
}
