//go:build !linux

package watch

import (
	"context"
	"time"
)

// Nothing of this is measured here.

func memory(context.Context) float64 { return 0 }

func syncs(context.Context, string, time.Duration, int) []time.Duration { return nil }

// FileSystem names the kind of file system that a folder lies on, or is "".
func FileSystem(string) string { return "" }
