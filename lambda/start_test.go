package lambda

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
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
