//go:build race

package main_test

// buildFlag builds the program as this test is built: a race in it ends it
// with an exit code of its own.
const buildFlag = "-race"
