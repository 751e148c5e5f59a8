package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

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
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
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
		res, err := client.Get(address)
		if err != nil {
			t.Fatal(err)
		}
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

// A queue without a dead-letter queue is shown, and why.
func TestConsoleWithoutDeadLetterQueue(t *testing.T) {
	clearEnvironment(t)
	w := newWorld(t, false)
	s, err := w.connect(t.Context())
	w.must(err)
	var notes strings.Builder
	a := w.app("")
	a.err = &notes
	q, err := a.consoleQueue(t.Context(), s, "orders-dlq")
	if err != nil || q.Name != "orders-dlq" || q.DLQURL != "" || !strings.Contains(notes.String(), "is shown without a dead-letter queue") {
		t.Errorf("got %+v, %v, %s", q, err, notes.String())
	}
}

// A dead-letter queue that could not be asked for is not shown as none.
func TestConsoleDeadLetterQueueNotRead(t *testing.T) {
	bubble(t, func(w *world) {
		w.stack.MemSQS().Set(fault.Plan{Rules: []fault.Rule{{Op: "GetQueueAttributes", Prob: 1, Do: fault.Error, Code: "InternalFailure"}}})
		s, err := w.connect(w.Context())
		w.must(err)
		if q, err := w.app("").consoleQueue(w.Context(), s, "orders"); err == nil {
			t.Errorf("got %+v", q)
		}
	})
}
