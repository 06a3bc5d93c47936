package main

import (
	"bytes"
	"log/slog"
	"testing"

	"pepvault/configs"
)

func TestNewLogger(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		config configs.Log
		want   string
	}{
		"text": {configs.Log{Level: slog.LevelInfo, Format: configs.LogText}, "level=INFO msg=attached n=1\n"},
		"json": {configs.Log{Level: slog.LevelInfo, Format: configs.LogJSON}, `"level":"INFO","msg":"attached","n":1}` + "\n"},
		"warn": {configs.Log{Level: slog.LevelWarn, Format: configs.LogText}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			newLogger(&out, test.config).Info("attached", "n", 1)
			if got := out.String(); !bytes.HasSuffix(out.Bytes(), []byte(test.want)) || (test.want == "") != (got == "") {
				t.Errorf("logged %q, want …%q", got, test.want)
			}
		})
	}
}
