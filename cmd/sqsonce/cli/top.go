package cli

import (
	"cmp"
	"context"
	"errors"
	"strings"
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
	c := a.command("top", "Watch workers and queues", `Shows the state of running workers, the depth of their queues, and the rules of their limits. On a terminal it redraws every 2 s until you interrupt it. With --json
it prints an object a line every 2 s. In a pipe, or with --once, it prints once, and asks workers twice, 2 s apart, for their rates. It
receives no message and changes nothing.

Name a worker by the URL of its status.Handler, such as http://10.0.3.7:8080, or by dns:HOST:PORT for every address of a host. Queues
are those of --queue, and with credentials also those that the workers name. OLDEST of a queue is CloudWatch's
ApproximateAgeOfOldestMessage, asked once a minute and some minutes late, if cloudwatch:GetMetricData is allowed. NOISY is the number of
message groups that a fair queue counts as noisy, and QUIET the age of the oldest message in its other groups. They are shown if a queue
has noisy groups. CHANGE/S is the change of the queue's depth in the last minute, and EMPTY IN how long the messages last at that rate.
SQS's numbers are approximate. Unknown values are -. WHY of a worker has how many of its held messages are aside, in doubt or suspect, and why it
is not ready.

The rules of limits are those of status.Options.Limits. WAITING and RUNNING are sums over the processes, and NEXT IN is when the first of
their waiting messages has its turn. The JSON has the figures of each process.

Lines in a pipe: `+inWords(workerColumns)+"; "+inWords(queueColumns)+"; "+inWords(limitColumns)+`.

Exit codes of --once and of a pipe, for the workers and queues of the flags: 0 all answered, 1 none did, 4 some did not, 6 credentials
or permission. Queues that only workers name, and ages, do not count. Otherwise 0 after an interrupt or --timeout.`,
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
		return fail(exitUsage, "nothing to watch: set --worker, --queue or SQSONCE_QUEUE")
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
		err = a.printTable(nil, s.lines(a))
	default:
		err = a.printFitted(s.tables(a, a.width))
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
	s.Limits = fleet.Limits(t.workers)
	s.Notes = append(fleet.Banners(t.workers), s.Notes...)
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

// snapshot is what top shows at one time, and the JSON of it. A figure that is not known is not there.
type snapshot struct {
	V       int            `json:"v"`
	At      time.Time      `json:"at"`
	Workers []*workerRow   `json:"workers"`
	Queues  []*queueRow    `json:"queues"`
	Limits  []*fleet.Limit `json:"limits,omitempty"` // none: no process reports a rule
	Notes   []string       `json:"notes,omitempty"`
}

// workerRow is a worker of a process, or a process that has none or has not answered.
type workerRow struct {
	Name     string    `json:"name,omitempty"`
	URL      string    `json:"url"`
	Version  string    `json:"version,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Error    string    `json:"error,omitempty"`
	Queue    string    `json:"queue,omitempty"`
	QueueURL string    `json:"queue_url,omitempty"`
	State    string    `json:"state"` // "unknown": see Error
	Intake   string    `json:"intake,omitempty"`
	NotLive  string    `json:"not_live,omitempty"`
	NotReady string    `json:"not_ready,omitempty"`

	Done          *float64 `json:"done_per_second,omitempty"`
	Failed        *float64 `json:"failed_per_second,omitempty"`
	Received      *float64 `json:"received_per_second,omitempty"`
	Running       *float64 `json:"running,omitempty"`
	Concurrency   *float64 `json:"concurrency,omitempty"`
	InFlight      *float64 `json:"in_flight,omitempty"`
	Held          *float64 `json:"held,omitempty"`
	Aside         *float64 `json:"aside,omitempty"`
	InDoubt       *float64 `json:"in_doubt,omitempty"`
	Suspect       *float64 `json:"suspect,omitempty"`
	OldestRunning *float64 `json:"oldest_running_seconds,omitempty"`
	Stuck         *float64 `json:"stuck,omitempty"`
	LeasesLost    *float64 `json:"leases_lost,omitempty"`

	trouble string // see fleet.Trouble
	err     error
}

func workerRows(workers []fleet.Worker, rates map[fleet.Of]fleet.Rate) []*workerRow {
	rows := []*workerRow{} // [] in JSON
	for _, w := range workers {
		if w.Err != nil {
			rows = append(rows, &workerRow{URL: w.URL, State: "unknown", Error: w.Err.Error(), err: w.Err})
			continue
		}
		process := workerRow{Name: w.Report.Name, URL: w.URL, Version: w.Report.Version, Started: w.Report.Started}
		if len(w.Report.Workers) == 0 {
			process.State = "no worker"
			rows = append(rows, &process)
		}
		for i, of := range w.Report.Workers {
			stat := func(name string) *float64 {
				if v, ok := of.Stats[name]; ok {
					return &v
				}
				return nil
			}
			row := process
			row.Queue, row.QueueURL, row.State, row.Intake = of.Queue, of.URL, of.State, of.Intake
			row.NotLive, row.NotReady = of.NotLive, of.NotReady
			row.Running, row.Concurrency = stat(fleet.RunningNow), stat(fleet.Concurrency)
			row.InFlight, row.Held = stat(fleet.InFlight), stat(fleet.Held)
			row.Aside, row.InDoubt, row.Suspect, row.trouble = stat(fleet.Aside), stat(fleet.InDoubt), stat(fleet.Suspect), fleet.Trouble(of.Stats)
			row.OldestRunning, row.Stuck, row.LeasesLost = stat(fleet.OldestRunning), stat(fleet.Stuck), stat(fleet.LeasesLost)
			if r, ok := rates[fleet.Of{URL: w.URL, Worker: i}]; ok {
				row.Done, row.Failed, row.Received = &r.Done, &r.Failed, &r.Received
			}
			rows = append(rows, &row)
		}
	}
	return rows
}

// queueName is how the worker names its queue: by a URL, by a name, or not.
func (w *workerRow) queueName() string { return cmp.Or(w.QueueURL, w.Queue) }

// why is what somebody should look at.
func (w *workerRow) why() string {
	var all []string
	add := func(what, text string) {
		if text != "" {
			all = append(all, what+text)
		}
	}
	add("", w.Error)
	add("", w.trouble) // first: a terminal cuts long reasons
	add("not live: ", w.NotLive)
	add("not ready: ", w.NotReady)
	if w.Intake == "paused" {
		add("", "paused")
	}
	return strings.Join(all, "; ")
}

// queueRow is a queue with its dead-letter queue.
type queueRow struct {
	Queue       string    `json:"queue"`
	URL         string    `json:"url,omitempty"`
	Error       string    `json:"error,omitempty"`
	Visible     *int      `json:"visible,omitempty"`
	InFlight    *int      `json:"in_flight,omitempty"`
	Delayed     *int      `json:"delayed,omitempty"`
	Oldest      *float64  `json:"oldest_seconds,omitempty"`
	OldestAt    time.Time `json:"oldest_as_of,omitzero"`
	NoOldest    string    `json:"oldest_unknown,omitempty"` // why
	Noisy       *int      `json:"noisy_groups,omitempty"`   // of a fair queue
	OldestQuiet *float64  `json:"oldest_of_quiet_groups_seconds,omitempty"`
	Done        *float64  `json:"done_per_second,omitempty"`
	Change      *float64  `json:"change_per_second,omitempty"`
	EmptyIn     *float64  `json:"empty_in_seconds,omitempty"`
	DLQ         string    `json:"dlq,omitempty"`
	DLQURL      string    `json:"dlq_url,omitempty"`
	InDLQ       *int      `json:"dlq_messages,omitempty"` // hidden ones too: whoever lists them hides them
	DLQError    string    `json:"dlq_error,omitempty"`

	named       bool // by a flag
	err, dlqErr error
}

func (q *queueRow) why() string {
	var all []string
	for _, p := range []pair{{"", q.Error}, {"DLQ: ", q.DLQError}, {"oldest: ", q.NoOldest}} {
		if p.value != "" {
			all = append(all, p.name+p.value)
		}
	}
	return strings.Join(all, "; ")
}
