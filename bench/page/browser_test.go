package page_test

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"image"
	"image/png"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"pepvault/bench/page"
)

// inspection is what a script in the page finds; see testdata/inspect.js.
type inspection struct {
	Faults []string   `json:"faults"`
	Charts []drawing  `json:"charts"`
	Tables [][]string `json:"tables"` // the texts of each, in order
	Text   string     `json:"text"`   // all that can be read
}

// drawing is one visible chart.
type drawing struct {
	ID    string   `json:"id"`
	Name  string   `json:"name"` // for who can't see it
	Texts []string `json:"texts"`
}

//go:embed testdata/inspect.js
var inspect string

// TestPageInBrowser opens the page as readers do: on a telephone and on a wide
// screen, in light and in dark, and in print. Everything has to be there, within
// its place, readable, and from the page itself.
func TestPageInBrowser(t *testing.T) {
	t.Parallel()
	report := page.Build(runs(t))
	file := filepath.Join(t.TempDir(), "report.html")
	write(t, file, report.WriteHTML)
	browser := startBrowser(t)
	for _, view := range []struct {
		name          string
		width, height int64
		scheme, media string
	}{
		{"telephone, light", 360, 740, "light", ""},
		{"telephone, dark", 360, 740, "dark", ""},
		{"screen, light", 1280, 900, "light", ""},
		{"screen, dark", 1280, 900, "dark", ""},
		{"paper", 794, 1123, "light", "print"},
	} {
		t.Run(view.name, func(t *testing.T) {
			tab, end := chromedp.NewContext(browser)
			defer end()
			requests := listen(t, tab)
			look := emulation.SetEmulatedMediaParams{
				Media: view.media, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: view.scheme}},
			}
			if _, err := chromedp.Call(tab, emulation.SetEmulatedMedia, look); err != nil {
				t.Fatal(err)
			}
			address := url.URL{Scheme: "file", Path: file}
			if err := chromedp.Do(tab, chromedp.EmulateViewport(view.width, view.height), chromedp.Navigate(address.String())); err != nil {
				t.Fatal(err)
			}
			found, err := chromedp.Run(tab, chromedp.Evaluate[inspection](inspect))
			if err != nil {
				t.Fatal(err)
			}
			for _, fault := range found.Faults {
				t.Error(fault)
			}
			holdsReport(t, found, report)
			if got, want := requests(), []string{address.String()}; !slices.Equal(got, want) {
				t.Errorf("the page asked for %q, want only itself", got)
			}
			whole, err := chromedp.Run(tab, chromedp.FullScreenshot(100))
			if err != nil {
				t.Fatal(err)
			}
			top, err := chromedp.Run(tab, chromedp.CaptureScreenshot())
			if err != nil {
				t.Fatal(err)
			}
			picture(t, whole, top, int(view.width), view.scheme)
		})
	}
}

// startBrowser fails the test where there is no Chromium.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("the page can't be looked at: %v (Debian: apt-get install chromium)", err)
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.DisableGPU,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(5*time.Minute))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	browser, end := chromedp.NewContext(allocator)
	t.Cleanup(end)
	if err := chromedp.Do(browser); err != nil {
		t.Fatalf("chromium does not start: %v", err)
	}
	return browser
}

