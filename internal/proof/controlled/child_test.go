//go:build unix

package controlled

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/control"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/proof/process"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// envRole is the environment variable that makes the test binary a process of the fleet. Its value is a role.
const envRole = "CONTROL_ROLE"

// role says where a process finds AWS, its queue and the oracle.
type role struct{ AWS, Queue, Oracle string }

const (
	consumer, recordTable = "billing", "records"
	concurrency           = 4
	inFlight              = 2*concurrency + 10
	waitTime              = time.Second
	every                 = 3 * time.Second
	obeys                 = every + every/5 // from a command to the last process that has read it
)

// note is what a process tells the oracle: that it runs a handler of a message, or its state.
type note struct {
	PID     int
	At      time.Time
	Event   string // "": the state
	End     bool
	Receive int
	Paused  bool
	Reason  string
	Held    int64
}

// child is the main function of a process.
func (r role) child() error {
	process.EndWithParent()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	credentials := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
	})
	store, err := dynamostore.New(dynamodb.New(dynamodb.Options{Region: "us-east-1", BaseEndpoint: &r.AWS, Credentials: credentials, HTTPClient: &http.Client{}}), recordTable)
	if err != nil {
		return err
	}
	once, err := dedup.New(store, consumer, func(o *dedup.Options) { o.LeaseDuration = 5 * time.Second })
	if err != nil {
		return err
	}
	c, err := control.New(store, consumer, func(o *control.Options) { o.Every = every })
	if err != nil {
		return err
	}
	client := sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: &r.AWS, Credentials: credentials, HTTPClient: sqsworker.HTTPClient(inFlight)})
	w, err := sqsworker.New(client, r.Queue, c.Handler(once.Handler(r.handle)), func(o *sqsworker.Options) {
		o.Concurrency, o.MaxInFlight, o.WaitTime, o.VisibilityTimeout = concurrency, inFlight, waitTime, visibility
		o.Hooks = append(o.Hooks, c.Hooks())
	})
	if err != nil {
		return err
	}
	go func() {
		for range time.Tick(100 * time.Millisecond) {
			s := c.Status()
			_ = r.tell(note{Paused: s.Paused, Reason: s.Reason, Held: w.Stats().Held}) // the next one comes soon
		}
	}()
	return w.Run(ctx)
}

func (r role) handle(_ context.Context, m *sqsonce.Message) error {
	n := note{At: time.Now(), Event: m.Body, Receive: m.ReceiveCount}
	if err := r.tell(n); err != nil {
		return err
	}
	time.Sleep(400 * time.Millisecond)
	n.At, n.End = time.Now(), true
	return r.tell(n)
}

func (r role) tell(n note) error {
	n.PID = os.Getpid()
	body, err := json.Marshal(n)
	if err != nil {
		return err
	}
	resp, err := http.Post(r.Oracle, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
