package console

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/must"
)

// Without Options.Write what acts is not there.
func TestReadOnly(t *testing.T) {
	acts := []struct{ method, path string }{
		{"POST", "/plan"}, {"GET", "/plan/x"}, {"POST", "/act/x"}, {"POST", "/runs/x/stop"},
	}
	f := newFixture(t)
	for _, a := range acts {
		if w := f.do(f.request(a.method, a.path, "")); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), errNoPage.Error()) {
			t.Errorf("%s %s: got %d\n%s", a.method, a.path, w.Code, w.Body)
		}
	}
	f.has("/", "read only")
	f = newFixture(t, func(o *Options) { o.Write = true })
	for _, a := range acts {
		if w := f.do(f.request(a.method, a.path, "")); strings.Contains(w.Body.String(), errNoPage.Error()) {
			t.Errorf("with Write: %s %s: there is no such route", a.method, a.path)
		}
	}
	if body := f.has("/"); strings.Contains(body, "read only") {
		t.Error("with Write the page says that it is read only")
	}
	for _, method := range []string{"POST", "PUT", "DELETE"} {
		if w := f.do(f.request(method, "/runs", "")); w.Code != http.StatusNotFound {
			t.Errorf("%s /runs: got %d", method, w.Code)
		}
	}
}

func TestPanics(t *testing.T) {
	f := newFixture(t)
	f.handlePage("GET /broken", "runs", "Broken", func(context.Context, *http.Request) (any, error) { panic("of a page") })
	f.handlePage("GET /template", "runs", "Template", func(context.Context, *http.Request) (any, error) { return 1, nil })
	for path, logged := range map[string]string{"/broken": "of a page", "/template": "a page cannot be made"} {
		w := f.get(path)
		if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "<h1>") {
			t.Errorf("%s: got %d\n%s", path, w.Code, w.Body)
		}
		if !strings.Contains(f.logs.String(), logged) {
			t.Errorf("%s is not logged: %s", path, f.logs)
		}
	}
	f.background(func(context.Context) { panic("in the background") })
	f.behind.Wait()
	if !strings.Contains(f.logs.String(), "in the background") {
		t.Errorf("not logged: %s", f.logs)
	}
	f.has("/runs")
}

func TestBodiesAreBounded(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Write = true })
	long := "x=" + strings.Repeat("x", mostBody)
	for _, path := range []string{"/doctor", "/plan", "/dlq/orders/look"} {
		if w := f.post(path, long); w.Code != http.StatusRequestEntityTooLarge && w.Code != http.StatusBadRequest {
			t.Errorf("%s: got %d", path, w.Code)
		}
	}
	if n := f.called()["ReceiveMessage"]; n != 0 {
		t.Errorf("%d receives", n)
	}
}

// away is an SQS that does not answer.
type away struct{}

func (away) Do(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// Serve ends within its bounds, also where a page and a sample wait for what never answers.
func TestServe(t *testing.T) {
	l := must.Get(net.Listen("tcp4", "127.0.0.1:0"))(t)
	asked := make(chan struct{}, 1)
	f := newFixture(t, func(o *Options) {
		o.Addr = l.Addr().String()
		o.SQS = sqs.New(o.SQS.Options(), func(o *sqs.Options) {
			o.HTTPClient = clientFunc(func(r *http.Request) (*http.Response, error) {
				select {
				case asked <- struct{}{}:
				default:
				}
				return away{}.Do(r)
			})
		})
	})
	entered := make(chan struct{})
	f.handlePage("GET /slow", "runs", "Slow", func(_ context.Context, r *http.Request) (any, error) {
		close(entered)
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Serve(ctx, l) }()
	<-asked // it samples
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar}
	get := func(url string) (int, string) {
		res, err := client.Get(url)
		if err != nil {
			return 0, err.Error()
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(body)
	}
	if code, body := get(f.URL()); code != http.StatusOK || !strings.Contains(body, "not yet") || !strings.Contains(body, "orders-dlq") {
		t.Errorf("got %d\n%s", code, body)
	}
	if conn, err := net.Dial("tcp4", f.opts.Addr); err != nil {
		t.Error(err)
	} else {
		_, _ = io.WriteString(conn, "OPTIONS * HTTP/1.1\r\nHost: "+f.opts.Addr+"\r\nConnection: close\r\n\r\n")
		if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 403 ") {
			t.Errorf("OPTIONS * without a token: got %s, %v", answer, err)
		}
		_ = conn.Close()
	}
	go get("http://" + f.opts.Addr + f.access.path + "/slow")
	<-entered
	begun := time.Now()
	cancel()
	must.Do(t, <-ended)
	if took := time.Since(begun); took > stopTimeout+time.Second {
		t.Errorf("it took %s to end", took)
	}
	if code, body := get(f.URL()); code != 0 {
		t.Errorf("after its end it answers %d\n%s", code, body)
	}
}

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
