package cli

import (
	"context"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/console"
)

// browser is somebody at the pages of a console, without a browser's script.
type browser struct {
	*world
	server *console.Server
	cookie *http.Cookie
	opts   console.Options
	root   string // that all pages are below
}

// answer is what a page answered.
type answer struct {
	code         int
	path, to     string // to: of a redirect
	body         string
	text         string // of the body, without tags
	contentTypes string
}

const consoleAddr = "127.0.0.1:4711"

// browse starts a console whose commands are those of the program, with the world's consumer and table. It ends with the test.
func (w *world) browse(write bool, optFns ...func(*console.Options)) *browser {
	w.Helper()
	w.calls.policy = "act"
	s, err := w.connect(context.Background())
	w.must(err)
	a := w.app("")
	a.out, a.err, a.asks = io.Discard, io.Discard, false
	a.flags.consumer, a.flags.table, a.flags.operator = consumer, "dedup", "ann"
	p := &pages{ctx: context.Background(), app: a, services: s}
	b := &browser{world: w}
	b.opts = console.Options{
		Addr: consoleAddr, Write: write, Joined: true, SQS: s.sqs, HTTP: http.DefaultClient, Open: p.open, Record: p.record, Command: p.command,
		Archive: a.newArchive, Logger: slog.New(slog.DiscardHandler),
	}
	for _, name := range []string{"orders", "orders.fifo"} {
		q, err := a.consoleQueue(context.Background(), s, name)
		w.must(err)
		b.opts.Queues = append(b.opts.Queues, q)
	}
	for _, fn := range optFns {
		fn(&b.opts)
	}
	b.server = console.New(b.opts)
	w.Cleanup(b.server.Close)
	u, err := url.Parse(b.server.URL())
	w.must(err)
	rec := httptest.NewRecorder()
	b.server.ServeHTTP(rec, b.request("GET", u.RequestURI(), nil))
	if cookies := rec.Result().Cookies(); len(cookies) == 1 {
		b.cookie, b.root = cookies[0], strings.TrimSuffix(cookies[0].Path, "/")
	} else {
		w.Fatalf("%d cookies: %s", len(cookies), rec.Body)
	}
	return b
}

func (b *browser) request(method, path string, form url.Values) *http.Request {
	r := httptest.NewRequest(method, "http://"+consoleAddr+b.root+path, strings.NewReader(form.Encode()))
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	return r
}

var tags = regexp.MustCompile(`<[^>]*>`)

func (b *browser) send(ctx context.Context, method, path string, form url.Values) answer {
	rec := httptest.NewRecorder()
	b.server.ServeHTTP(rec, b.request(method, path, form).WithContext(ctx))
	body := strings.ReplaceAll(rec.Body.String(), b.root, "")
	b.checkPage(path, body)
	text := strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(body, " "))), " ")
	return answer{rec.Code, path, strings.TrimPrefix(rec.Header().Get("Location"), b.root), body, text, rec.Header().Get("Content-Type")}
}

var (
	idOf      = regexp.MustCompile(`<[^>]* id="([^"]*)"`)
	controls  = regexp.MustCompile(`<(?:input type="text"|select)[^>]*>`)
	unlabeled = regexp.MustCompile(`(?:^|[^>])<input type="checkbox"`) // not right behind its label
	tables    = regexp.MustCompile(`<table>\s*(<caption>)?`)
	headers   = regexp.MustCompile(`<th\b( scope=)?`)
	headings  = regexp.MustCompile(`<h([1-6])`)
)

// checkPage reports what keeps a page from those who do not see it: axe-core sees more, in a browser.
func (b *browser) checkPage(path, body string) {
	b.Helper()
	ids := map[string]bool{}
	for _, id := range idOf.FindAllStringSubmatch(body, -1) {
		if ids[id[1]] {
			b.Errorf("%s: the ID %s is there twice", path, id[1])
		}
		ids[id[1]] = true
	}
	for _, control := range controls.FindAllString(body, -1) {
		id := idOf.FindStringSubmatch(control)
		if id == nil || !strings.Contains(body, `<label for="`+id[1]+`"`) {
			b.Errorf("%s: %s has no label", path, control)
		}
	}
	if unlabeled.MatchString(body) {
		b.Errorf("%s: a checkbox has no label", path)
	}
	for _, table := range tables.FindAllStringSubmatch(body, -1) {
		if table[1] == "" {
			b.Errorf("%s: a table has no caption", path)
		}
	}
	for _, header := range headers.FindAllStringSubmatch(body, -1) {
		if header[1] == "" {
			b.Errorf("%s: a header of a table has no scope", path)
		}
	}
	last := "1"
	for _, heading := range headings.FindAllStringSubmatch(body, -1) {
		if heading[1] > last && heading[1][0]-last[0] > 1 {
			b.Errorf("%s: h%s follows h%s", path, heading[1], last)
		}
		last = heading[1]
	}
}

func (b *browser) get(path string) answer { return b.send(context.Background(), "GET", path, nil) }

// post sends a form of pairs.
func (b *browser) post(path string, pairs ...string) answer {
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return b.send(context.Background(), "POST", path, form)
}

// look looks into a queue, and returns its page.
func (b *browser) look(queue string) answer {
	b.Helper()
	path := "/dlq/" + queue
	if got := b.post(path+"/look", "limit", "1000"); got.code != http.StatusSeeOther || got.to != path {
		b.Fatalf("look: %d to %q: %s", got.code, got.to, got.text)
	}
	return b.get(path)
}

// plan asks for a plan, and returns its page.
func (b *browser) plan(pairs ...string) answer {
	b.Helper()
	got := b.post("/plan", pairs...)
	if got.code != http.StatusSeeOther || !strings.HasPrefix(got.to, "/plan/") {
		b.Fatalf("plan %q: %d to %q: %s", pairs, got.code, got.to, got.text)
	}
	return b.get(got.to)
}

// act confirms the plan of a page.
func (b *browser) act(plan answer, pairs ...string) answer {
	return b.post(strings.Replace(plan.path, "/plan/", "/act/", 1), pairs...)
}

// ended returns the page of a run when it has ended.
func (b *browser) ended(path string) answer {
	b.Helper()
	for range 1000 {
		got := b.get(path)
		if got.code != http.StatusOK {
			b.Fatalf("%s: %d: %s", path, got.code, got.text)
		}
		if !strings.Contains(got.text, "State under way") && !strings.Contains(got.text, "State stopping") {
			return got
		}
		time.Sleep(time.Second)
	}
	b.Fatalf("%s does not end", path)
	return answer{}
}

// called returns how often SQS and DynamoDB were called.
func (b *browser) called() map[string]int {
	n := map[string]int{}
	for _, c := range b.stack.MemSQS().Calls() {
		n[c.Op]++
	}
	for _, c := range b.stack.MemDynamoDB().Calls() {
		n[c.Op]++
	}
	return n
}
