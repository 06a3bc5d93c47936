package page

import (
	"math"
	"strings"
	"testing"

	"pepvault/bench/report"
)

func TestUnits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		unit  Unit
		value float64
		want  string
	}{
		{Milliseconds, 0, "0 ms"},
		{Milliseconds, 0.0567, "0.0567 ms"},
		{Milliseconds, 0.5, "0.500 ms"},
		{Milliseconds, 9.994, "9.99 ms"},
		{Milliseconds, 9.996, "10.0 ms"},
		{Milliseconds, 99.96, "100 ms"},
		{Milliseconds, 999.6, "1,000 ms"},
		{Milliseconds, 1000, "1.00 s"},
		{Milliseconds, 13400, "13.4 s"},
		{Seconds, 0.25, "250 ms"},
		{Seconds, 240, "4.00 min"},
		{Seconds, 9000, "2.50 h"},
		{Bytes, 1023, "1,020 B"},
		{Bytes, 1536, "1.50 KiB"},
		{Bytes, 1 << 30, "1.00 GiB"},
		{PerSecond, 3465, "3,470/s"},
		{Times, 0.515, "×0.515"},
		{Percent, 43.21, "43.2 %"},
		{Count, 307977, "308,000"},
	} {
		if got := test.unit.text(test.value); got != test.want {
			t.Errorf("%v in %s is %q, want %q", test.value, test.unit, got, test.want)
		}
	}
	if got := count(307977).Text; got != "307,977" {
		t.Errorf("a count is %q, want it in full", got)
	}
	if got := figure(math.NaN(), Bytes); got.Text != none || got.Value != nil {
		t.Errorf("what is no number is %+v", got)
	}
	if got, want := ranged(notNegative(&report.Spread{Median: -0.1, Low: -0.2, High: 0.5}), Cores).Text, "0 cores (0 cores to 0.500 cores)"; got != want {
		t.Errorf("a difference below 0 is %q, want %q", got, want)
	}
	if got, want := ranged(&report.Spread{Median: 2, Low: 1, High: 3}, Milliseconds).Text, "2.00 ms (1.00 ms to 3.00 ms)"; got != want {
		t.Errorf("a spread is %q, want %q", got, want)
	}
}

func TestTicks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		ticker    ticker
		low, high float64
		want      string
	}{
		{"linear", ticker{unit: Count, most: 5}, 0, 260, "0 100 200"},
		{"below 0", ticker{unit: Seconds, most: 8}, -1, 5.7, "-1 0 1 2 3 4 5"},
		{"fractions", ticker{unit: Milliseconds, most: 4}, 0, 0.7, "0 0.2 ms 0.4 ms 0.6 ms"},
		{"bytes", ticker{unit: Bytes, most: 4}, 0, 50 << 10, "0 16 KiB 32 KiB 48 KiB"},
		{"few decades", ticker{unit: Milliseconds, log: true}, 2, 50, "2 ms 5 ms 10 ms 20 ms 50 ms"},
		{"many decades", ticker{unit: Milliseconds, log: true}, 1, 5000, "1 ms 10 ms 100 ms 1 s"},
	} {
		var got []string
		for _, tick := range test.ticker.Ticks(test.low, test.high) {
			got = append(got, tick.Label)
		}
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("%s: %q, want %q", test.name, text, test.want)
		}
	}
}

func TestInline(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a`b\nc` d_":         "a`b c` d\\_",
		"a*b_c <d> [e](f)":   `a\*b\_c &lt;d&gt; \[e\](f)`,
		"run `mix --rate_1`": "run `mix --rate_1`",
		"one ` alone*":       `one ' alone\*`,
		"two\nlines":         "two lines",
	} {
		if got := inline(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	if got := cell("a|b"); got != `a\|b` {
		t.Errorf("a bar in a cell becomes %q", got)
	}
}
