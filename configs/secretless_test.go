package configs_test

import (
	"path/filepath"
	"testing"

	"pepvault/configs"
)

// What does not attach needs no secret: neither where there is none, nor where
// it can't be read. All else is checked.
func TestLoadWithoutSecret(t *testing.T) {
	t.Parallel()
	const good = "[component]\njid = \"vault.example.org\"\n"
	for name, test := range map[string]struct {
		text   string
		faults int
	}{
		"none":   {good, 0},
		"absent": {good + "secret_file = \"none\"\n", 0},
		"given":  {good + "secret = \"x\"\n", 0},
		"faulty": {good + "secret_file = \"none\"\n[limits]\nmax_records = 0\nx = 1\n", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			config, err := configs.LoadWithoutSecret(write(t, filepath.Join(dir, "c.toml"), test.text, 0o644))
			var faults configs.Faults
			if err != nil {
				faults = err.(configs.Faults)
			}
			if len(faults) != test.faults || len(config.Warnings) > 0 {
				t.Errorf("%v, warnings %q; want %d faults", err, config.Warnings, test.faults)
			}
			if err == nil && config.Store.Path != filepath.Join(dir, "pepvault.db") {
				t.Errorf("the store is %s", config.Store.Path)
			}
		})
	}
}
