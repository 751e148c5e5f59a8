package cli

import (
	"bufio"
	"context"
	"errors"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/console"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func TestConsoleUsage(t *testing.T) {
	bubble(t, func(w *world) {
		many := slices.Repeat([]string{"--queue", "orders"}, mostQueues+1)
		for _, test := range []struct {
			args []string
			want string
		}{
			{nil, "which queues? Set --queue"},
			{many, "a console shows 50 at most"},
			{[]string{"--queue", "orders", "--port", "65536"}, "port 65536 is not in 0 to 65535"},
			{[]string{"--queue", "orders", "--port", "-1"}, "port -1"},
			{[]string{"--queue", "orders", "--consumer", "billing"}, "which table has the records of consumer billing?"},
			{[]string{"--queue", "orders", "--worker", "10.0.0.7"}, "--worker: "},
			{[]string{"--queue", "orders", "--queue", "orders"}, "queue orders is named twice"},
			{[]string{"--queue", "orders", "--queue", "orders.fifo", "--function", "f"}, "--function is the function of one queue, and there are 2"},
			{[]string{"--queue", "orders", "--limits", "fleet"}, "--limits is about the function"},
			{[]string{"--queue", "orders", "--function", "f", "--limits", "all"}, "--limits is"},
			{[]string{"orders"}, "unknown command"},
		} {
			if got := w.run(append([]string{"console"}, test.args...)...); got.code != exitUsage || !strings.Contains(got.err, test.want) {
				t.Errorf("%q: got %+v", test.args, got)
			}
		}
		if got := w.run("console", "--queue", "none"); got.code != exitFailed {
			t.Errorf("a queue that is not there: got %+v", got)
		}
		w.stack.MemSQS().Set(fault.Plan{Rules: []fault.Rule{{Op: "GetQueueAttributes", Prob: 1, Do: fault.Error, Code: "AccessDeniedException"}}})
		if got := w.run("console", "--queue", "orders"); got.code != exitDenied || !strings.Contains(got.err, "needs: sqs:GetQueueAttributes") {
			t.Errorf("denied: got %+v", got)
		}
	})
}

// The command prints its URL at once, serves until it is interrupted, and ends with 0.
func TestConsole(t *testing.T) {
	clearEnvironment(t)
	w := newWorld(t, false)
	a := w.app("")
	out, printed := io.Pipe()
	a.out = printed
	ctx, interrupt := context.WithCancelCause(t.Context())
	ended := make(chan exitCode, 1)
	go func() {
		code := a.run(ctx, []string{"console", "--queue", "orders", "--queue", "orders.fifo"})
		printed.Close()
		ended <- code
	}()
	line := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
	url := strings.TrimSpace(line)
	if !regexp.MustCompile(`^http://127\.0\.0\.1:[0-9]+/\?token=[A-Za-z0-9_-]{43}$`).MatchString(url) {
		t.Fatalf("it prints %q", line)
	}
	jar, _ := cookiejar.New(nil)
	client, home := &http.Client{Jar: jar}, ""
	for _, page := range []string{"", "/workers", "/dlq/orders", "/dlq/orders.fifo", "/record", "/runs", "/doctor"} {
		address := url
		if page != "" {
			address = home + page
		}
		res := must.Get(client.Get(address))(t)
		if home == "" {
			home = strings.TrimSuffix(res.Request.URL.String(), "/")
		}
		body, err := io.ReadAll(res.Body)
		if errors.Join(err, res.Body.Close()) != nil || res.StatusCode != http.StatusOK || res.Request.URL.RawQuery != "" || !strings.Contains(string(body), "orders-dlq.fifo") {
			t.Errorf("%s: got %d at %s\n%s", page, res.StatusCode, res.Request.URL, body)
		}
	}
	// Another one cannot have its port.
	port := url[len("http://127.0.0.1:"):strings.Index(url, "/?")]
	if n, err := strconv.Atoi(port); err != nil || n == 0 {
		t.Errorf("the port is %s", port)
	}
	if got := w.run("console", "--queue", "orders", "--port", port); got.code != exitFailed || !strings.Contains(got.err, "address already in use") {
		t.Errorf("a second console on its port: %+v", got)
	}
	interrupt(errInterrupted)
	if code := <-ended; code != exitDone {
		t.Errorf("it ended with %d", code)
	}
	client.CloseIdleConnections()
}

// A queue without a dead-letter queue is shown, and why. A dead-letter queue that could not be asked for is not shown as none.
func TestConsoleWithoutDeadLetterQueue(t *testing.T) {
	bubble(t, func(w *world) {
		s := must.Get(w.connect(w.Context()))(w)
		var notes strings.Builder
		a := w.app("")
		a.err = &notes
		q, err := a.consoleQueue(w.Context(), s, "orders-dlq")
		if err != nil || q.Name != "orders-dlq" || q.DLQURL != "" || !strings.Contains(notes.String(), "is shown without a dead-letter queue") {
			t.Errorf("got %+v, %v, %s", q, err, notes.String())
		}
		w.stack.MemSQS().Set(fault.Plan{Rules: []fault.Rule{{Op: "GetQueueAttributes", Prob: 1, Do: fault.Error, Code: "InternalFailure"}}})
		if q, err := a.consoleQueue(w.Context(), s, "orders"); err == nil {
			t.Errorf("got %+v", q)
		}
	})
}

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
	must.Do(w, err)
	a := w.app("")
	a.out, a.err, a.asks = io.Discard, io.Discard, false
	a.flags.consumer, a.flags.table, a.flags.operator = consumer, "dedup", "ann"
	p := &pages{ctx: context.Background(), app: a, services: s}
	b := &browser{world: w}
	b.opts = console.Options{
		Addr: consoleAddr, Write: write, Joined: true, SQS: s.sqs, HTTP: http.DefaultClient, Open: p.open, Record: p.record, Command: p.command, Typed: p.typed,
		Archive: a.newArchive, Logger: slog.New(slog.DiscardHandler),
	}
	for _, name := range []string{"orders", "orders.fifo"} {
		q := must.Get(a.consoleQueue(context.Background(), s, name))(w)
		b.opts.Queues = append(b.opts.Queues, q)
	}
	for _, fn := range optFns {
		fn(&b.opts)
	}
	b.server = console.New(b.opts)
	w.Cleanup(b.server.Close)
	u := must.Get(url.Parse(b.server.URL()))(w)
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
	text := strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(body, " "))), " ")
	return answer{rec.Code, path, strings.TrimPrefix(rec.Header().Get("Location"), b.root), body, text, rec.Header().Get("Content-Type")}
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
