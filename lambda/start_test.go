package lambda

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
)

// mode is the environment variable that makes the test binary a Lambda function.
const mode = "SQSONCE_TEST_MAIN"

func TestMain(m *testing.M) {
	switch os.Getenv(mode) {
	case "bad":
		Start(nil, func(o *Options) { o.Concurrency, o.DeadLetterQueue = -1, "jobs-dlq" })
		fmt.Println("Start has returned")
	case "good":
		Start(func(_ context.Context, msg *sqsonce.Message) error {
			if msg.Body == "2" {
				return errTest
			}
			return nil
		})
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

// TestStartServes runs a real process with a Runtime API of two invocations; the second event is not from SQS.
func TestStartServes(t *testing.T) {
	t.Parallel()
	good, err := json.Marshal(batch("1", "2"))
	if err != nil {
		t.Fatal(err)
	}
	payloads := []string{string(good), `{}`}
	responses := make(chan string, len(payloads))
	var served atomic.Int64
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			responses <- r.URL.Path + " " + string(body)
			w.WriteHeader(http.StatusAccepted)
			return
		}
		n := int(served.Add(1))
		if n > len(payloads) {
			<-r.Context().Done() // nothing more to do
			return
		}
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", fmt.Sprint(n))
		w.Header().Set("Lambda-Runtime-Deadline-Ms", fmt.Sprint(time.Now().Add(time.Minute).UnixMilli()))
		fmt.Fprint(w, payloads[n-1])
	}))
	defer api.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), mode+"=good", "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(api.URL, "http://"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		if err := cmd.Wait(); err == nil {
			t.Error("the function ended by itself")
		}
	}()
	for _, want := range []string{
		`/2018-06-01/runtime/invocation/1/response {"batchItemFailures":[{"itemIdentifier":"2"}]}`,
		`/2018-06-01/runtime/invocation/2/error {"errorMessage":"lambda: event has no records`,
	} {
		select {
		case got := <-responses:
			if !strings.HasPrefix(got, want) {
				t.Errorf("got %s, want %s", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatal("the function does not respond")
		}
	}
}
