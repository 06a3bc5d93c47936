//go:build !race

package component_test

// raceDetector is off.
const raceDetector = false
