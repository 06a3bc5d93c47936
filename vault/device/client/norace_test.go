//go:build !race

package client

// Each history takes a second of disk.
const randomHistories = "12"
