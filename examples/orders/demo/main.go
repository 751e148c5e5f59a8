// Command demo runs the orders example under the conditions that double effects: events that are sent twice, handlers that
// take longer than the visibility timeout, and a worker and a Lambda function that are killed in the middle.
//
// It starts SQS and DynamoDB in memory, or uses the endpoint of AWS_ENDPOINT_URL (AWS_ENDPOINT_URL_SQS and
// AWS_ENDPOINT_URL_DYNAMODB where they differ). It runs the commands publish, worker and lambda, the last behind an event
// source mapping, from the folder of its own executable. Then it counts: deliveries at the endpoint, calls of the external
// system, bookings in the ledger.
//
// STORE names another store for the records: postgres, mariadb and sqlite, which then have the ledger too, or redis. The
// demo starts the server, from the packages of the system; sqlite needs none.
//
// It exits with status 1 where an effect is missing, doubled or out of order.
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
	lease       = 6 * time.Second
	deadline    = 3 * time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, deadline)
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

	n := newNames()
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
	s, err := startStack(ctx, n, b)
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

// perform publishes and works until every event is booked and the queues are empty. It kills a worker and a function on
// the way, and returns the IDs of these processes.
func perform(ctx context.Context, p *processes, in *input) (killed []int, err error) {
	shown := newProgress(in)
	defer shown.stop()
	if err := startAll(ctx, p, in); err != nil {
		return nil, err
	}
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return killed, fmt.Errorf("not done in %s: %w", deadline, context.Cause(ctx))
		case err := <-p.failed:
			return killed, err
		case <-tick.C:
		}
		booked, err := p.stack.booked(ctx)
		if err != nil {
			return killed, err
		}
		shown.show(booked)
		fifo, standard := in.loads[0], in.loads[1]
		if len(killed) == 0 && fifo.count(booked) >= len(fifo.events)*2/5 {
			if killed, err = kill(p, shown, fifo.queue, standard.queue); err != nil {
				return killed, err
			}
		}
		if len(killed) == 0 || !in.complete(booked) {
			continue
		}
		if empty, err := p.stack.drained(ctx); err != nil {
			return killed, err
		} else if empty {
			shown.show(booked)
			return killed, p.stop(ctx)
		}
	}
}

// startAll starts two workers, a function and a publisher for each queue.
func startAll(ctx context.Context, p *processes, in *input) error {
	if err := p.startFunctions(ctx, in); err != nil {
		return err
	}
	for _, l := range in.loads {
		for range 2 {
			if err := p.startWorker(l.queue); err != nil {
				return err
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

// kill kills a worker of one queue and a function of the other, and starts another worker. The next invocation starts
// another process of the function.
func kill(p *processes, shown *progress, workerQueue, functionQueue string) (killed []int, err error) {
	worker, err := p.killWorker(workerQueue)
	if err != nil {
		return nil, err
	}
	killed = append(killed, worker)
	shown.print("killed worker %d of %s with SIGKILL, and started another", worker, workerQueue)
	if err := p.startWorker(workerQueue); err != nil {
		return killed, err
	}
	function, err := p.functions.kill(functionQueue)
	if err != nil {
		return killed, err
	}
	shown.print("killed function %d of %s with SIGKILL", function, functionQueue)
	return append(killed, function), nil
}
