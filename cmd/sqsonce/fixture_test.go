package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/testworld"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testlog"
	"github.com/sqsonce/sqsonce/localstack"
)

// asCommand makes the test's binary the command.
const asCommand = "SQSONCE_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// world is the server of the command localaws, on 127.0.0.1, with a queue "orders", its dead-letter queue and a table "dedup". The
// processes that a test starts find nothing else.
type world struct {
	*testing.T
	stack      *localstack.Stack
	queue, dlq string // names
	env        []string
}

func newWorld(t *testing.T, queue string) *world {
	t.Helper()
	stack := testworld.Start(t, func(o *localstack.Options) {
		o.Queues, o.HTTP = []localstack.Queue{{Name: queue, Attributes: map[string]string{"VisibilityTimeout": "0"}}}, true
	})
	w := &world{T: t, stack: stack, queue: queue, dlq: strings.Replace(queue, "orders", "orders-dlq", 1)}
	w.env = append(os.Environ(), asCommand+"=1", "AWS_ENDPOINT_URL="+stack.URL, "AWS_ENDPOINT_URL_SQS=", "AWS_ENDPOINT_URL_DYNAMODB=", "AWS_ENDPOINT_URL_STS=",
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_CONFIG_FILE="+os.DevNull,
		"AWS_SHARED_CREDENTIALS_FILE="+os.DevNull, "XDG_STATE_HOME="+t.TempDir(), "SQSONCE_QUEUE="+queue, "SQSONCE_CONSUMER=billing", "SQSONCE_TABLE=dedup")
	return w
}

// process is a running command.
type process struct {
	*exec.Cmd
	out, err *testlog.Book
}

// start starts the command. Its standard output is that of cmd where it has one.
func (w *world) start(cmd *exec.Cmd) *process {
	w.Helper()
	p := &process{cmd, &testlog.Book{}, &testlog.Book{}}
	cmd.Env, cmd.Stderr = w.env, p.err
	if cmd.Stdout == nil {
		cmd.Stdout = p.out
	}
	must.Do(w, cmd.Start())
	return p
}

// redrive starts a redrive.
func (w *world) redrive(flags ...string) *process {
	w.Helper()
	return w.start(exec.Command(os.Args[0], append([]string{"dlq", "redrive"}, flags...)...))
}

// end waits for the end of a process, and returns its exit code: -1 where a signal has ended it.
func (p *process) end() int {
	_ = p.Wait() // its state says all
	return p.ProcessState.ExitCode()
}

func (w *world) eventually(what string, ok func() bool) {
	w.Helper()
	testworld.Eventually(w, what, ok)
}

// send sends a message of a group, which is the body up to a hyphen. Every second event has no ID: its key is the message ID.
func (w *world) send(queue, body string, n int) {
	w.Helper()
	var event []string
	if n%2 == 0 {
		event = testworld.Event(body)
	}
	group, _, _ := strings.Cut(body, "-")
	testworld.Send(w, w.stack, queue, group, body, event...)
}

func (w *world) hidden() int { return testworld.Hidden(w.stack, w.dlq) }
