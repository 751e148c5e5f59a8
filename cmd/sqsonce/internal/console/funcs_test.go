package console

import (
	"strings"
	"testing"
)

func TestVisible(t *testing.T) {
	for _, test := range []struct{ html, want string }{
		{"<p>plain … ✓ 中</p>", "<p>plain … ✓ 中</p>"},
		{"<p>a\u202eb</p>", `<p>a\u202eb</p>`},
		{"<p>a\x1b[31m\x00\x7f</p>", `<p>a\x1b[31m\x00\x7f</p>`},
		{"<p>\xff</p>", `<p>\xff</p>`},
		{"<p>\u200b\ufeff\u2066</p>", `<p>\u200b\ufeff\u2066</p>`},
		{"a\n\tb", "a\n\tb"},
		{"<input value=\"a\u202eb\">c\u202e", `<input value="a&#8238;b">c\u202e`},
	} {
		if got := string(visible([]byte(test.html))); got != test.want {
			t.Errorf("%q: got %q, want %q", test.html, got, test.want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1: "-1", -100: "-100", -1000: "-1,000"} {
		if got := count(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}

func TestNavigation(t *testing.T) {
	for _, test := range []struct{ path, to, want string }{
		{"/", "/", "page"}, {"/workers", "/", ""}, {"/dlq/orders", "/dlq/orders", "page"}, {"/dlq/orders/class/a", "/dlq/orders", "true"},
		{"/dlq/orders2", "/dlq/orders", ""}, {"/runs/x", "/runs", "true"},
	} {
		if got := newNavLink(test.path, test.to, "").Current; got != test.want {
			t.Errorf("at %s, of %s: got %q, want %q", test.path, test.to, got, test.want)
		}
	}
}

// Each page has one h1, names what it is, and has no style or script of its own, which the policy would refuse.
func TestPagesAreWhole(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Write, o.Workers = true, []string{"http://127.0.0.1:1"} })
	f.sampler.sample(t.Context())
	for _, path := range append([]string{"/none"}, pages...) {
		if strings.HasPrefix(path, "/static/") || strings.HasPrefix(path, "/fragment/") {
			continue
		}
		body := f.get(path).Body.String()
		for text, n := range map[string]int{"<h1>": 1, "<main ": 1, "<header>": 1, "<nav ": 1, "<title>": 1, `aria-current="page"`: 1, `aria-live=`: 1, "<script ": 1} {
			if path == "/none" && strings.HasPrefix(text, "aria-current") {
				n = 0
			}
			got := strings.Count(body, text)
			if text == "<title>" { // plots have theirs, with an id
				got = strings.Count(body[:strings.Index(body, "</head>")], text)
			}
			if got != n {
				t.Errorf("%s: %d times %s, want %d", path, got, text, n)
			}
		}
		for _, text := range []string{" style=", "<style", "onclick", "javascript:", "//cdn"} {
			if strings.Contains(body, text) {
				t.Errorf("%s has %s", path, text)
			}
		}
		for part := range strings.SplitSeq(body, "<table") {
			if strings.Contains(part, "<thead") && !strings.Contains(part, "<caption") {
				t.Errorf("%s: a table has no caption", path)
			}
		}
	}
}
