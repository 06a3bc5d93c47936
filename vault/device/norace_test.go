//go:build !race

package device

const usualInterleavings = 10_000
