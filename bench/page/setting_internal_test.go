package page

import (
	"testing"

	"pepvault/bench/report"
)

// TestServerIsNamedAsItWasSet: the lab's three ways to configure a Prosody.
func TestServerIsNamedAsItWasSet(t *testing.T) {
	t.Parallel()
	const lines = "network_default_read_size = 65536"
	for want, set := range map[string]map[string]string{
		"Prosody 13 as shipped": {"gc": "default", "journal": "rollback", "network": "default"},
		"Prosody 13, default":   {"gc": "default", "journal": "rollback", "network": lines},
		"Prosody 13, tuned":     {"gc": "incremental, threshold 200", "journal": "WAL", "network": lines},
		"Prosody 13":            nil,
	} {
		r := Run{Results: &report.Results{Environment: report.Environment{Host: report.Host{Version: "Prosody 13", Settings: set}}}}
		if got := settingOf(r).server(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
