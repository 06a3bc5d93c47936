//go:build race

package pep_test

// Under the race detector one random history takes seconds.
const randomChecks = "25"
