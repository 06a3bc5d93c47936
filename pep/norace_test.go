//go:build !race

package pep_test

const randomChecks = "100"
