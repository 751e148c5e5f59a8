package consoletest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/sqsonce/sqsonce/internal/must"
)

// The token of the printed URL becomes a cookie that no script and no other site can use, and is not where people look or copy from.
func TestToken(t *testing.T) {
	w := newWorld(t)
	w.console("--queue", queue)
	_, token, _ := strings.Cut(w.url, "token=")
	if len(token) < 43 { // 256 bits in base64
		t.Fatalf("the token of %s is short", w.url)
	}
	b := w.open()
	if got, _ := chromedp.Run(b.ctx, chromedp.Location()); got != w.base+"/" {
		t.Errorf("the address is %s, want %s/", got, w.base)
	}
	entries := must.Get(chromedp.Run(b.ctx, chromedp.NavigationEntries()))(w)
	for _, e := range entries.Entries {
		if strings.Contains(e.URL, token) {
			t.Errorf("the history has %s", e.URL)
		}
	}
	if got := eval[string](b, "document.cookie + document.documentElement.outerHTML"); strings.Contains(got, token) {
		t.Error("a script of the page can read the token")
	}
	cookies := must.Get(chromedp.Call(b.ctx, network.GetCookies, network.GetCookiesParams{}))(w)
	if len(cookies.Cookies) != 1 || !cookies.Cookies[0].HTTPOnly || cookies.Cookies[0].SameSite != network.CookieSameSiteStrict || !cookies.Cookies[0].Session {
		t.Errorf("cookies: %+v", cookies.Cookies)
	}
}

func cookieOf(t *testing.T, url string) *http.Cookie {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp := must.Get(client.Get(url))(t)
	resp.Body.Close()
	if len(resp.Cookies()) != 1 || resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s with %d cookies", resp.Status, len(resp.Cookies()))
	}
	return resp.Cookies()[0]
}

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
