package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/console"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/doctor"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/fleet"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/ops"
)

// mostQueues bounds what a console samples: two calls for each, every five seconds.
const mostQueues = 50

type consoleFlags struct {
	queues, workers []string
	function        string
	limits          string
	noClient        bool
	write           bool
	port            int
}

func (a *app) console() *cobra.Command {
	var f consoleFlags
	c := a.command("console", "Show queues, dead letters, records and workers in the browser", `Serves pages on 127.0.0.1 until you interrupt it, and prints the URL to open. The URL has a token: anyone who has it can open the
pages. They show queues with their depths, ages and plots, dead-letter queues by reason, records, running workers and the doctor's
findings.

The console reads queue attributes and workers' figures every five seconds, and ages from CloudWatch every minute. It receives messages
only when you press Look. Without --write it changes nothing else. With --write the pages also redrive, delete, free and complete, by
the commands of those names, with their plans, questions, journals and audit.`,
		`  sqsonce console --queue orders --consumer billing --table dedup
  sqsonce console --queue orders --queue orders.fifo --worker http://10.0.0.7:8080,dns:billing.internal:8080 --write`,
		cobra.NoArgs, func(ctx context.Context, _ []string) error { return a.serveConsole(ctx, f) })
	c.Flags().StringArrayVar(&f.queues, "queue", nil, "a source `queue`, by name, URL or ARN (repeatable)")
	c.Flags().StringSliceVar(&f.workers, "worker", nil, "the `URL` of a worker's status handler, or dns:HOST:PORT for each address of the host (repeatable)")
	c.Flags().StringVar(&f.function, "function", "", "name or ARN of the `function` behind an event source mapping of the queue, for the doctor. Needs exactly one --queue")
	limitsFlags(c, &f.limits, &f.noClient)
	c.Flags().BoolVar(&f.write, "write", false, "pages may also change: redrive, delete, free, complete")
	c.Flags().IntVar(&f.port, "port", 0, "listen on this `port` (default: a free one)")
	a.retentionFlag(c)
	a.operatorFlag(c)
	return a.recordFlags(c)
}

func (f *consoleFlags) resolve(a *app) error {
	if len(f.queues) == 0 && a.flags.queue != "" { // of the environment
		f.queues = []string{a.flags.queue}
	}
	switch n := len(f.queues); {
	case n == 0:
		return fail(exitUsage, "which queues? Set --queue or SQSONCE_QUEUE")
	case n > mostQueues:
		return fail(exitUsage, "%d queues: a console shows %d at most", n, mostQueues)
	case n > 1 && f.function != "":
		return fail(exitUsage, "--function is the function of one queue, and there are %d", n)
	case f.port < 0 || f.port > 1<<16-1:
		return fail(exitUsage, "port %d is not in 0 to 65535", f.port)
	case a.flags.consumer != "" && !a.hasStore():
		return fail(exitUsage, "which table has the records of consumer %s? Set --table or SQSONCE_TABLE, or --store or SQSONCE_STORE", a.flags.consumer)
	}
	if err := checkLimits(f.limits, f.function, f.noClient); err != nil {
		return err
	}
	if err := (&fleet.Fleet{Targets: f.workers}).Check(); err != nil {
		return fail(exitUsage, "--worker: %w", err)
	}
	return nil
}

func (a *app) serveConsole(ctx context.Context, f consoleFlags) error {
	if err := f.resolve(a); err != nil {
		return err
	}
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	p := &pages{ctx: ctx, app: a, services: s}
	opts := console.Options{
		Workers: f.workers, Write: f.write, SQS: s.sqs, CloudWatch: s.cloudwatch, HTTP: http.DefaultClient,
		Joined: a.flags.consumer != "",
		Open:   p.open, Command: p.command, Typed: p.typed, Archive: a.newArchive, Logger: slog.New(slog.NewTextHandler(a.err, nil)),
		Doctor: func(ctx context.Context, q console.Queue) []doctor.Finding { return p.doctor(ctx, q, f) },
	}
	if a.hasStore() {
		opts.Record = p.record
	}
	for _, name := range f.queues {
		q, err := a.consoleQueue(ctx, s, name)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(opts.Queues, func(other console.Queue) bool { return other.Name == q.Name }) {
			return fail(exitUsage, "queue %s is named twice", q.Name)
		}
		opts.Queues = append(opts.Queues, q)
	}
	// Never another address: pages have bodies, and the token is all that guards them.
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(f.port)))
	if err != nil {
		return err
	}
	opts.Addr = l.Addr().String()
	server := console.New(opts)
	if err := a.printNow(server.URL()); err != nil {
		server.Close()
		return errors.Join(err, l.Close())
	}
	a.note("the console runs until you interrupt it. Anyone who has its URL can open it")
	return server.Serve(ctx, l)
}

