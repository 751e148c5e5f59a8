//go:build unix

package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/proof/process"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// envRole is the environment variable that makes the test binary a process of the fleet. Its value is a role.
const envRole = "FLEET_ROLE"

// role is what a process is.
type role struct {
	Kind, Seat  string // worker, function or publisher, and its name; or clock, which says what time it is
	Oracle, AWS string // URLs: of the oracle, and of the seat's network
	Queues      []string
	Logs        string // the folder for its log. "": none
}

const (
	consumer, source        = "fleet", "shop"
	recordTable             = "records"
	visibility, handlerTime = 8 * time.Second, 2 * time.Second
	poisonStatus            = 3
)

// child is the main function of a process.
func (r role) child() error {
	if r.Kind == "clock" {
		_, err := fmt.Print(time.Now().Format(time.RFC3339))
		return err
	}
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if r.Logs != "" {
		f, err := os.Create(fmt.Sprintf("%s/%s-%d.log", r.Logs, r.Seat, os.Getpid()))
		if err != nil {
			return err
		}
		slog.SetDefault(slog.New(slog.NewTextHandler(f, nil)))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	store, err := dynamostore.New(dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: &r.AWS, Credentials: aws.CredentialsProviderFunc(credentials), HTTPClient: &http.Client{},
	}), recordTable)
	if err != nil {
		return err
	}
	once, err := dedup.New(store, consumer, func(o *dedup.Options) { o.LeaseDuration = 4 * time.Second })
	if err != nil {
		return err
	}
	second := func(int) time.Duration { return time.Second }
	if r.Kind == "function" { // its standard input is empty, and its host ends it
		lambda.Start(once.Handler(r.run), func(o *lambda.Options) { o.Concurrency, o.Client, o.Backoff = 4, r.sqs(), second })
	}
	process.EndWithParent()
	if r.Kind == "publisher" {
		return r.publish(ctx)
	}
	w, err := sqsworker.New(r.sqs(), r.Queues[0], once.Handler(r.run), func(o *sqsworker.Options) {
		o.Concurrency, o.WaitTime, o.VisibilityTimeout, o.StopTimeout, o.Backoff = 8, time.Second, visibility, 6*time.Second, second
		o.Timeout = func(*sqsonce.Message) time.Duration { return handlerTime }
	})
	if err != nil {
		return err
	}
	if err := w.Run(ctx); ctx.Err() == nil {
		return err // else a stop in trouble, which leaves messages hidden, or ends a start
	}
	return nil
}

func credentials(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
}

func (r role) sqs() *sqs.Client {
	return sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: &r.AWS, Credentials: aws.CredentialsProviderFunc(credentials), HTTPClient: sqsworker.HTTPClient(40),
	})
}

// run is a run of the handler: the oracle hears of its start, its effect and its end.
func (r role) run(ctx context.Context, m *sqsonce.Message) error {
	fence, _ := dedup.FenceFrom(ctx)
	n := note{What: start, Seat: r.Seat, Event: m.Attributes[sqsonce.AttrEventID].String, Message: m.ID, Receive: m.ReceiveCount, Fence: fence}
	var runs int // of the event so far, with this one
	if err := r.post("/note", n, &runs); err != nil {
		return err
	}
	err := work(ctx, m.Attributes[sqsonce.AttrEventType].String, runs == 1)
	if n.What = effect; err == nil {
		err = r.post("/note", n, nil)
	}
	if n.What = end; err != nil {
		n.Error = err.Error()
	}
	return errors.Join(err, r.post("/note", n, nil))
}

// work is what the handler does for an event of a kind, the first time and later.
func work(ctx context.Context, kind string, first bool) error {
	take := rand.N(50 * time.Millisecond)
	switch {
	case kind == "rejected":
		return sqsonce.Reject(errors.New("bad order"))
	case kind == "failing", kind == "flaky" && first:
		return errors.New("out of stock")
	case kind == "poison":
		os.Exit(poisonStatus)
	case kind == "deaf" && first: // it ignores that its context has ended
		time.Sleep(5 * time.Second)
		return nil
	case kind == "hanging" && first:
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, handlerTime) // a function has none of its own
		defer cancel()
		take = time.Hour
	case kind == "slow":
		take += time.Second
	}
	select {
	case <-time.After(take):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// publish publishes what the oracle has for it until that has no more. What was not confirmed comes again, in its order.
func (r role) publish(ctx context.Context) error {
	var publishers [2]*fifo.Publisher
	for i, url := range r.Queues {
		var err error
		if publishers[i], err = fifo.NewPublisher(r.sqs(), url, source); err != nil {
			return err
		}
	}
	for {
		var orders []order
		if err := r.post("/next?publisher="+r.Seat, nil, &orders); err != nil || orders == nil || ctx.Err() != nil {
			return err
		}
		var events [2][]fifo.Event
		for _, o := range orders {
			events[o.Queue] = append(events[o.Queue], fifo.Event{ID: o.ID, Group: o.Group, Type: o.Kind, Body: o.ID})
		}
		var confirmed []string
		for i, p := range publishers {
			call, cancel := context.WithTimeout(ctx, 30*time.Second)
			receipts, _ := p.PublishAll(call, events[i]) // those that failed come again
			cancel()
			for j, receipt := range receipts {
				if receipt.MessageID != "" {
					confirmed = append(confirmed, events[i][j].ID)
				}
			}
		}
		if err := r.post("/published", confirmed, nil); err != nil {
			return err
		}
		time.Sleep(time.Second)
	}
}

// post tells and asks the oracle. Its refusal is an error.
func (r role) post(path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	resp, err := http.Post(r.Oracle+path, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("the oracle: %s", strings.TrimSpace(string(text)))
	case err != nil || out == nil:
		return err
	}
	return json.Unmarshal(text, out)
}
