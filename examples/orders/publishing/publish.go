// Package publishing sends the orders example's events: through an outbox, or at once. Its configuration is read from the
// environment.
package publishing

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/fifo"
)

type settings struct {
	queueURL, file, namespace string
	resend, retry             int // percent
}

func fromEnv() (settings, error) {
	s := settings{
		queueURL:  os.Getenv("QUEUE_URL"),
		file:      os.Getenv("FILE"),
		namespace: Namespace(),
	}
	var errs []error
	percent := func(name string) int {
		n, err := strconv.Atoi(cmp.Or(os.Getenv(name), "0"))
		if err != nil || n < 0 || n > 100 {
			errs = append(errs, fmt.Errorf("environment variable %s: %q is not a number from 0 to 100", name, os.Getenv(name)))
		}
		return n
	}
	s.resend, s.retry = percent("RESEND"), percent("RETRY")
	return s, errors.Join(errs...)
}

// Run sends a file of orders. The command publish lists the environment variables. open opens the outbox; nil: the events are
// published at once.
func Run(open func(context.Context, aws.Config) (Outbox, error)) error {
	s, err := fromEnv()
	if err != nil {
		return err
	}
	events, err := orders.ReadFile(s.file)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	client := sqs.NewFromConfig(cfg)
	var to sender
	if open != nil {
		box, err := open(ctx, cfg)
		if err != nil {
			return err
		}
		to = throughOutbox{box}
	} else {
		publisher, err := fifo.NewPublisher(client, s.queueURL, s.namespace)
		if err != nil {
			return err
		}
		to = atOnce{publisher}
	}
	// In chunks, so that at most a chunk of other events is between the two copies of an event.
	sent := 0
	for chunk := range slices.Chunk(events, 250) {
		if err := to.send(ctx, chunk); err != nil {
			return err
		}
		if err := to.send(ctx, percentOf(chunk, sent, s.retry, 7)); err != nil {
			return err
		}
		again := percentOf(chunk, sent, s.resend, 3)
		if err := to.confirmed(ctx, again); err != nil {
			return err
		}
		if err := resend(ctx, client, s, again); err != nil {
			return err
		}
		sent += len(chunk)
	}
	return to.close(ctx)
}

// sender is a way to the queue.
type sender interface {
	// send sends events, in the order of their groups. The same ones may be sent again, unchanged.
	send(context.Context, []orders.Event) error
	// confirmed waits until SQS has confirmed events that were sent.
	confirmed(context.Context, []orders.Event) error
	close(context.Context) error
}

// atOnce publishes, and knows the result when send returns.
type atOnce struct{ publisher *fifo.Publisher }

func (a atOnce) send(ctx context.Context, events []orders.Event) error {
	out := make([]fifo.Event, len(events))
	for i, e := range events {
		out[i] = EventOf(e)
	}
	_, err := a.publisher.PublishAll(ctx, out)
	return err
}

func (a atOnce) confirmed(context.Context, []orders.Event) error { return nil }

func (a atOnce) close(ctx context.Context) error { return a.publisher.Close(ctx) }

// EventOf returns the event of an order.
func EventOf(e orders.Event) fifo.Event {
	return fifo.Event{ID: e.ID, Group: e.Account, Type: e.Type, Body: e.Body}
}

// percentOf returns percent of the events of a chunk, evenly spread by their position in the file. The first event of the
// chunk is at position first. With another shift other events are returned.
func percentOf(chunk []orders.Event, first, percent, shift int) []orders.Event {
	var out []orders.Event
	for i, e := range chunk {
		n := first + i + shift
		if n*percent/100 != (n+1)*percent/100 {
			out = append(out, e)
		}
	}
	return out
}

// resend sends with the SDK, not with the publisher, which never sends an event under another MessageDeduplicationId.
func resend(ctx context.Context, client *sqs.Client, s settings, events []orders.Event) error {
	for batch := range slices.Chunk(events, 10) {
		in := &sqs.SendMessageBatchInput{QueueUrl: aws.String(s.queueURL)}
		for i, e := range batch {
			entry := sqstypes.SendMessageBatchRequestEntry{
				Id:             aws.String(strconv.Itoa(i)),
				MessageBody:    aws.String(e.Body),
				MessageGroupId: aws.String(e.Account),
				MessageAttributes: map[string]sqstypes.MessageAttributeValue{
					sqsonce.AttrEventSource: text(s.namespace),
					sqsonce.AttrEventID:     text(e.ID),
					sqsonce.AttrEventType:   text(e.Type),
				},
			}
			if strings.HasSuffix(s.queueURL, ".fifo") {
				entry.MessageDeduplicationId = aws.String("resend-" + rand.Text())
			}
			in.Entries = append(in.Entries, entry)
		}
		out, err := client.SendMessageBatch(ctx, in)
		if err != nil {
			return err
		}
		if len(out.Failed) > 0 {
			return fmt.Errorf("SQS refused %d of %d events, the first with: %s", len(out.Failed), len(batch), aws.ToString(out.Failed[0].Message))
		}
	}
	return nil
}

func text(s string) sqstypes.MessageAttributeValue {
	return sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(s)}
}
