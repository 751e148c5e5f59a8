package consoletest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"
)

// A page of another server of this computer is of the same site: the browser sends the cookie with its forms, and they must not work.
// It does not give the cookie to that server.
func TestForeignPage(t *testing.T) {
	w := newWorld(t)
	w.seed()
	w.console("--queue", queue, "--write")
	b := w.open()
	action := w.action(b, "/dlq/"+queue, "Look")
	foreign := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if len(r.Cookies()) > 0 {
			t.Errorf("the browser gives the cookie to a server of another port: %v", r.Cookies())
		}
		rw.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(rw, `<!DOCTYPE html><title>x</title><link rel="icon" href="data:,"><form method="post" action="%s"><button>Win a prize</button></form>`, action)
	}))
	defer foreign.Close()
	b.allow("403")
	before := w.calls()
	b.load(chromedp.Navigate(foreign.URL))
	if status := b.load(b.click("Win a prize")); status != http.StatusForbidden {
		t.Errorf("status %d\n%s", status, b.dump())
	}
	if acts := w.acted(before); len(acts) > 0 {
		t.Errorf("calls: %v", acts)
	}
}
