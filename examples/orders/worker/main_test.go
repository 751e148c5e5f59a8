package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack"
)

// TestImage runs the program that deploy/Dockerfile builds, but linked for this machine, with the entrypoint's and the health
// check's arguments, against what localaws serves. The container itself is not tested.
func TestImage(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_DYNAMODB"} {
		t.Setenv(name, "")
	}
	program := buildAsImage(t)
	stack := must.Get(localstack.Start(t.Context(), func(o *localstack.Options) {
		o.HTTP, o.Queues, o.Tables = true, []localstack.Queue{{Name: "orders"}}, []string{"dedup"}
	}))(t)
	defer func() {
		if err := stack.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	must.Do(t, orders.CreateLedger(t.Context(), stack.DynamoDB, "ledger"))
	w := startWorker(t, program, stack)
	for _, path := range []string{"/live", "/ready"} {
		eventually(t, path+" is 200", func() bool { return w.health(path) == 0 })
	}
	if got := w.health("/other"); got != 1 {
		t.Errorf("-health with a path that is 404: status %d, want 1", got)
	}

	// The review is a handler that runs when the signal comes.
	must.Get(stack.SQS.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(stack.QueueURL["orders"]),
		MessageBody: aws.String(`{"id":"ord-1/placed","account":"acct-1","amount":250,"review":"3s"}`)}))(t)
	eventually(t, "the handler runs", func() bool { return w.running(t) == 1 })
	must.Do(t, w.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-w.exited:
	case <-time.After(2 * time.Minute): // the longest that a platform waits
		t.Fatal("two minutes after SIGTERM the worker runs")
	}
	if w.err != nil {
		t.Errorf("the worker ended with %v, want status 0\n%s", w.err, w.log(t))
	}
	if got := w.health("/live"); got != 1 {
		t.Errorf("-health after the worker has ended: status %d, want 1", got)
	}
	ledger := must.Get(orders.ReadLedger(t.Context(), stack.DynamoDB, "ledger"))(t)
	if left := stack.MemSQS().Messages("orders"); ledger["acct-1"].Balance != 250 || len(left) != 0 {
		t.Errorf("after the stop the ledger has %+v and the queue %+v, want the order booked and deleted", ledger, left)
	}
}

// buildAsImage runs the build command of deploy/Dockerfile for this machine, and returns the entrypoint.
func buildAsImage(t *testing.T) string {
	t.Helper()
	const root = "../../.."
	text := must.Get(os.ReadFile(filepath.Join(root, "deploy/Dockerfile")))(t)
	build := regexp.MustCompile(`(?m)^RUN (.*) CGO_ENABLED=0 (.*) -trimpath (.* -o /worker .*)$`).FindSubmatch(text)
	if build == nil || !strings.Contains(string(text), "COPY --from=build /worker /worker\n") || !strings.HasSuffix(string(text), "\nENTRYPOINT [\"/worker\"]\n") {
		t.Fatal("deploy/Dockerfile does not build, copy and run a static /worker, without a shell")
	}
	program := filepath.Join(t.TempDir(), "worker")
	// Without the two settings that no other test's build has: with them, all packages would be built once more.
	command := strings.Replace(fmt.Sprintf("%s %s %s", build[1], build[2], build[3]), "/worker", program, 1)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "TARGETOS="+runtime.GOOS, "TARGETARCH="+runtime.GOARCH)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return program
}

// worker is a running process.
type worker struct {
	program, out string
	cmd          *exec.Cmd
	addr         string
	exited       chan struct{} // closed when the process has exited; err is set then
	err          error
}

func startWorker(t *testing.T, program string, stack *localstack.Stack) *worker {
	t.Helper()
	out := must.Get(os.Create(filepath.Join(t.TempDir(), "log")))(t)
	defer out.Close() // the process has a copy of the descriptor
	w := &worker{program: program, out: out.Name(), cmd: exec.Command(program), exited: make(chan struct{})}
	w.cmd.Stdout, w.cmd.Stderr = out, out
	w.cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+stack.URL, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		"QUEUE_URL="+stack.QueueURL["orders"], "DEDUP_TABLE=dedup", "LEDGER_TABLE=ledger", "HEALTH_ADDR=127.0.0.1:0", "STOP_TIMEOUT=110s")
	must.Do(t, w.cmd.Start())
	go func() {
		w.err = w.cmd.Wait()
		close(w.exited)
	}()
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill() // after a failure; else it has exited
		<-w.exited
	})
	eventually(t, "the worker says where it serves the probes", func() bool {
		found := regexp.MustCompile(`/running" addr=(\S+)`).FindStringSubmatch(w.log(t))
		if found != nil {
			w.addr = found[1]
		}
		return found != nil
	})
	return w
}

// health returns the exit status of the health check.
func (w *worker) health(path string) int {
	var exit *exec.ExitError
	if err := exec.Command(w.program, "-health", "http://"+w.addr+path).Run(); errors.As(err, &exit) {
		return exit.ExitCode()
	} else if err != nil {
		return -1
	}
	return 0
}

// running returns how many handlers run.
func (w *worker) running(t *testing.T) (n int) {
	t.Helper()
	resp := must.Get(http.Get("http://" + w.addr + "/running"))(t)
	defer resp.Body.Close()
	must.Do(t, json.NewDecoder(resp.Body).Decode(&struct{ Total *int }{&n}))
	return n
}

func (w *worker) log(t *testing.T) string {
	t.Helper()
	return string(must.Get(os.ReadFile(w.out))(t))
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after a minute: not yet that %s", what)
		}
	}
}
