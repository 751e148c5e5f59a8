package consoletest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
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
	entries, err := chromedp.Run(b.ctx, chromedp.NavigationEntries())
	w.must(err)
	for _, e := range entries.Entries {
		if strings.Contains(e.URL, token) {
			t.Errorf("the history has %s", e.URL)
		}
	}
	if got := eval[string](b, "document.cookie + document.documentElement.outerHTML"); strings.Contains(got, token) {
		t.Error("a script of the page can read the token")
	}
	cookies, err := chromedp.Call(b.ctx, network.GetCookies, network.GetCookiesParams{})
	w.must(err)
	if len(cookies.Cookies) != 1 || !cookies.Cookies[0].HTTPOnly || cookies.Cookies[0].SameSite != network.CookieSameSiteStrict || !cookies.Cookies[0].Session {
		t.Errorf("cookies: %+v", cookies.Cookies)
	}
}

// cookie is that of a browser that has opened the printed URL.
func (w *world) cookie() *http.Cookie {
	w.Helper()
	return cookieOf(w.T, w.url)
}

func cookieOf(t *testing.T, url string) *http.Cookie {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if len(resp.Cookies()) != 1 || resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s with %d cookies", resp.Status, len(resp.Cookies()))
	}
	return resp.Cookies()[0]
}

// ask sends a request without a browser, which keeps to none of its rules.
func (w *world) ask(method, path string, change func(*http.Request)) (status int, header http.Header, text string) {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), method, w.base+path, nil)
	w.must(err)
	change(r)
	resp, err := http.DefaultTransport.RoundTrip(r)
	w.must(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	w.must(err)
	return resp.StatusCode, resp.Header, strings.ReplaceAll(string(body), w.root, "")
}

// Who has no token, or comes by another name, or from a page of another server, gets nothing, and sets nothing off.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	w.seed()
	w.console("--queue", queue, "--write")
	cookie, before := w.cookie(), w.calls()
	for name, change := range map[string]func(*http.Request){
		"no token": func(*http.Request) {},
		"another token": func(r *http.Request) {
			r.AddCookie(&http.Cookie{Name: cookie.Name, Value: strings.Repeat("A", len(cookie.Value))})
		},
		"another token in URL": func(r *http.Request) { r.URL.RawQuery = "token=" + strings.Repeat("A", len(cookie.Value)) },
		"another Host":         func(r *http.Request) { r.AddCookie(cookie); r.Host = "console.example:" + r.URL.Port() },
		"another port of Host": func(r *http.Request) { r.AddCookie(cookie); r.Host = "127.0.0.1:1" },
		"another Host and URL": func(r *http.Request) {
			r.URL.RawQuery = "token=" + cookie.Value
			r.Host = "console.example:" + r.URL.Port()
		},
	} {
		for _, path := range []string{"/", "/dlq/" + queue, "/record?key=x", "/workers", "/runs", "/doctor", "/static/style.css", "/none"} {
			status, header, text := w.ask(http.MethodGet, path, change)
			if path != "/" && name == "another token in URL" && status == http.StatusForbidden {
				continue
			}
			if status != http.StatusForbidden || strings.Contains(text, dlq) || len(header["Set-Cookie"]) != 0 {
				t.Errorf("%s: GET %s: status %d: %s", name, path, status, text)
			}
		}
	}
	for name, value := range map[string][2]string{"an origin": {"Origin", "http://127.0.0.1:1"}, "a site": {"Sec-Fetch-Site", "same-site"}} {
		status, _, _ := w.ask(http.MethodPost, "/dlq/"+queue+"/look", func(r *http.Request) { r.AddCookie(cookie); r.Header.Set(value[0], value[1]) })
		if status != http.StatusForbidden {
			t.Errorf("POST with %s: status %d", name, status)
		}
	}
	if acts := w.acted(before); len(acts) > 0 {
		t.Errorf("calls: %v", acts)
	}
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

// What a browser must be told of every answer.
func TestHeaders(t *testing.T) {
	w := newWorld(t)
	w.console("--queue", queue)
	cookie := w.cookie()
	for _, path := range []string{"/", "/dlq/" + queue, "/none", "/static/style.css", "/static/none"} {
		for name, change := range map[string]func(*http.Request){"token": func(r *http.Request) { r.AddCookie(cookie) }, "none": func(*http.Request) {}} {
			_, h, _ := w.ask(http.MethodGet, path, change)
			policy := h.Get("Content-Security-Policy")
			if !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "data:") ||
				!strings.Contains(policy, "frame-ancestors 'none'") || h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s, %s: %v", path, name, h)
			}
		}
	}
}
