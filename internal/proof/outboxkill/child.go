//go:build unix

package outboxkill

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/proof/process"
)

// Source is the namespace of the events.
const Source = "shop"

// The environment variables of a child.
const (
	envRole  = "OUTBOXKILL_ROLE"
	envSQS   = "OUTBOXKILL_SQS"
	envQueue = "OUTBOXKILL_QUEUE"
	// EnvDefect makes the relays delete what they read, if it is [EarlyDelete]: the test must be able to fail.
	EnvDefect = "OUTBOXKILL_DEFECT"
)

// EarlyDelete is a relay that deletes before SQS has confirmed.
const EarlyDelete = "delete before confirm"

const (
	relayRole    = "relay"
	producerRole = "producer"
)

// The points at which a child kills itself.
const (
	beforeRead, beforeSend, afterSend, beforeDelete, afterDelete = "before read", "before send", "after send", "before delete", "after delete"
	beforeCommit, afterCommit                                    = "before commit", "after commit"
)

var points = map[string][]string{
	relayRole:    {beforeRead, beforeSend, afterSend, beforeDelete, afterDelete},
	producerRole: {beforeCommit, afterCommit},
}

// Child is what a process of the outbox under test needs.
type Child struct {
	Store outbox.Store
	// Commit commits the group's next event, and its version, in one transaction. next makes the event of a version.
	Commit func(ctx context.Context, group string, next func(version int) fifo.Event) error
}

// Main runs the child, if this process is one, and does not return then. open opens the outbox by the environment that
// [Target].Env gives.
func Main(open func() (Child, error)) {
	role := os.Getenv(envRole)
	if role == "" {
		return
	}
	process.EndWithParent()
	c, err := open()
	if err == nil && role == relayRole {
		err = c.relay()
	} else if err == nil {
		err = c.produce()
	}
	fmt.Fprintf(os.Stderr, "outboxkill: %s: %v\n", role, err)
	os.Exit(1)
}

// relay publishes until it is killed.
func (c Child) relay() error {
	client := sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(os.Getenv(envSQS)), Credentials: aws.CredentialsProviderFunc(credentials),
		HTTPClient: &http.Client{Transport: killing{http.DefaultTransport}},
	})
	p, err := fifo.NewPublisher(client, os.Getenv(envQueue), Source)
	if err != nil {
		return err
	}
	r, err := outbox.NewRelay(doomed{c.Store}, p, func(o *outbox.Options) {
		// A relay that dies leaves its claims behind: of few groups, for the least time there is.
		o.Groups, o.Poll, o.LeaseDuration, o.Logger = 4, 20*time.Millisecond, 10*time.Second, slog.New(slog.DiscardHandler)
	})
	if err != nil {
		return err
	}
	return r.Run(context.Background())
}

// produce commits events of random groups until it is killed.
func (c Child) produce() error {
	for {
		process.At(beforeCommit)
		group := fmt.Sprint("g", rand.IntN(groups))
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err := c.Commit(ctx, group, func(version int) fifo.Event { return event(group, version) })
		cancel()
		if err != nil { // another producer was first, or the server is busy
			time.Sleep(20 * time.Millisecond)
			continue
		}
		process.At(afterCommit)
		time.Sleep(10 * time.Millisecond)
	}
}

// event returns an event whose body is its ID.
func event(group string, version int) fifo.Event {
	id := fmt.Sprintf("%s/v%d", group, version)
	return fifo.Event{ID: id, Group: group, Body: id}
}

func credentials(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
}

// killing is the network to SQS.
type killing struct{ http.RoundTripper }

func (k killing) RoundTrip(r *http.Request) (*http.Response, error) {
	process.At(beforeSend)
	defer process.At(afterSend)
	return k.RoundTripper.RoundTrip(r)
}

type doomed struct{ outbox.Store }

func (d doomed) Read(ctx context.Context, g outbox.Group, known outbox.Known, limit int) ([]outbox.Entry, error) {
	process.At(beforeRead)
	es, err := d.Store.Read(ctx, g, known, limit)
	if os.Getenv(EnvDefect) == EarlyDelete && len(es) > 0 {
		_, _ = d.Store.Delete(ctx, es)
	}
	return es, err
}

func (d doomed) Delete(ctx context.Context, es []outbox.Entry) ([]outbox.Entry, error) {
	process.At(beforeDelete)
	defer process.At(afterDelete)
	return d.Store.Delete(ctx, es)
}
