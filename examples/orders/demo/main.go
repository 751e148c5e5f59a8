// Command demo shows the whole way, from publisher to ledger, under the conditions that double effects: events sent
// again, handlers slower than the visibility timeout, and a worker and a Lambda function killed in the middle.
//
// It starts an SQS and a DynamoDB in memory, or uses those of AWS_ENDPOINT_URL (AWS_ENDPOINT_URL_SQS and
// AWS_ENDPOINT_URL_DYNAMODB where they differ), runs the publish, worker and lambda commands beside its own executable as
// processes, the last behind an event source mapping, and counts afterwards: what the endpoint delivered, what the outside system was told, what the ledger holds.
// STORE puts the records elsewhere than in DynamoDB, and the ledger with them: postgres, mariadb and sqlite, or redis, for
// which the ledger stays. The server is started for the demo, from the system's packages; sqlite needs none.
//
// It exits with status 1 if an effect is missing, doubled or out of order.
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
	defer os.RemoveAll(dir) // leftovers in the temporary folder harm nobody

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
	c := newCrew(bin, dir, s)
	defer c.killAll()

	killed, err := perform(ctx, c, in)
	if err != nil {
		return err
	}
	v, err := judge(context.WithoutCancel(ctx), s, in, c.callsFile(), killed)
	if err != nil {
		return err
	}
	return v.print(os.Stdout)
}

// perform publishes and works until everything is booked and the queues are empty, killing a worker and a function on the
// way. It returns the processes it killed.
func perform(ctx context.Context, c *crew, in *input) (killed []int, err error) {
	bars := newBars(in)
	defer bars.stop()
	if err := c.begin(ctx, in); err != nil {
		return nil, err
	}
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return killed, fmt.Errorf("not done in %s: %w", deadline, context.Cause(ctx))
		case err := <-c.failed:
			return killed, err
		case <-tick.C:
		}
		booked, err := c.stack.booked(ctx)
		if err != nil {
			return killed, err
		}
		bars.show(booked)
		fifo, standard := in.halves[0], in.halves[1]
		if len(killed) == 0 && in.count(fifo, booked) >= len(fifo.events)*2/5 {
			if killed, err = c.crash(bars, fifo.queue, standard.queue); err != nil {
				return killed, err
			}
		}
		if len(killed) == 0 || !in.complete(booked) {
			continue
		}
		if empty, err := c.stack.drained(ctx); err != nil {
			return killed, err
		} else if empty {
			bars.show(booked)
			return killed, c.stop(ctx)
		}
	}
}

// begin starts two workers and a function for each queue, and publishes.
func (c *crew) begin(ctx context.Context, in *input) error {
	if err := c.startFunctions(ctx, in); err != nil {
		return err
	}
	for _, h := range in.halves {
		for range 2 {
			if err := c.worker(h.queue); err != nil {
				return err
			}
		}
	}
	for _, h := range in.halves {
		if err := c.publish(h); err != nil {
			return err
		}
	}
	return nil
}

// crash kills a worker of one queue and a function of the other. The worker is replaced here, the function's process by
// its next invocation.
func (c *crew) crash(b *bars, workerQueue, functionQueue string) (killed []int, err error) {
	worker, err := c.killOne(workerQueue)
	if err != nil {
		return nil, err
	}
	killed = append(killed, worker)
	b.say("killed worker %d of %s with SIGKILL, and started another", worker, workerQueue)
	if err := c.worker(workerQueue); err != nil {
		return killed, err
	}
	function, err := c.functions.killOne(functionQueue)
	if err != nil {
		return killed, err
	}
	b.say("killed function %d of %s with SIGKILL", function, functionQueue)
	return append(killed, function), nil
}
