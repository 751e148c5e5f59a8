// Package redrive is how the demo empties a dead-letter queue once the cause is fixed: look, redrive, delete what is done. Operators use
// the command sqsonce: see examples/operate for one with a store of its own.
package redrive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/ops"
)

// Store has the records of the consumer.
type Store interface {
	dedup.Store
	dedup.Inspector
}

const (
	// rounds are enough for messages of one event, of which one runs while the next is looked at, and for hidden ones.
	rounds = 20
	// hold is short: messages of a receive whose answer was lost are hidden for so long.
	hold = 20 * time.Second
)

// RunFromEnv is Run for a command: the queue is that of the environment variable DLQ_URL, the consumer that of CONSUMER, and the
// archive the second argument. It prints to standard output.
func RunFromEnv(store Store) error {
	if len(os.Args) != 3 {
		return errors.New("usage: redrive FILE, for what is deleted")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	return Run(ctx, sqs.NewFromConfig(cfg), os.Getenv("DLQ_URL"), store, cmp.Or(os.Getenv("CONSUMER"), "orders"), os.Args[2], os.Stdout)
}

// Run redrives the dead-letter queue of a consumer until it is empty, or for 20 rounds, and prints what it does. All that is in the
// queue must have been rejected before it had any effect. What is deleted is first written to the archive, a file.
func Run(ctx context.Context, client ops.Client, dlqURL string, store Store, consumer, archive string, out io.Writer) error {
	once, err := dedup.New(store, consumer) // for the keys of the records
	if err != nil {
		return err
	}
	dlq, err := ops.Open(ctx, client, dlqURL, func(o *ops.Options) { o.Key, o.Store, o.Hold = once.Key, store, hold })
	if err != nil {
		return err
	}
	for range rounds {
		listing, err := dlq.List(ctx, 0)
		if err != nil || listing.Total == 0 {
			return err
		}
		if len(listing.Messages) == 0 {
			continue
		}
		show(out, listing)
		sent, err := dlq.Redrive(ctx, func(o *ops.RedriveOptions) {
			o.Unknown = true // a handler may reject an order before it acquires the record
			o.Crashed = true // the store was away when the record was to be released; what is rejected has had no effect
		})
		if err != nil {
			return err
		}
		// Further messages of events that have run meanwhile: their publisher had sent them twice.
		done, err := dlq.Delete(ctx, archive, func(o *ops.ExportOptions) { o.States = []dedup.RecordState{dedup.StateCompleted} })
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%d redriven, %d deleted whose event was done\n", sent.Count(ops.ActionRedriven), done.Count(ops.ActionDeleted))
	}
	return fmt.Errorf("messages are left after %d rounds: look at them with sqsonce dlq ls", rounds)
}

// show prints how many messages there are of each reason, and of each state of their events.
func show(out io.Writer, l ops.Listing) {
	type kind struct {
		reason string
		state  dedup.RecordState
	}
	count := map[kind]int{}
	for _, m := range l.Messages {
		count[kind{m.Class.Text, m.State}]++
	}
	for k, n := range count {
		fmt.Fprintf(out, "%d dead letters (%s): %s\n", n, k.state, k.reason)
	}
}
