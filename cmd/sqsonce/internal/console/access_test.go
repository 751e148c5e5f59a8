package console

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// pages are the addresses of every GET that needs nothing but the queues.
var pages = []string{
	"/", "/?queue=orders", "/dlq/orders", "/dlq/jobs.fifo", "/record", "/record?key=billing%23a", "/workers", "/runs", "/doctor",
	"/fragment/queues", "/fragment/workers", "/fragment/runs", "/fragment/doctor", "/static/style.css", "/static/console.js", "/static/icon.svg",
}

func TestAccess(t *testing.T) {
	f := newFixture(t)
	for name, test := range map[string]struct {
		change func(*http.Request)
		get    int
		post   int
	}{
		"let in":                  {func(*http.Request) {}, 200, 303},
		"localhost":               {func(r *http.Request) { r.Host = "localhost:8123" }, 200, 303},
		"its own origin":          {func(r *http.Request) { r.Header.Set("Origin", "http://"+addr) }, 200, 303},
		"same origin":             {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-origin") }, 200, 303},
		"address bar":             {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") }, 200, 303},
		"other host":              {func(r *http.Request) { r.Host = "evil.example:8123" }, 403, 403},
		"other port":              {func(r *http.Request) { r.Host = "127.0.0.1:8124" }, 403, 403},
		"no port":                 {func(r *http.Request) { r.Host = "127.0.0.1" }, 403, 403},
		"another loopback":        {func(r *http.Request) { r.Host = "127.0.0.2:8123" }, 403, 403},
		"IPv6":                    {func(r *http.Request) { r.Host = "[::1]:8123" }, 403, 403},
		"no host":                 {func(r *http.Request) { r.Host = "" }, 403, 403},
		"no cookie":               {func(r *http.Request) { r.Header.Del("Cookie") }, 403, 403},
		"wrong cookie":            {cookie("sqsonce-8123", strings.Repeat("A", 43)), 403, 403},
		"empty cookie":            {cookie("sqsonce-8123", ""), 403, 403},
		"part of the token":       {cookie("sqsonce-8123", f.access.token[:42]), 403, 403},
		"cookie of another name":  {cookie("sqsonce-8124", f.access.token), 403, 403},
		"two cookies of the name": {func(r *http.Request) { r.Header.Set("Cookie", "sqsonce-8123=old; "+r.Header.Get("Cookie")) }, 200, 303},
		"cross-site":              {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 200, 403},
		"another port's page":     {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, 200, 403},
		"other origin":            {func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 200, 403},
		"no origin":               {func(r *http.Request) { r.Header.Set("Origin", "null") }, 200, 403},
	} {
		r := f.request("GET", "/", "")
		if test.change(r); f.do(r).Code != test.get {
			t.Errorf("%s: GET: got %d, want %d", name, f.do(r).Code, test.get)
		}
		r = f.request("POST", "/doctor", "queue=orders")
		if test.change(r); f.do(r).Code != test.post {
			t.Errorf("%s: POST: got another status than %d", name, test.post)
		}
	}
}

func cookie(name, value string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Del("Cookie")
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
}

func TestEveryPageNeedsTheToken(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Write = true })
	for _, path := range append([]string{"/none", "/plan/x", "/runs/x"}, pages...) {
		for _, method := range []string{"GET", "HEAD", "POST", "OPTIONS", "PUT"} {
			r := f.request(method, path, "")
			r.Header.Del("Cookie")
			w := f.do(r)
			if w.Code != http.StatusForbidden {
				t.Errorf("%s %s: got %d", method, path, w.Code)
			}
			if body := w.Body.String(); strings.Contains(body, "orders") || strings.Contains(body, "<nav") || strings.Contains(body, "/static/") {
				t.Errorf("%s %s: shows what it has to whoever asks:\n%s", method, path, body)
			}
		}
	}
}

