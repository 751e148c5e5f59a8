package consoletest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// The other tests rely on that a tab notices what a page does wrong.
func TestTabNotices(t *testing.T) {
	for name, test := range map[string]struct{ body, problem string }{
		"a dialog":     {`<script nonce="n">alert("hello")</script>`, `a dialog says "hello"`},
		"the console":  {`<script nonce="n">console.log("hello")</script>`, `a script wrote to the console: log ["\"hello\""]`},
		"an exception": {`<script nonce="n">null.x</script>`, "a script failed"},
		"elsewhere":    {`<img src="http://192.0.2.1/x.png" alt="">`, "a page asked for http://192.0.2.1/x.png"},
		"a policy":     {`<p style="color: red">x</p>`, "Content Security Policy"},
		"not found":    {`<img src="/none" alt="">`, "404"},
		"nothing":      {`<p>x</p>`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/" {
					http.NotFound(w, r)
					return
				}
				w.Header().Set("Content-Security-Policy", "style-src 'self'; script-src 'nonce-n'")
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprintf(w, `<!DOCTYPE html><title>x</title><link rel="icon" href="data:,">%s`, test.body)
			}))
			defer server.Close()
			b := newTab(t)
			b.do(chromedp.Navigate(server.URL))
			if test.problem == "" {
				return // its end fails for what it found
			}
			heard := func() string { return strings.Join(b.found(), "\n") }
			eventually(t, test.problem, func() bool { return strings.Contains(heard(), test.problem) }, heard)
			b.allow(test.problem)
			b.allow("Failed to load resource: net::") // the server elsewhere
		})
	}
}

// And that axe-core finds something.
func TestAxeFinds(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!DOCTYPE html><html lang="en"><title>x</title><style>@media (prefers-color-scheme: dark) { p { color: #eee } }</style>
			<main><h1>x</h1><p>pale</p><input></main></html>`)
	}))
	defer server.Close()
	b := newTab(t)
	b.do(chromedp.Navigate(server.URL))
	if got := strings.Join(b.violations("light"), "\n"); !strings.Contains(got, "label") || strings.Contains(got, "color-contrast") {
		t.Errorf("light: %s", got)
	}
	if got := strings.Join(b.violations("dark"), "\n"); !strings.Contains(got, "label") || !strings.Contains(got, "color-contrast") {
		t.Errorf("dark: %s", got)
	}
}