// listen returns a function that says what a tab has asked for since.
func listen(t *testing.T, tab context.Context) func() []string {
	t.Helper()
	var mu sync.Mutex
	var asked []string
	err := chromedp.Listen(tab, func(event any) {
		if request, ok := event.(*network.EventRequestWillBeSent); ok {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, request.Request.URL)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(asked)
	}
}

// holdsReport checks that all that the report says can be seen.
func holdsReport(t *testing.T, found inspection, report *page.Report) {
	t.Helper()
	var tables []page.Table
	var charts []page.Chart
	wanted := []string{report.Title, plainText(report.Verdict)}
	for _, s := range report.Sections {
		tables, charts = append(tables, s.Tables...), append(charts, s.Charts...)
		wanted = append(wanted, s.Title, plainText(s.Missing))
		for _, text := range slices.Concat(s.Text, s.Notes, s.Code) {
			wanted = append(wanted, plainText(text))
		}
	}
	for _, h := range report.Highlights {
		wanted = append(wanted, h.Figure.Text, h.Label)
	}
	for _, text := range append(wanted, report.Doubts...) {
		if !strings.Contains(found.Text, strings.Join(strings.Fields(text), " ")) {
			t.Errorf("not to be read on the page: %q", text)
		}
	}
	if len(found.Tables) != len(tables) {
		t.Fatalf("%d tables can be seen, want %d", len(found.Tables), len(tables))
	}
	for i, table := range tables {
		want := append([]string{table.Caption}, table.Columns...)
		for _, row := range table.Rows {
			for _, cell := range row {
				want = append(want, strings.Join(strings.Fields(cell.Text), " "))
			}
		}
		if !slices.Equal(found.Tables[i], want) {
			t.Errorf("table %q: got %q\nwant %q", table.Caption, found.Tables[i], want)
		}
	}
	if len(found.Charts) != len(charts) {
		t.Fatalf("%d charts can be seen, want %d", len(found.Charts), len(charts))
	}
	for i, chart := range charts {
		holdsChart(t, found.Charts[i], chart)
	}
}

// holdsChart checks that a chart names what it shows: its axes, its series, its
// bars with their values.
func holdsChart(t *testing.T, found drawing, chart page.Chart) {
	t.Helper()
	wanted := map[string]bool{}
	for _, panel := range chart.Panels {
		wanted[panel.X.Label] = true
		if panel.Y.Label != "" {
			wanted[panel.Y.Label] = true
		}
		for _, s := range panel.Series {
			wanted[s.Name] = true
		}
		for _, group := range panel.Groups {
			wanted[group.Name] = true
			for _, bar := range group.Bars {
				wanted[bar.Name], wanted[bar.Text] = true, true
			}
		}
	}
	for text := range wanted {
		if !slices.Contains(found.Texts, text) {
			t.Errorf("chart %s: no text %q in %q", found.ID, text, found.Texts)
		}
	}
	if !strings.HasPrefix(found.ID, chart.ID) || !strings.Contains(found.Name, chart.Title) || !strings.Contains(found.Name, chart.Summary) {
		t.Errorf("chart %s is called %q, want %q and %q", found.ID, found.Name, chart.Title, chart.Summary)
	}
}

func plainText(text string) string { return strings.ReplaceAll(text, "`", "") }

// picture checks that screenshots of the whole page and of its top show a page
// in its colours, and keeps the first among the test's artifacts.
func picture(t *testing.T, whole, top []byte, width int, scheme string) {
	t.Helper()
	name := fmt.Sprintf("%d-%s.png", width, scheme)
	if err := os.WriteFile(filepath.Join(t.ArtifactDir(), name), whole, 0o644); err != nil {
		t.Fatal(err)
	}
	size, err := png.DecodeConfig(bytes.NewReader(whole))
	if err != nil || size.Width != width || size.Height < 2000 {
		t.Errorf("the page is %d × %d pixels, want %d wide and much higher: %v", size.Width, size.Height, width, err)
	}
	decoded, err := png.Decode(bytes.NewReader(top))
	if err != nil {
		t.Fatal(err)
	}
	colours := make(map[image.Point]int)
	for y := 0; y < decoded.Bounds().Dy(); y += 3 {
		for x := 0; x < width; x += 3 {
			r, g, b, _ := decoded.At(x, y).RGBA()
			colours[image.Pt(int(r), int(g<<16|b))]++
		}
	}
	if len(colours) < 50 {
		t.Errorf("a picture of %d colours shows nothing", len(colours))
	}
	r, _, _, _ := decoded.At(2, 2).RGBA()
	if light := r > 0x8000; light != (scheme == "light") {
		t.Errorf("the paper's red is %#x in the scheme %s", r, scheme)
	}
}
