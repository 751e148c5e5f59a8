package console

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
)

// access lets in who has the token, and only what a browser sends for a page of this console. 127.0.0.1 alone keeps out neither
// pages of other sites, nor other users of the computer.
type access struct {
	hosts  []string
	token  string // 256 bits
	cookie string // its name
	path   string // that all pages are below, "/..."
	origin *http.CrossOriginProtection
}

const tokenBytes = 32

func newAccess(addr string) *access {
	secret := make([]byte, tokenBytes)
	_, _ = rand.Read(secret) // never fails: it ends the process where there is no randomness
	_, port, _ := net.SplitHostPort(addr)
	return &access{
		hosts: []string{addr, net.JoinHostPort("localhost", port)}, token: base64.RawURLEncoding.EncodeToString(secret),
		// Browsers send cookies of one host to all of its ports, which other users of the computer may serve: but only with requests for
		// the cookie's path, and nobody else knows that.
		cookie: "sqsonce-" + port, path: "/" + rand.Text(),
		origin: http.NewCrossOriginProtection(),
	}
}

// setHeaders sets those of every answer, errors too. There is no exception in the policy: no page has a style or script of its own.
func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin") // a page of another port is of the same site
}

var (
	errOtherHost = errors.New("the request is for another host than this console's: open the URL that it printed")
	errNoToken   = errors.New("who opens the console needs the URL that it printed when it was started: that has a token, which others have not")
)

// admit says whether the request may go on: not where it was answered, or there is an error.
func (a *access) admit(w http.ResponseWriter, r *http.Request) (bool, error) {
	if !slices.Contains(a.hosts, r.Host) { // a name that somebody points at 127.0.0.1: its pages would be of one origin with ours
		return false, errOtherHost
	}
	if err := a.origin.Check(r); err != nil {
		return false, err
	}
	home := a.path + "/"
	if token := r.URL.Query().Get("token"); r.URL.Path == "/" && token != "" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		if !a.is(token) {
			return false, errNoToken
		}
		http.SetCookie(w, &http.Cookie{Name: a.cookie, Value: a.token, Path: home, HttpOnly: true, SameSite: http.SameSiteStrictMode})
		http.Redirect(w, r, home, http.StatusSeeOther) // out of the address bar, and of what remembers it
		return false, nil
	}
	for _, c := range r.CookiesNamed(a.cookie) {
		if a.is(c.Value) && strings.HasPrefix(r.URL.EscapedPath(), home) {
			return true, nil
		}
	}
	return false, errNoToken
}

func (a *access) is(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(a.token)) == 1
}

// below hands a request on without the path that all pages are below, and adds that to the links and redirects of the answer: pages
// know nothing of it.
func (a *access) below(pages http.Handler) http.Handler {
	var links []string
	for _, attribute := range []string{"href", "src", "action", "data-live"} {
		link := " " + attribute + `="` // of a template: in what comes from strangers html/template writes no "
		links = append(links, link+"/", link+a.path+"/")
	}
	replacer := strings.NewReplacer(links...)
	return http.StripPrefix(a.path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pages.ServeHTTP(&belowWriter{w, a.path, replacer}, r)
	}))
}

type belowWriter struct {
	http.ResponseWriter
	path  string
	links *strings.Replacer
}

func (w *belowWriter) WriteHeader(status int) {
	if to := w.Header().Get("Location"); strings.HasPrefix(to, "/") {
		w.Header().Set("Location", w.path+to)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write gets a page as a whole: no link is cut in two.
func (w *belowWriter) Write(p []byte) (int, error) {
	if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		return w.ResponseWriter.Write(p)
	}
	if _, err := w.links.WriteString(w.ResponseWriter, string(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
