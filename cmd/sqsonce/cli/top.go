package cli

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/fleet"
)

// topEvery is how often everything is read again.
const topEvery = 2 * time.Second

type topFlags struct {
	workers, queues []string
	once            bool
}

func (a *app) top() *cobra.Command {
	f := topFlags{}
	c := a.command("top", "Watch workers and queues", `Shows what running workers say of themselves, and how full their queues are. On a
terminal it is drawn again every 2 s, until an interrupt; with --json it is one object a line every 2 s. In a pipe, or with --once,
it is shown once: workers are then asked twice, 2 s apart, for their rates. It receives no message, and changes nothing.

A worker is the URL of its status.Handler, such as http://10.0.3.7:8080, or dns:HOST:PORT for every address of a host. Queues are
those of --queue, and those that the workers name where there are credentials. OLDEST of a queue is CloudWatch's
ApproximateAgeOfOldestMessage, asked once a minute and late by some, where cloudwatch:GetMetricData is allowed. CHANGE/S is that of
all the messages of a queue in the last minute, and EMPTY IN how long they last if that goes on. SQS's numbers are approximate.
What is not known is -.

Lines in a pipe: "worker", name, URL, queue, state, done, failed and received a second, running, concurrency, in flight, held,
oldest running in seconds, stuck, leases lost, why; "queue", name, visible, in flight, delayed, oldest in seconds, done and change a
second, seconds until it is empty, DLQ, messages of the DLQ, why.

Exit codes of --once and of a pipe, by what the flags name: 0 all of it has answered, 1 nothing has, 4 some has not, 6 credentials
or permission. Queues that only workers name, and ages, do not count. Else 0 after an interrupt or --timeout.`,
		`  sqsonce top --worker http://billing:8080 --queue orders
  sqsonce top --queue orders --once --json`,
		cobra.NoArgs, func(ctx context.Context, _ []string) error { return a.watch(ctx, f) })
	c.Flags().StringSliceVar(&f.workers, "worker", nil, "`URL`s of workers' status handlers, or dns:HOST:PORT, with commas between")
	c.Flags().StringSliceVar(&f.queues, "queue", nil, "`queues`, by name, URL or ARN, with commas between")
	c.Flags().BoolVar(&f.once, "once", false, "show it once")
	return c
}

func (a *app) watch(ctx context.Context, f topFlags) error {
	if len(f.queues) == 0 && a.flags.queue != "" {
		f.queues = []string{a.flags.queue}
	}
	t := &top{fleet: &fleet.Fleet{Client: a.http, Targets: f.workers}}
	if err := t.fleet.Check(); err != nil {
		return err
	}
	if len(f.workers) == 0 && len(f.queues) == 0 {
		return fail(exitUsage, "what is to be watched? Set --worker, --queue or SQSONCE_QUEUE")
	}
	s, err := a.connect(ctx)
	if err != nil && len(f.workers) == 0 {
		return err
	}
	t.queues = newQueueWatch(s, err, f.queues)
	if f.once || a.width == 0 && !a.flags.json {
		return a.showOnce(ctx, t)
	}
	return a.showAlways(ctx, t)
}

// showOnce shows a snapshot with rates, which need two reads.
func (a *app) showOnce(ctx context.Context, t *top) error {
	if t.askWorkers(ctx) && !pause(ctx, topEvery) {
		return cmp.Or(context.Cause(ctx), ctx.Err())
	}
	s := t.snapshot(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, n := range s.Notes {
		a.note("%s", n)
	}
	var err error
	switch {
	case a.flags.json:
		err = a.printJSON(s)
	case a.width == 0:
		err = a.printTable(nil, s.lines())
	default:
		err = a.printFitted(s.tables(a.width))
	}
	return errors.Join(err, s.failed())
}

// showAlways shows a snapshot every 2 s until ctx ends.
func (a *app) showAlways(ctx context.Context, t *top) (err error) {
	show := func(s *snapshot) error { return a.printEvent(s) }
	if !a.flags.json {
		screen := &screen{a: a}
		defer func() { err = errors.Join(err, screen.close()) }()
		show = screen.draw
	}
	for {
		next := time.Now().Add(topEvery)
		s := t.snapshot(ctx)
		if ctx.Err() != nil {
			return nil // what was read while it ended is no answer of anybody
		}
		if err := show(s); err != nil {
			return err
		}
		if !pause(ctx, time.Until(next)) {
			return nil
		}
	}
}

// pause waits, and returns false where ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// top reads workers and queues again and again.
type top struct {
	fleet   *fleet.Fleet
	queues  *queueWatch
	workers []fleet.Worker // of the last read
}

// askWorkers asks the workers for the first time, and returns whether one has answered.
func (t *top) askWorkers(ctx context.Context) (answered bool) {
	t.workers = t.fleet.Stats(ctx)
	for _, w := range t.workers {
		answered = answered || w.Err == nil
	}
	return answered
}

func (t *top) snapshot(ctx context.Context) *snapshot {
	before := t.workers
	t.workers = t.fleet.Stats(ctx)
	s := &snapshot{V: 1, Workers: workerRows(t.workers, fleet.Rates(before, t.workers))}
	s.Queues, s.Notes = t.queues.read(ctx, s.Workers)
	s.At = time.Now().UTC()
	return s
}

// failed is an error where something did not answer that the flags name.
func (s *snapshot) failed() error {
	all, bad, code := 0, 0, exitPart
	var first error
	count := func(name string, err error) {
		if all++; err == nil {
			return
		}
		if bad++; first == nil {
			first = &shortError{name + ": " + reason(err), err}
		}
		if code == exitPart && denied(err) || errors.Is(err, errNotConnected) {
			code = exitDenied
		}
	}
	seen := ""
	for _, w := range s.Workers {
		if w.URL != seen { // a process has a row for each of its workers
			count(w.URL, w.err)
			seen = w.URL
		}
	}
	for _, q := range s.Queues {
		if q.named {
			count(cmp.Or(q.URL, q.Queue), cmp.Or(q.err, q.dlqErr))
		}
	}
	switch {
	case bad == 0:
		return nil
	case bad == all && code == exitPart:
		code = exitFailed
	}
	return fail(code, "%d of %d workers and queues could not be read: %w", bad, all, first)
}

// shortError is an error with a text of its own: those of the SDK are long.
type shortError struct {
	text string
	err  error
}

func (e *shortError) Error() string { return e.text }
func (e *shortError) Unwrap() error { return e.err }
