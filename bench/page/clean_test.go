package page

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pepvault/bench/report"
)

// TestClean: no folder stays in a text, whatever it is called.
func TestClean(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"open /var/lib/x/run.jsonl: no such file":       "open run.jsonl: no such file",
		"open /home/jane doe/her [own] work/x.db: full": "open x.db: full",
		`quoted "/a/b c" and more`:                      `quoted "b c" and more`,
		"file:///home/jane/x.db":                        "x.db",
		"file:/home/jane/x.db is locked":                "x.db is locked",
		`C:\Users\Jane Doe\x.db`:                        "x.db",
		`at \\server\share\x.db`:                        "at x.db",
		"~/vaults/x.db":                                 "x.db",
		"work/x.db":                                     "x.db",
		"--out=../results/run.jsonl":                    "--out=run.jsonl",
		"rename /a/secret to /b/secret/y":               "rename y",
		"wait/resource-constraint":                      "wait/resource-constraint",
		"(cancel/not-allowed).":                         "(cancel/not-allowed).",
		"u1@localhost/d2 said 3/4":                      "u1@localhost/d2 said 3/4",
		"linux/amd64, kernel 6.1":                       "linux/amd64, kernel 6.1",
		"Radeon w/ Graphics, 50/s":                      "Radeon w/ Graphics, 50/s",
		"a `b`\nc\x1b[0m":                               "a 'b' c[0m",
	} {
		if got := clean(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	got := commandLine(command([]string{
		"/home/jane/bin/pepvault-bench", "run", "mix", "--out", "/srv/jane doe/a b.jsonl", "--ca=file:///etc/jane/ca.pem", "--password", "swordfish", "--password=swordfish",
		"--target", "component:vault.localhost", "--size", "0.5:512m,1:1g", "--echo", "--server=[::1]:5222", "--pid", "prosody=12", "--host-gc", "/home/jane",
		"--new-flag=/home/jane", "/home/jane", `C:\jane\x`, "--out", `C:\jane\y.jsonl`,
	}))
	want := "./pepvault-bench run mix --out 'a b.jsonl' --ca=ca.pem --password … --password=… " +
		"--target component:vault.localhost --size 0.5:512m,1:1g --echo '--server=[::1]:5222' --pid prosody=12 --host-gc … … … … --out y.jsonl"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestCleanse: every text of a file that can reach a page is cleaned.
func TestCleanse(t *testing.T) {
	t.Parallel()
	const folder, dirty = "jane doe", "on /home/jane doe/x"
	cost := report.Cost{}
	errors := map[string]int64{dirty: 1}
	r := Run{
		Name: "a`\n|.jsonl",
		Results: &report.Results{
			Environment: report.Environment{
				Program: dirty, Machine: report.Platform{Go: dirty, System: dirty, Kernel: dirty, CPU: dirty, Storage: dirty},
				Host: report.Host{Name: dirty, Version: dirty, Settings: map[string]string{"gc": dirty, dirty: dirty}, Versions: map[string]string{"service": dirty}},
				Work: report.Workload{Name: "mix", Download: dirty, Only: dirty, Rate: 1}, Command: []string{"x", "run", "/home/jane doe/y"},
			},
			Verdict:    &report.Verdict{Reason: dirty},
			Gates:      []report.Gate{{Target: dirty, Name: dirty, Unmeasured: dirty}},
			Capacities: []report.Capacity{{Target: component, Unmeasured: dirty}},
			Steps:      []report.CapacityStep{{Target: component, Why: dirty, Result: dirty, Limit: dirty}},
		},
		Summary: &report.Summary{Targets: []report.Target{{
			Name: component, Kinds: map[report.Kind]report.Latencies{report.Read: {Count: 1, Errors: errors}}, Costs: map[string]report.Cost{dirty: cost},
			Disk: &report.Disk{Lone: &report.Written{Processes: map[string]*report.Spread{dirty: {Median: 1}}}},
		}}},
	}
	cleanse(&r)
	failed := r
	failed.Summary = nil
	for _, run := range []Run{r, failed} {
		for _, name := range order {
			run.Results.Environment.Work.Name = name
			report := Build([]Run{run})
			var b strings.Builder
			if err := report.WriteJSON(&b); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(b.String(), folder) || strings.Contains(b.String(), "home") {
				t.Errorf("%s: %s", name, b.String())
			}
			if !strings.Contains(b.String(), "on x") {
				t.Errorf("%s: nothing of the texts is left", name)
			}
		}
	}
}

// TestOnce: files of the same run count once, the whole one of them, and the
// report says so.
func TestOnce(t *testing.T) {
	t.Parallel()
	of := func(name string, nanosecond int, verdict *report.Verdict) Run {
		env := report.Environment{Date: time.Unix(1, int64(nanosecond)), Targets: []string{component}, Work: report.Workload{Name: mix}}
		return Run{Name: name, Results: &report.Results{Environment: env, Verdict: verdict, Checks: []report.Check{{Target: component, Saves: 10}}}}
	}
	whole := &report.Verdict{}
	r := Build([]Run{of("a", 1, nil), of("b", 1, whole), of("b", 1, whole), of("c", 2, whole)})
	if !strings.Contains(r.Verdict, "lost none of 20 saves") {
		t.Errorf("verdict %q", r.Verdict)
	}
	for _, want := range []string{"a is of the same run as b; that counts once.", "b was given more than once; it counts once."} {
		if !slices.Contains(r.Doubts, want) {
			t.Errorf("%q is not among %q", want, r.Doubts)
		}
	}
	if got := len(r.Sections[9].Tables[1].Rows); r.Sections[9].ID != "runs" || got != 2 {
		t.Errorf("%d runs are listed, want 2", got)
	}
}

// TestMarkdownBreakout: nothing ends code or a table before its end.
func TestMarkdownBreakout(t *testing.T) {
	t.Parallel()
	r := &Report{Title: "# a", Verdict: "1. a\n\n# b", Sections: []Section{{
		Title: "a\n# b", Text: []string{"- a", "``` a"}, Code: []string{"a", "````", "b"},
		Tables: []Table{{Caption: "# x", Columns: []string{"a|b"}, Rows: [][]Cell{{{Text: "x | y\n| `z|z`"}}}}},
	}}}
	var b strings.Builder
	if err := r.WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	const want = "# \\# a\n\n1\\. a  \\# b\n\n## a \\# b\n\n\\- a\n\n''' a\n\n\\# x\n\n| a\\|b |\n|---|\n| x \\| y \\| `z\\|z` |\n\n`````sh\na\n````\nb\n`````\n"
	if b.String() != want {
		t.Errorf("got  %q\nwant %q", b.String(), want)
	}
}
