package hosttest

import (
	"context"
	"errors"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// host is a host that runs the handler.
type host struct {
	name  string
	start func(w *fixture, sc *scenario) running
}

// running is a started host.
type running interface {
	restart() // its processes stop as in a deployment, and others replace them
	crash()   // its processes die at once, and others replace them
	stop()
}

const functionTimeout = 30 * time.Second

var hosts = []host{
	{worker, startWorker},
	{function, func(w *fixture, sc *scenario) running { return startFunction(w, sc, true) }},
	{bareFunction, func(w *fixture, sc *scenario) running { return startFunction(w, sc, false) }},
}

// The hosts of the table.
const (
	worker       = "worker"
	function     = "function"                  // with a client and the dead-letter queue's URL
	bareFunction = "function without a client" // only the settings of the queue decide about retries
)

type order struct {
	Name string `json:"name"`
}

// dedupHandler returns the same handler for every host: dedup with the process's own client, then JSON, then the script.
func (w *fixture) dedupHandler(p *process, s script) sqsonce.Handler {
	store := must.Get(dynamostore.New(p.ddb, table))(w)
	once := must.Get(dedup.New(store, consumer))(w)
	return w.checker.delivered(p, once.Handler(sqsonce.JSON(func(ctx context.Context, _ order) error {
		return w.checker.run(ctx, s)
	})))
}

type workers struct {
	w       *fixture
	sc      *scenario
	p       *process
	cancel  context.CancelFunc
	stopped chan error
}

func startWorker(w *fixture, sc *scenario) running {
	h := &workers{w: w, sc: sc}
	h.begin()
	return h
}

func (h *workers) begin() {
	h.p = h.w.newProcess()
	k, err := sqsworker.New(h.p.sqs, h.w.url, h.w.dedupHandler(h.p, h.sc.script), func(o *sqsworker.Options) {
		o.Logger = h.w.log
		if h.sc.worker != nil {
			h.sc.worker(o)
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
	// A stop that does not wait for all handlers returns a StopError. The end of the process ends those handlers.
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
	<-h.stopped // with any result: the process is dead
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
	w       *fixture
	pool    *pool
	cancel  context.CancelFunc
	stopped chan error
}

func startFunction(w *fixture, sc *scenario, client bool) running {
	h := &functions{w: w, stopped: make(chan error, 1)}
	h.pool = &pool{newEnvironment: func() *environment {
		p := w.newProcess()
		return newEnvironment(w.T, p, w.dedupHandler(p, sc.script), func(l *lambda.Options) {
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

// restart kills, as Lambda does: an environment gets no signal during an invocation, and has nothing to stop between two.
func (h *functions) restart() { h.pool.kill() }

func (h *functions) crash() { h.pool.kill() }

func (h *functions) stop() {
	h.cancel()
	if err := <-h.stopped; err != nil {
		h.w.Errorf("mapping: %v", err)
	}
	h.pool.kill()
}
