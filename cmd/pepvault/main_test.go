package main

import (
	"bytes"
	"errors"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"pepvault/configs"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"pepvault": main})
}

// TestScript runs the command lines of testdata/script on the real program.
func TestScript(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv(configs.SecretEnv, "")
			return nil
		},
	})
}

func TestReport(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err  error
		code int
		want string
	}{
		"nothing": {nil, 0, ""},
		"fault":   {errors.New("first\nsecond"), 1, "pepvault: first; second\n"},
		"faults":  {configs.Faults{{File: "f", Line: 1, Key: "a.b", Problem: "p"}, {File: "f", Problem: "q"}}, 1, "f:1: a.b: p\nf: q\n"},
		"wrapped": {errors.Join(configs.Faults{{File: "f", Problem: "q"}}), 1, "f: q\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stderr bytes.Buffer
			if code := report(&stderr, test.err); code != test.code || stderr.String() != test.want {
				t.Errorf("exit %d, %q; want %d, %q", code, stderr.String(), test.code, test.want)
			}
		})
	}
}
