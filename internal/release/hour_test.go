//go:build linux

package release

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

var classRow = regexp.MustCompile(`(?m)^([0-9a-f]{6}) `)

// The first hour of docs/operating.md, typed at a terminal: each command prints its heading, and exits as the page shows.
func TestHour(t *testing.T) {
	t.Parallel()
	aws := testserver.LocalStack.Program(t, "aws")
	text := must.Get(os.ReadFile(filepath.Join(repository, "docs/operating.md")))(t)
	_, hour := cutSection(t, string(text), "A first hour")
	before, browser, found := strings.Cut(hour, "\n### In the browser\n")
	if !found {
		t.Fatal("no part about the browser")
	}
	browser, after, found := strings.Cut(browser, "\n### ")
	if !found {
		t.Fatal("no part behind the one about the browser")
	}
	env := append(os.Environ(), "XDG_STATE_HOME="+t.TempDir(), "PATH="+filepath.Dir(aws)+":"+os.Getenv("PATH"), "PYTHONUTF8=1", "AWS_DEFAULT_REGION=us-east-1")
	// A terminal: commands print tables for people.
	shell := exec.Command("script", "--quiet", "--flush", "--return", "--command", "bash --norc --noprofile --noediting -e", "/dev/null")
	s := newSession(t, shell, repository, append(env, "TERM=dumb"), servicesPort, "8080")
	s.loose = true
	s.run(t, "```console\n$ PS1= PS2=; stty -echo cols 140\n```")
	s.run(t, before)
	s.run(t, "```console\n$ echo the classes are shown\nthe classes are shown\n```")
	shown, run := classRow.FindAllString(before, -1), classRow.FindAllString(s.text(), -1)
	if len(shown) == 0 || len(run) != len(shown) {
		t.Fatalf("the page has classes %q, the run %q:\n%s", shown, run, s.text())
	}
	for i := range shown {
		after = strings.ReplaceAll(after, strings.TrimSpace(shown[i]), strings.TrimSpace(run[i]))
	}
	s.run(t, browser)
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/\?token=\S+`).FindString(s.text())
	if address == "" {
		t.Fatalf("the console has no URL:\n%s", s.text())
	}
	lookInBrowser(t, address, run)
	s.run(t, after)
	s.end(t)
}

// lookInBrowser does as somebody does who opens the console's URL and presses Look. Package consoletest does it in a browser.
func lookInBrowser(t *testing.T, address string, classes []string) {
	t.Helper()
	jar := must.Get(cookiejar.New(nil))(t)
	client := &http.Client{Jar: jar, Timeout: time.Minute}
	base := "" // of all pages: where the URL leads to
	page := func(method, url string, form url.Values) string {
		t.Helper()
		r := must.Get(http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, url, strings.NewReader(form.Encode())))(t)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp := must.Get(client.Do(r))(t)
		defer resp.Body.Close() // it is only read
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %s, %v\n%s", method, url, resp.Status, err, body)
		}
		if base == "" {
			base = resp.Request.URL.String()
		}
		return string(body)
	}
	if overview := page(http.MethodGet, address, nil); !strings.Contains(overview, "orders-dlq") {
		t.Errorf("the overview does not name the dead-letter queue:\n%s", overview)
	}
	before := page(http.MethodGet, base+"dlq/orders", nil)
	looked := page(http.MethodPost, base+"dlq/orders/look", url.Values{"limit": {"1000"}})
	for _, class := range classes {
		class = strings.TrimSpace(class)
		if strings.Contains(before, class) || !strings.Contains(looked, class) {
			t.Errorf("class %s is shown before somebody has looked, or is not shown then:\n%s", class, looked)
		}
	}
	if workers := page(http.MethodGet, base+"workers", nil); !strings.Contains(workers, "orders worker") {
		t.Errorf("the worker is not shown:\n%s", workers)
	}
	if doctor := page(http.MethodPost, base+"doctor", url.Values{"queue": {"orders"}}); !strings.Contains(doctor, "has ReportBatchItemFailures") {
		t.Errorf("the doctor's page does not look at the function:\n%s", doctor)
	}
}

// TestAny holds what may differ between the page and a run.
func TestAny(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"ok       Q1  queue orders (standard) reachable, 17 ms": true,
		"FAIL     Q1  queue orders (standard) reachable, 17 ms": false,
		"ok  Q1  queue orders (standard) reachable, x ms":       false,
	} {
		if got := pattern("ok       Q1  queue orders (standard) reachable, 2 ms", true).MatchString(line); got != want {
			t.Errorf("%q: %t, want %t", line, got, want)
		}
	}
	if pattern("bookings 1", false).MatchString("bookings 2") {
		t.Error("a number of a page that is to be exact may differ")
	}
}
