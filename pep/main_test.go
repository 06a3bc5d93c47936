package pep_test

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	// The command line may still say otherwise.
	if err := flag.Set("rapid.checks", randomChecks); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