// consoleQueue finds a queue and its dead-letter queue. One that it does not have, or that is missing, is the doctor's to explain.
func (a *app) consoleQueue(ctx context.Context, s *services, name string) (console.Queue, error) {
	url, err := s.queueURL(ctx, name)
	if err != nil {
		return console.Queue{}, err
	}
	q := console.Queue{Name: host.QueueName(url), URL: url}
	if q.DLQURL, _, err = s.deadLetterURL(ctx, url, ""); err != nil {
		if _, answered := errors.AsType[*exitError](err); !answered || ctx.Err() != nil { // not read is not none
			return console.Queue{}, err
		}
		a.note("queue %s is shown without a dead-letter queue: %v", q.Name, err)
		q.DLQURL = ""
		return q, nil
	}
	q.DLQName = host.QueueName(q.DLQURL)
	return q, nil
}

// pages is what the console's pages use of the commands. It may be called concurrently.
type pages struct {
	ctx      context.Context // of the console
	app      *app
	services *services
	opening  sync.Mutex // of app.store
}

// sub returns a run of the program with the console's consumer, store and retention, where nobody can be asked.
func (p *pages) sub(out, err io.Writer) *app {
	a := p.app
	env := map[string]string{
		"SQSONCE_CONSUMER": a.flags.consumer, "SQSONCE_TABLE": a.flags.table, "SQSONCE_STORE": a.flags.store, "SQSONCE_QUEUE": "", "USER": a.flags.operator,
	}
	sub := &app{
		opts: a.opts, in: strings.NewReader(""), out: out, err: err, behind: true,
		getenv: func(name string) string {
			if value, own := env[name]; own {
				return value
			}
			return a.getenv(name)
		},
		connect: func(context.Context) (*services, error) { return p.services, nil },
	}
	if a.opts.Store != nil {
		sub.opts.Store = p.store
	}
	if a.opts.StoreURL != nil {
		sub.opts.StoreURL = func(ctx context.Context, _ *url.URL) (Store, error) { return p.store(ctx) }
	}
	sub.flags.consumer, sub.flags.table, sub.flags.store, sub.flags.retention = a.flags.consumer, a.flags.table, a.flags.store, a.flags.retention
	return sub
}

// store opens the store of the program once. It is not the request's: others use it when that has ended.
func (p *pages) store(context.Context) (Store, error) {
	p.opening.Lock()
	defer p.opening.Unlock()
	return p.app.openStore(p.ctx)
}

func (p *pages) command(ctx context.Context, out, err io.Writer, args ...string) int {
	return int(p.sub(out, err).run(ctx, p.whole(args)))
}

// whole adds the console's flags to a command of two words: the audit has them then, and so has the command that goes on after an
// interrupt.
func (p *pages) whole(args []string) []string {
	f := p.app.flags
	var own []string
	if f.consumer != "" {
		own = append(own, "--consumer="+f.consumer)
	}
	switch {
	case p.app.opts.Store != nil:
	case f.store != "":
		own = append(own, "--store="+f.store)
	case f.table != "":
		own = append(own, "--table="+f.table)
	}
	if f.retention != 0 {
		own = append(own, "--retention="+f.retention.String())
	}
	return slices.Concat(args[:2], own, args[2:])
}

// typed is a command of two words as it is typed.
func (p *pages) typed(queue string, args ...string) string {
	return p.app.typed(shownArgs(p.whole(slices.Insert(slices.Clone(args), 2, "--queue="+queue))))
}

func (p *pages) open(ctx context.Context, q console.Queue) (*ops.DLQ, error) {
	sub := p.sub(io.Discard, io.Discard)
	sub.flags.queue = q.URL
	d, _, err := sub.openDLQ(ctx)
	return d, err
}

func (p *pages) record(ctx context.Context, key string) (dedup.Record, dedup.RecordState, error) {
	r, err := p.sub(io.Discard, io.Discard).inspect(ctx, key)
	return r.Record, r.state, err
}

func (p *pages) doctor(ctx context.Context, q console.Queue, own consoleFlags) []doctor.Finding {
	s, f := p.services, p.app.flags
	return doctor.Examine(ctx, doctor.Clients{
		SQS: s.sqs, DynamoDB: s.dynamo, Lambda: s.lambda, IAM: s.iam, CloudWatch: s.cloudwatch, STS: s.sts, Scheduler: s.scheduler,
		HTTP: http.DefaultClient,
	}, doctor.Deployment{
		QueueURL: q.URL, Function: own.function, Limits: own.limits, NoClient: own.noClient, Table: f.table, Consumer: f.consumer, Workers: own.workers,
		Retention: time.Duration(f.retention), Store: p.sub(io.Discard, io.Discard).storeCheck(), Look: p.typed(q.Name, "dlq", "ls"),
	})
}

// printNow prints a line of the result while the command goes on.
func (a *app) printNow(line string) error {
	_, err := fmt.Fprintln(a.out, line)
	if out, ok := a.out.(interface{ Flush() error }); ok {
		err = cmp.Or(err, out.Flush())
	}
	return err
}
