//go:build !race

package main_test

// buildFlag builds the program as this test is built.
const buildFlag = "-race=false"
