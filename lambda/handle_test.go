package lambda

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
)

// panics is a handler that panics with v.
func panics(v any) sqsonce.Handler {
	return func(context.Context, *sqsonce.Message) error { panic(v) }
}

// exits is a handler that calls runtime.Goexit.
func exits(context.Context, *sqsonce.Message) error {
	runtime.Goexit()
	return nil
}

// bad are the handlers whose message must stay in the queue, without a client.
var bad = map[string]sqsonce.Handler{
	"error":                 fails(errTest),
	"RetryAfter":            fails(sqsonce.RetryAfter(time.Minute, errTest)),
	"RetryAfter without":    fails(sqsonce.RetryAfter(0, nil)),
	"Reject":                fails(sqsonce.Reject(errTest)),
	"lease lost":            fails(sqsonce.ErrLeaseLost),
	"in progress":           fails(sqsonce.RetryAfter(time.Minute, sqsonce.ErrInProgress)),
	"in progress, rejected": fails(sqsonce.Reject(sqsonce.ErrInProgress)),
	"panic":                 panics("boom"),
	"panic of an error":     panics(errTest),
	"panic of a reject":     panics(sqsonce.Reject(errTest)),
	"panic of nil":          panics(nil),
	"Goexit":                exits,
}

func TestOneFailureIsTheOnlyOneNamed(t *testing.T) {
	t.Parallel()
	for name, h := range bad {
		for _, concurrency := range []int{1, 10} {
			t.Run(fmt.Sprint(name, concurrency), func(t *testing.T) {
				t.Parallel()
				var r runs
				f := wrap(t, r.wrap(handlers{"2": h}.handle), func(o *Options) { o.Concurrency = concurrency })
				if got := invoke(t, f, t.Context(), batch("1", "2", "3", "4")); got != "2" {
					t.Errorf("failed: got %q, want 2", got)
				}
				if got := r.count(); got != 4 {
					t.Errorf("%d handlers ran, want 4", got)
				}
			})
		}
	}
}

func TestAllOrNothing(t *testing.T) {
	t.Parallel()
	for name, h := range bad {
		f := wrap(t, handlers{"2": h}.handle, func(o *Options) { o.AllOrNothing = true })
		r, err := f(t.Context(), batch("1", "2", "3"))
		if err == nil || !strings.Contains(err.Error(), "1 of 3 messages failed") {
			t.Errorf("%s: got error %v", name, err)
		}
		if r.BatchItemFailures == nil || len(r.BatchItemFailures) != 0 {
			t.Errorf("%s: got %#v with the error, want an empty list", name, r)
		}
	}
	f := wrap(t, handlers{"2": fails(errTest)}.handle, func(o *Options) { o.AllOrNothing = true })
	if _, err := f(t.Context(), batch("1", "2", "3")); !errors.Is(err, errTest) {
		t.Errorf("got %v, want it to wrap the handler's error", err)
	}
	if got := invoke(t, f, t.Context(), batch("1", "3")); got != "" {
		t.Errorf("without a failure: got %q", got)
	}
}

func TestPanicsAreLoggedWithTheirStack(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]sqsonce.Handler{"panic": panics("boom"), "Goexit": exits} {
		var book logBook
		f := wrap(t, h, func(o *Options) { o.Logger = book.logger() })
		invoke(t, f, t.Context(), batch("1"))
		if book.count("handle_test.go") == 0 || book.count("message_id=1") == 0 {
			t.Errorf("%s: no stack of the handler in the log:\n%s", name, &book)
		}
	}
}

// mode is the environment variable that makes the test binary a Lambda function.
const mode = "SQSONCE_TEST_MAIN"

func TestMain(m *testing.M) {
	switch os.Getenv(mode) {
	case "bad":
		Start(nil, func(o *Options) { o.Concurrency, o.DeadLetterQueue = -1, "jobs-dlq" })
		fmt.Println("Start has returned")
	case "delays and rejects":
		Start(func(_ context.Context, msg *sqsonce.Message) error {
			switch msg.Body {
			case "later":
				return sqsonce.RetryAfter(2*time.Hour, errTest)
			case "bad":
				return sqsonce.Reject(errTest)
			}
			return nil
		})
	case "stuck":
		Start(func(_ context.Context, msg *sqsonce.Message) error { select {} }, func(o *Options) { o.Concurrency, o.Abandoned = 2, 1 })
	default:
		os.Exit(m.Run())
	}
}

func TestStartEndsWithBadOptions(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), mode+"=bad")
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("got %v, want status 1", err)
	}
	for _, field := range []string{"handler", "Options.Concurrency", "Options.DeadLetterQueue"} {
		if !strings.Contains(string(out), "lambda: "+field) {
			t.Errorf("%s is not reported:\n%s", field, out)
		}
	}
	if strings.Contains(string(out), "has returned") {
		t.Error("Start has returned")
	}
}
