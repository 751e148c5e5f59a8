package contestant

import (
	"context"
	"sync/atomic"
	"time"

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

// Effects are what the handlers did: how often the handler of each event was started, and whether it returned. They take
// four bytes for each event and two atomic operations for each run, the same for every contestant.
type Effects struct{ events []atomic.Uint32 }

// finished is the bit beside an event's number of starts.
const finished = 1 << 31

// NewEffects returns the effects of events 0 to n-1.
func NewEffects(n int) *Effects { return &Effects{events: make([]atomic.Uint32, n)} }

// Handle is the handler of every contestant. It sleeps for d, ignores its context, and does not fail.
func (e *Effects) Handle(body string, d time.Duration) {
	n := job.Number(body)
	if n < 0 || n >= len(e.events) {
		return
	}
	e.events[n].Add(1)
	if d > 0 {
		time.Sleep(d)
	}
	e.events[n].Or(finished)
}

// Accepted records that the queue has accepted event n from a publisher.
func (e *Effects) Accepted(n int) { e.events[n].Or(finished) }

// Report adds the effects to u.
func (e *Effects) Report(u *job.Usage) {
	u.Done = job.NewBits(len(e.events))
	for n := range e.events {
		v := e.events[n].Load()
		if v&finished != 0 {
			u.Done.Add(n)
		}
		if v&^finished > 1 {
			u.Doubled++
		}
	}
}
