package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// Options configure [New].
type Options struct {
	// Every is how often the state is read, and a fifth of it longer by chance. On DynamoDB each read costs one read unit.
	// Default: 5 s. Limits: 1 s to 1 min.
	Every time.Duration
	// Logger gets a line for each change of the state, and a warning once a minute while reads fail.
	// Default: slog.Default().
	Logger *slog.Logger
}

const (
	defaultEvery = 5 * time.Second
	readTimeout  = 4 * time.Second
	startTimeout = time.Second      // how long a worker's start waits for the first read
	warnAgain    = time.Minute      // between two warnings of reads that fail
	holdFor      = 10 * time.Second // until a message that is held is looked at again
)

// Control has the workers of a process obey the state of a consumer. It reads while workers run that have its hooks. It is safe for
// concurrent use.
type Control struct {
	store    dedup.Inspector
	consumer string
	o        Options
	log      *slog.Logger
	blind    sync.Once // the warning of a Handler without Hooks

	mu      sync.Mutex
	workers map[*obedience]struct{}
	watch   *watch // while there are workers
	last    reading
}

// Status is what a [Control] knows.
type Status struct {
	State           // in force now
	Read  time.Time // when the state was last read, or zero
	Err   error     // of the last read
}

// New returns a Control of the consumer whose records are in store. consumer is the name that dedup.New has. The reads begin with the
// first worker. The error joins a [*sqsonce.OptionError] for each bad argument.
func New(store dedup.Inspector, consumer string, optFns ...func(*Options)) (*Control, error) {
	var o Options
	for _, fn := range optFns {
		fn(&o)
	}
	o.Every = cmp.Or(o.Every, defaultEvery)
	p := host.Problems{Package: "control"}
	p.Add(o.Every < time.Second || o.Every > time.Minute, "Options.Every", "is %s, must be 1s to 1m", o.Every)
	if err := errors.Join(check(store, consumer), p.Err()); err != nil {
		return nil, err
	}
	return &Control{
		store: store, consumer: consumer, o: o, log: host.QueuedLogger(o.Logger).With("consumer", consumer),
		workers: map[*obedience]struct{}{},
	}, nil
}

// Hooks returns the hooks of a worker that obeys. Several workers may have them. The start of a worker waits for the first read, at
// most 1 s.
func (c *Control) Hooks() sqsworker.Hooks { return sqsworker.Hooks{Attach: c.attach} }

// ErrPaused is in the error of [Control.Handler] while the consumer is paused.
var ErrPaused = errors.New("control: consumer is paused")

// Handler returns a handler that calls h unless the consumer is paused. In a pause it returns an error of [sqsonce.Postpone] with
// [ErrPaused]: the worker holds the message outside of its attempts, and asks again after 10 s. It gives back messages
// above MaxHeld, unless they have few receives left. Put Handler outside of deduplication, so that held messages stay free of records.
//
// A pause holds in every case: if a message is at its last receive when its worker stops, SQS moves it to the dead-letter queue. Use
// Handler in workers with the [Control.Hooks] only: a function can't hold messages.
func (c *Control) Handler(h sqsonce.Handler) sqsonce.Handler {
	if h == nil {
		return nil
	}
	return func(ctx context.Context, m *sqsonce.Message) error {
		s, watched := c.inForce()
		if !watched {
			c.blind.Do(func() { c.log.WarnContext(ctx, "control: Handler runs in a worker without Hooks, so it sees no pause") })
		}
		if s.Paused {
			return sqsonce.Postpone(min(holdFor, time.Until(s.Until)), fmt.Errorf("%w by %s: %s", ErrPaused, s.By, s.Reason))
		}
		return h(ctx, m)
	}
}

// Status returns the state in force. You may call it at any time, from any goroutine.
func (c *Control) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Status{State: c.last.inForce(time.Now()), Read: c.last.at, Err: c.last.err}
}

func (c *Control) inForce() (s State, watched bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last.inForce(time.Now()), len(c.workers) > 0
}
