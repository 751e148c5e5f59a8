package consoletest

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	links = regexp.MustCompile(`(?:href|src|data-live)="([^"]*)"`)
	forms = regexp.MustCompile(`<form[^>]*>`)
	value = regexp.MustCompile(`(action|method)="([^"]*)"`)
)

// crawl gets every page that links lead to, and each form's action too, and returns the paths of links with their pages and the
// actions of forms that POST.
func (w *world) crawl() (pages map[string]string, actions []string) {
	w.Helper()
	cookie := w.cookie()
	get := func(path string) (int, string) {
		status, header, text := w.ask(http.MethodGet, path, func(r *http.Request) { r.AddCookie(cookie) })
		if !strings.HasPrefix(header.Get("Content-Type"), "text/html") {
			text = "" // a script, which has links in comments
		}
		return status, text
	}
	pages = map[string]string{}
	for todo := []string{"/"}; len(todo) > 0; {
		path := todo[0]
		todo = todo[1:]
		if _, seen := pages[path]; seen {
			continue
		}
		status, text := get(path)
		pages[path] = text
		if status != http.StatusOK {
			w.Errorf("GET %s: status %d", path, status)
		}
		from, err := url.Parse(path)
		w.must(err)
		resolve := func(ref string) string {
			to, err := from.Parse(html.UnescapeString(ref))
			w.must(err)
			to.Fragment = ""
			if to.IsAbs() {
				w.Errorf("%s leads to %s", path, to)
				return path
			}
			return to.String()
		}
		for _, found := range links.FindAllStringSubmatch(text, -1) {
			todo = append(todo, resolve(found[1]))
		}
		for _, form := range forms.FindAllString(text, -1) {
			attrs := map[string]string{}
			for _, a := range value.FindAllStringSubmatch(form, -1) {
				attrs[a[1]] = a[2]
			}
			if action := resolve(attrs["action"]); !strings.EqualFold(attrs["method"], "post") {
				todo = append(todo, action)
			} else if !slices.Contains(actions, action) {
				actions = append(actions, action)
				get(action) // is refused, or is a page; that it does nothing is what counts
			}
		}
	}
	return pages, actions
}

// No GET receives or changes anything, before a look and after: of pages that links lead to, of fragments, of what forms POST to.
func TestGetChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.seed()
	w.seedHostile()
	w.seedGroups()
	w.console("--queue", queue, "--queue", fifo, "--worker", w.consume(), "--write")
	b := w.open()
	before := w.calls()
	first, _ := w.crawl()
	if acts := w.acted(before); len(acts) > 0 {
		t.Fatalf("calls: %v", acts)
	}
	for _, q := range []string{queue, fifo} {
		w.look(b, q)
	}
	before = w.calls()
	all, actions := w.crawl()
	if acts := w.acted(before); len(acts) > 0 {
		t.Errorf("calls after a look: %v", acts)
	}
	// That much was there to be found: the pages of messages and records too.
	if len(all) < len(first)+releasedMessages || len(actions) < 4 {
		t.Errorf("%d and %d pages, actions %v", len(first), len(all), actions)
	}
	w.stop()

	// Without --write those actions do not exist.
	read := newWorld(t)
	read.seed()
	read.console("--queue", queue, "--queue", fifo)
	cookie := read.cookie()
	before = read.calls()
	for _, action := range actions {
		if strings.HasSuffix(action, "/look") || action == "/doctor" {
			continue
		}
		status, _, text := read.ask(http.MethodPost, action, func(r *http.Request) { r.AddCookie(cookie) })
		if status != http.StatusNotFound && status != http.StatusMethodNotAllowed {
			t.Errorf("POST %s of a console that is read only: status %d: %s", action, status, text)
		}
	}
	if acts := read.acted(before); len(acts) > 0 {
		t.Errorf("calls: %v", acts)
	}
}
