package hosttest

import (
	"context"
	"errors"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// host is a way to run the handler.
type host struct {
	name  string
	start func(w *world, o *outcome) running
}

// running is a host at work.
type running interface {
	restart() // its processes end as at a deployment, and others take their place
	crash()   // they die at once, and others take their place
	stop()
}

const functionTimeout = 30 * time.Second

var hosts = []host{
	{worker, startWorker},
	{function, func(w *world, o *outcome) running { return startFunction(w, o, true) }},
	{bareFunction, func(w *world, o *outcome) running { return startFunction(w, o, false) }},
}

// The hosts of the table.
const (
	worker       = "worker"
	function     = "function"                  // with a client and the dead-letter queue's URL
	bareFunction = "function without a client" // the queue's own settings alone decide about retries
)

type order struct {
	Name string `json:"name"`
}

// guarded is the same handler for every host: records of the process's own client around JSON around the script.
func (w *world) guarded(p *process, s script) sqsonce.Handler {
	store, err := dynamostore.New(p.ddb, table)
	if err != nil {
		w.Fatal(err)
	}
	once, err := dedup.New(store, consumer)
	if err != nil {
		w.Fatal(err)
	}
	return w.witness.around(p, once.Handler(sqsonce.JSON(func(ctx context.Context, _ order) error {
		return w.witness.watch(ctx, s)
	})))
}

type workers struct {
	w       *world
	o       *outcome
	p       *process
	cancel  context.CancelFunc
	stopped chan error
}

func startWorker(w *world, o *outcome) running {
	h := &workers{w: w, o: o}
	h.begin()
	return h
}

func (h *workers) begin() {
	h.p = h.w.newProcess()
	k, err := sqsworker.New(h.p.sqs, h.w.url, h.w.guarded(h.p, h.o.script), func(o *sqsworker.Options) {
		o.Logger = h.w.log
		if h.o.worker != nil {
			h.o.worker(o)
		}
	})
	if err != nil {
		h.w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel, h.stopped = cancel, make(chan error, 1)
	go func() { h.stopped <- k.Run(ctx) }()
}

func (h *workers) restart() {
	h.cancel()
	// A stop that leaves handlers behind says so. The end of the process ends them.
	if err := <-h.stopped; err != nil && !isStopError(err) {
		h.w.Errorf("Run: %v", err)
	}
	h.p.kill()
	h.begin()
}

func isStopError(err error) bool {
	_, ok := errors.AsType[*sqsworker.StopError](err)
	return ok
}

func (h *workers) crash() {
	h.p.kill()
	h.cancel()
	<-h.stopped // whatever it says: it is dead
	h.begin()
}

func (h *workers) stop() {
	h.cancel()
	if err := <-h.stopped; err != nil {
		h.w.Errorf("Run: %v", err)
	}
	h.p.kill()
}

type functions struct {
	w       *world
	pool    *pool
	cancel  context.CancelFunc
	stopped chan error
}

func startFunction(w *world, o *outcome, client bool) running {
	h := &functions{w: w, stopped: make(chan error, 1)}
	h.pool = &pool{newEnvironment: func() *environment {
		p := w.newProcess()
		return newEnvironment(w.T, p, w.guarded(p, o.script), func(l *lambda.Options) {
			l.Logger = w.log
			if client {
				l.Client, l.DeadLetterQueue = p.sqs, w.dlq
			}
		})
	}}
	var ctx context.Context
	ctx, h.cancel = context.WithCancel(context.Background())
	go func() {
		h.stopped <- esm.Run(ctx, w.admin.sqs, esm.Config{
			QueueURL: w.url, FunctionTimeout: functionTimeout, ReportBatchItemFailures: true, Logger: w.log,
		}, h.pool.invoke)
	}()
	return h
}

// restart kills, as Lambda does: an environment is never told while it runs an invocation, and has nothing to do when it
// is told between two.
func (h *functions) restart() { h.pool.kill() }

func (h *functions) crash() { h.pool.kill() }

func (h *functions) stop() {
	h.cancel()
	if err := <-h.stopped; err != nil {
		h.w.Errorf("mapping: %v", err)
	}
	h.pool.kill()
}
