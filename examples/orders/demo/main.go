// Command demo runs the orders example under the conditions that double effects: events that are sent twice, handlers that
// take longer than the visibility timeout, a store that is away for ten seconds, and a worker and a Lambda function that are
// killed in the middle. The orders are committed together with their events, which two relays publish for each queue, one of which is
// killed too. Orders of one article are rejected on the standard queue, and redriven when the cause is fixed.
//
// It starts SQS and DynamoDB in memory, or uses the endpoint of AWS_ENDPOINT_URL (AWS_ENDPOINT_URL_SQS and
// AWS_ENDPOINT_URL_DYNAMODB where they differ). It runs the commands publish, worker and lambda, the last behind an event
// source mapping, from the folder of its own executable. Workers and functions reach their store by a proxy, which refuses
// connections for the ten seconds. Then it counts: deliveries at the endpoint, calls of the external system, bookings in the
// ledger.
//
// STORE names another store for the records: postgres, mariadb and sqlite, which then have the ledger and the outbox too, or redis, whose orders are published at once, without an outbox. The
// demo starts the server, from the packages of the system. SQLite needs none: it is a file, and its outage is left out.
//
// STACK_OUTPUTS names a file with the answer of `sam list stack-outputs --output json` for a stack of template.yaml. The demo then uses its queues and tables on
// AWS, beside its functions, with publishers and workers of its own, one of which it kills. It causes no outage, kills no
// function, has no order rejected, and does not count deliveries there; the calls of the functions are not known to it.
//
// It exits with status 1 where an effect is missing, doubled or out of order, where a dead-letter queue holds a message, and
// where it is not done in three minutes, or in fifteen with a deployed stack.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

const (
	concurrency = 16
	visibility  = 6 * time.Second // less than a manual review takes
	deadline    = 3 * time.Minute
	// deployedDeadline is for requests over the internet, and messages that wait for the visibility timeout of template.yaml.
	deployedDeadline = 15 * time.Minute
	// lease is longer than the outage, also where a third of it has passed and its renewal is due: completions are retried
	// until its end. With a shorter one the calls of the external system whose completion the outage stops are repeated.
	lease = 2 * outageTime
	// longestBackoff is short: the worker's default is made for failures that last longer than a demo.
	longestBackoff = 8 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	limit := deadline
	if os.Getenv("STACK_OUTPUTS") != "" {
		limit = deployedDeadline
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done in %s", limit))
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "sqsonce-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // what it cannot remove stays in the temporary folder

	d, err := readDeployed()
	if err != nil {
		return err
	}
	n := newNames()
	if d != nil {
		n = d.names()
	}
	in, err := readInput(dir, n)
	if err != nil {
		return err
	}
	bin := filepath.Dir(executable)
	b, err := startBackend(ctx, bin, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	start := startStack
	if d != nil {
		start = func(ctx context.Context, _ names, b *backend) (*stack, error) { return d.connect(ctx, b) }
	}
	s, err := start(ctx, n, b)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := s.close(context.WithoutCancel(ctx)); err == nil {
			err = closeErr
		}
	}()
	p := newProcesses(bin, dir, s)
	defer p.killAll()

	killed, err := perform(ctx, p, in)
	if err != nil {
		return err
	}
	r, err := newReport(context.WithoutCancel(ctx), s, in, p.callsFile(), killed)
	if err != nil {
		return err
	}
	return r.print(os.Stdout)
}

// perform publishes and works until every event is booked and the queues are empty. The incidents happen on the way. It
// returns the IDs of the killed processes.
func perform(ctx context.Context, p *processes, in *input) (killed []int, err error) {
	shown := newProgress(in)
	defer shown.stop()
	if err := startAll(ctx, p, in); err != nil {
		return nil, err
	}
	todo := &incidents{p: p, shown: shown, in: in}
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case err := <-p.failed:
			return nil, err
		case <-todo.back:
			todo.end()
			continue
		case err := <-todo.mended:
			if err != nil {
				return nil, fmt.Errorf("redriving: %w", err)
			}
			todo.over = true
			continue
		case <-tick.C:
		}
		booked, err := p.stack.booked(ctx)
		if err != nil {
			return nil, err
		}
		shown.show(booked)
		if err := todo.killRelays(); err != nil {
			return nil, err
		}
		if err := todo.next(ctx, booked); err != nil {
			return nil, err
		}
		if !todo.over || !in.complete(booked) {
			continue
		}
		if empty, err := p.stack.drained(ctx); err != nil {
			return nil, err
		} else if empty {
			shown.show(booked)
			return todo.killed, p.stop(ctx)
		}
	}
}

// startAll starts two workers, a function, two relays and a publisher for each queue.
func startAll(ctx context.Context, p *processes, in *input) error {
	if !p.stack.deployed { // else they are running
		if err := os.WriteFile(p.unknownFile(), []byte(unknownArticle), 0o600); err != nil {
			return err
		}
		if err := p.startFunctions(ctx, in); err != nil {
			return err
		}
	}
	for _, l := range in.loads {
		for range 2 {
			if err := p.startWorker(l.queue); err != nil {
				return err
			}
		}
	}
	if p.stack.backend.relay != nil {
		for _, l := range in.loads {
			for range 2 {
				if err := p.startRelay(l.queue); err != nil {
					return err
				}
			}
		}
	}
	for _, l := range in.loads {
		if err := p.startPublisher(l); err != nil {
			return err
		}
	}
	return nil
}
