package contestant

import (
	"context"

	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/fifo/outbox/dynamooutbox"
)

// publishAll publishes the events of the outbox as a process does that has them in memory: it is what a relay is compared with.
func publishAll(ctx context.Context, j job.Job, effects *Effects) error {
	p, err := outboxPublisher(j)
	if err != nil {
		return err
	}
	backlog := job.Backlog(j.Events, j.Groups)
	events := make([]fifo.Event, len(backlog))
	for i, e := range backlog {
		events[i] = job.OutboxEvent(e)
	}
	if _, err := p.PublishAll(ctx, events); err != nil {
		return err
	}
	for n := range j.Events {
		effects.Accepted(n)
	}
	return nil
}

// drainOutbox is outbox.Relay with its defaults: 64 groups at once, in pages of 10.
func drainOutbox(ctx context.Context, j job.Job, effects *Effects) error {
	p, err := outboxPublisher(j)
	if err != nil {
		return err
	}
	box, err := dynamooutbox.New(dynamodbClient(j, httpClient()), job.OutboxTable, job.OutboxName, job.OutboxSource)
	if err != nil {
		return err
	}
	relay, err := outbox.NewRelay(box, p, func(o *outbox.Options) { o.Logger = logger() })
	if err != nil {
		return err
	}
	names := make([]string, j.Groups)
	for g := range names {
		names[g] = job.OutboxGroup(g)
	}
	if err := relay.Drain(ctx, names...); err != nil {
		return err
	}
	for n := range j.Events {
		effects.Accepted(n)
	}
	return nil
}

func outboxPublisher(j job.Job) (*fifo.Publisher, error) {
	return fifo.NewPublisher(sqsClient(j, httpClient()), j.QueueURL, job.OutboxSource, func(o *fifo.Options) {
		o.MaxRequests, o.Logger = j.Slots, logger()
	})
}
