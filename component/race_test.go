//go:build race

package component_test

// raceDetector is on: everything takes ten times as long and as much memory.
const raceDetector = true
