//go:build race

package client

// Under the race detector a history takes several seconds, and there is little
// that runs beside it.
const randomHistories = "4"
