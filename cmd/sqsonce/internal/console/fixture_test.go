package console

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/doctor"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/testworld"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/internal/testlog"
	"github.com/sqsonce/sqsonce/localstack"
)

const addr = "127.0.0.1:8123"

// fixture is a console in front of an AWS in memory with the queues "orders" and "jobs.fifo", and their dead-letter queues.
type fixture struct {
	*testing.T
	*Server
	stack *localstack.Stack
	logs  *testlog.Book
}

func newFixture(t *testing.T, optFns ...func(*Options)) *fixture {
	t.Helper()
	stack := testworld.Start(t, func(o *localstack.Options) {
		o.InMemory, o.Queues = true, []localstack.Queue{{Name: "orders"}, {Name: "jobs.fifo"}}
	})
	f := &fixture{T: t, stack: stack, logs: &testlog.Book{}}
	opts := Options{
		Addr: addr, SQS: stack.SQS, Logger: slog.New(slog.NewTextHandler(f.logs, nil)),
		Queues: []Queue{
			{Name: "orders", URL: stack.QueueURL["orders"], DLQName: "orders-dlq", DLQURL: stack.QueueURL["orders-dlq"]},
			{Name: "jobs.fifo", URL: stack.QueueURL["jobs.fifo"], DLQName: "jobs-dlq.fifo", DLQURL: stack.QueueURL["jobs-dlq.fifo"]},
		},
		Open: func(ctx context.Context, q Queue) (*ops.DLQ, error) { return ops.Open(ctx, stack.SQS, q.DLQURL) },
		Doctor: func(context.Context, Queue) []doctor.Finding {
			return []doctor.Finding{{ID: "Q1", Verdict: doctor.OK, Text: "reachable"}}
		},
		Command: func(_ context.Context, _, err io.Writer, args ...string) int {
			_, _ = io.WriteString(err, "sqsonce: no command in this test: "+strings.Join(args, " "))
			return exitFailed
		},
		Typed: func(queue string, args ...string) string {
			return "sqsonce " + strings.Join(append(args, "--queue", queue), " ")
		},
		Archive: func(string) (string, error) { return "archive.jsonl", nil },
	}
	for _, fn := range optFns {
		fn(&opts)
	}
	f.Server = New(opts)
	t.Cleanup(f.Server.Close)
	return f
}

// request is one of a browser that was let in.
func (f *fixture) request(method, path, form string) *http.Request {
	if !strings.HasPrefix(path, "/?token=") {
		path = f.access.path + path
	}
	r := httptest.NewRequestWithContext(f.Context(), method, "http://"+addr+path, strings.NewReader(form))
	r.AddCookie(&http.Cookie{Name: f.access.cookie, Value: f.access.token})
	if form != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return r
}

func (f *fixture) do(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	// The tests know the pages without the path that they are below.
	w.Body = bytes.NewBuffer(bytes.ReplaceAll(w.Body.Bytes(), []byte(f.access.path), nil))
	if to := w.Result().Header.Get("Location"); to != "" {
		w.Header().Set("Location", strings.TrimPrefix(to, f.access.path))
	}
	return w
}

func (f *fixture) get(path string) *httptest.ResponseRecorder {
	return f.do(f.request("GET", path, ""))
}

func (f *fixture) post(path, form string) *httptest.ResponseRecorder {
	return f.do(f.request("POST", path, form))
}

// has checks that a page is shown, with some texts.
func (f *fixture) has(path string, texts ...string) string {
	f.Helper()
	w := f.get(path)
	if w.Code != http.StatusOK {
		f.Fatalf("%s: got %d\n%s", path, w.Code, w.Body)
	}
	for _, text := range texts {
		if !strings.Contains(w.Body.String(), text) {
			f.Errorf("%s has no %q:\n%s", path, text, w.Body)
		}
	}
	return w.Body.String()
}

// called counts the calls that SQS had.
func (f *fixture) called() map[string]int {
	n := map[string]int{}
	for _, c := range f.stack.MemSQS().Calls() {
		n[c.Op]++
	}
	return n
}
