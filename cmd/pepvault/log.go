package main

import (
	"io"
	"log/slog"

	"pepvault/configs"
)

// newLogger logs to w as the configuration says.
func newLogger(w io.Writer, config configs.Log) *slog.Logger {
	options := &slog.HandlerOptions{Level: config.Level}
	if config.Format == configs.LogJSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