// The token of the URL becomes a cookie, and leaves the address bar.
func TestToken(t *testing.T) {
	f := newFixture(t)
	url := f.URL()
	token := strings.TrimPrefix(url, "http://"+addr+"/?token=")
	if raw, err := base64.RawURLEncoding.DecodeString(token); err != nil || len(raw) != 32 {
		t.Fatalf("the token %q has %d bytes, %v", token, len(raw), err)
	}
	if again := newFixture(t).access.token; again == token {
		t.Error("two consoles have one token")
	}
	open := func(method, path string) *http.Response {
		r := f.request(method, path, "")
		r.Header.Del("Cookie")
		return f.do(r).Result()
	}
	got := open("GET", "/?token="+token)
	if got.StatusCode != http.StatusSeeOther || got.Header.Get("Location") != f.access.path+"/" {
		t.Errorf("got %d to %q, want a redirect to /", got.StatusCode, got.Header.Get("Location"))
	}
	if len(got.Cookies()) != 1 {
		t.Fatalf("cookies: %v", got.Header["Set-Cookie"])
	}
	c := got.Cookies()[0]
	if c.Name != "sqsonce-8123" || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != f.access.path+"/" || c.Domain != "" || c.MaxAge != 0 || !c.Expires.IsZero() {
		t.Errorf("got the cookie %v", c)
	}
	r := f.request("GET", "/", "")
	r.Header.Del("Cookie")
	r.AddCookie(c)
	if w := f.do(r); w.Code != http.StatusOK {
		t.Errorf("with the cookie: got %d", w.Code)
	}
	for _, test := range []struct{ method, path string }{
		{"GET", "/?token=" + strings.Repeat("A", 43)}, {"GET", "/?token="}, {"GET", "/workers?token=" + token}, {"POST", "/?token=" + token},
		{"GET", "//evil.example/?token=" + token}, {"GET", "/%2Fevil.example?token=" + token},
	} {
		got := open(test.method, test.path)
		if got.StatusCode != http.StatusForbidden || len(got.Cookies()) != 0 || got.Header.Get("Location") != "" {
			t.Errorf("%s %s: got %d, %v", test.method, test.path, got.StatusCode, got.Header)
		}
	}
	if w := f.get("/?token=wrong"); w.Code != http.StatusForbidden {
		t.Errorf("a wrong token beside the cookie: got %d", w.Code)
	}
}

// Browsers send the cookie of 127.0.0.1 to each of its ports, for the cookie's path: so that is one that no other server can know of.
func TestPathOfTheCookie(t *testing.T) {
	f := newFixture(t)
	if other := newFixture(t).access.path; len(f.access.path) < 26 || other == f.access.path {
		t.Errorf("the paths of two consoles are %s and %s", f.access.path, other)
	}
	do := func(path string) *httptest.ResponseRecorder {
		r := f.request("GET", "/?token=", "")
		r.URL.Path, r.URL.RawQuery = path, ""
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		return w
	}
	for _, path := range append([]string{f.access.path, f.access.path + "x/", "/x" + f.access.path + "/"}, pages...) {
		if w := do(strings.Split(path, "?")[0]); w.Code != http.StatusForbidden || strings.Contains(w.Body.String(), f.access.path) || w.Header().Get("Location") != "" {
			t.Errorf("%s: got %d to %s\n%s", path, w.Code, w.Header().Get("Location"), w.Body)
		}
	}
	// Every link, and every redirect, is below the path.
	links := regexp.MustCompile(`(?:href|src|action|data-live)="(/[^"]*)"`)
	for _, path := range append([]string{"/none"}, pages...) {
		w := do(f.access.path + strings.Split(path, "?")[0])
		found := links.FindAllStringSubmatch(w.Body.String(), -1)
		if len(found) < 5 && !strings.HasPrefix(path, "/fragment/") && !strings.HasPrefix(path, "/static/") {
			t.Errorf("%s has %d links", path, len(found))
		}
		for _, link := range found {
			if !strings.HasPrefix(link[1], f.access.path+"/") {
				t.Errorf("%s has a link to %s", path, link[1])
			}
		}
	}
	if to := do(f.access.path + "//runs").Header().Get("Location"); to != f.access.path+"/runs" {
		t.Errorf("redirected to %s", to)
	}
	// What only looks like a link stays what it is.
	f.handlePage("GET /text", "error", "Text", func(context.Context, *http.Request) (any, error) {
		return errorData{Text: `a href="/b" action='/c`}, nil
	})
	if body := do(f.access.path + "/text").Body.String(); !strings.Contains(body, `a href=&#34;/b&#34; action=&#39;/c`) {
		t.Errorf("a text is changed:\n%s", body)
	}
}

func TestHeaders(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Write = true })
	f.handlePage("GET /broken", "runs", "Broken", func(context.Context, *http.Request) (any, error) { panic("broken") })
	requests := []*http.Request{
		f.request("GET", "/none", ""), f.request("DELETE", "/runs", ""), f.request("OPTIONS", "/", ""), f.request("GET", "/broken", ""),
		f.request("GET", "/dlq/none", ""), f.request("POST", "/doctor", "queue=orders"), f.request("POST", "/doctor", "queue="+strings.Repeat("x", mostBody)),
		f.request("GET", "/?token="+f.access.token, ""), f.request("GET", "/?token=x", ""), f.request("POST", "/plan", "op=x"), f.request("GET", "//dlq/orders", ""),
	}
	for _, path := range pages {
		requests = append(requests, f.request("GET", path, ""), f.request("HEAD", path, ""))
	}
	seen := map[int]bool{}
	for _, r := range requests {
		w := f.do(r)
		seen[w.Code] = true
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := w.Result().Header[name]; len(got) != 1 || got[0] != want {
				t.Errorf("%s %s: %d has %s: %q", r.Method, r.URL, w.Code, name, got)
			}
		}
	}
	for _, status := range []int{200, 303, 400, 403, 404, 413, 500} {
		if !seen[status] {
			t.Errorf("no answer was a %d: %v", status, seen)
		}
	}
}
