package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/sqsworker"
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
	stack, err := localstack.Start(context.Background(), func(o *localstack.Options) {
		o.Queues, o.Tables, o.HTTP = []localstack.Queue{{Name: queue, Attributes: map[string]string{"VisibilityTimeout": "0"}}}, []string{"dedup"}, true
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stack.Close(context.Background()); err != nil {
			t.Error(err)
		}
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
	out, err *output
}

// start starts the command. Its standard output is that of cmd where it has one.
func (w *world) start(cmd *exec.Cmd) *process {
	w.Helper()
	p := &process{cmd, &output{}, &output{}}
	cmd.Env, cmd.Stderr = w.env, p.err
	if cmd.Stdout == nil {
		cmd.Stdout = p.out
	}
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
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

// output is what a process has printed until now.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// eventually waits until ok, for two minutes at most.
func (w *world) eventually(what string, ok func() bool) {
	w.Helper()
	for end := time.Now().Add(5 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("not within five minutes: %s", what)
		}
	}
}

// send sends a message of a group, which is the body up to a hyphen. Every second event has no ID: its key is the message ID.
func (w *world) send(queue, body string, n int) {
	w.Helper()
	in := &sqs.SendMessageInput{QueueUrl: aws.String(w.stack.QueueURL[queue]), MessageBody: &body, MessageAttributes: map[string]sqstypes.MessageAttributeValue{}}
	if n%2 == 0 {
		for name, value := range map[string]string{sqsonce.AttrEventID: body, sqsonce.AttrEventSource: "orders"} {
			in.MessageAttributes[name] = sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
		}
	}
	if strings.HasSuffix(queue, ".fifo") {
		group, _, _ := strings.Cut(body, "-")
		in.MessageGroupId, in.MessageDeduplicationId = &group, aws.String("dedup-"+body)
	}
	if _, err := w.stack.SQS.SendMessage(context.Background(), in); err != nil {
		w.Fatal(err)
	}
}

func (w *world) hidden() (n int) {
	for _, m := range w.stack.MemSQS().Messages(w.dlq) {
		if m.InFlight {
			n++
		}
	}
	return n
}

// consume runs the consumer until the test ends.
func (w *world) consume(h sqsonce.Handler) {
	w.Helper()
	quiet := slog.New(slog.DiscardHandler)
	store, err := dynamostore.New(w.stack.DynamoDB, "dedup", func(o *dynamostore.Options) { o.Logger = quiet })
	if err != nil {
		w.Fatal(err)
	}
	once, err := dedup.New(store, "billing", func(o *dedup.Options) { o.Logger = quiet })
	if err != nil {
		w.Fatal(err)
	}
	worker, err := sqsworker.New(w.stack.SQS, w.stack.QueueURL[w.queue], sqsonce.OpenEnvelope(once.Handler(h)), func(o *sqsworker.Options) {
		o.Logger, o.WaitTime = quiet, time.Second
	})
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	w.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.Error(err)
		}
	})
}
