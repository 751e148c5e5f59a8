package ops_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
)

const (
	note      = "charged the wrong card"
	recordKey = "billing#orders|a-1"
	forget    = 65 * time.Second
)

// done is an event a-1 that a worker has completed, and remembers, and a message of it that lies in the dead-letter queue.
type done struct {
	*fixture
	m      *ops.Message // as it was listed
	worker host
	mu     sync.Mutex
	times  []time.Time // of its runs
	fails  error       // of these
}

// doneEvent returns one. The message of an archive has no receipt handle, and is in no queue.
func (x *fixture) doneEvent(archived bool) *done {
	x.Helper()
	e := &done{fixture: x}
	e.worker = e.newWorker()
	x.send(x.url, "a-1")
	time.Sleep(10 * time.Second)
	x.send(x.dlq, "a-1")
	e.m = x.mustList(x.open())["a-1"]
	if e.m.State != dedup.StateCompleted || e.runs() != 1 {
		x.Fatalf("%s, %d runs", e.m.State, e.runs())
	}
	if archived {
		e.m.ReceiptHandle, e.m.Record, e.m.State = "", nil, ops.StateUnknown
		x.purge()
	}
	return e
}

// purge empties the dead-letter queue.
func (x *fixture) purge() {
	x.Helper()
	must.Get(x.admin.sqs.PurgeQueue(context.Background(), &sqs.PurgeQueueInput{QueueUrl: &x.dlq}))(x)
}

// newWorker returns one that remembers nothing yet.
func (e *done) newWorker() host {
	return e.fixture.worker(e.url, e.guarded(func(_ context.Context, m *sqsonce.Message) error {
		e.mu.Lock()
		defer e.mu.Unlock()
		if m.Body == "a-1" {
			e.times = append(e.times, time.Now())
		}
		return e.fails
	}))
}

func (e *done) runs() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.times)
}

func (e *done) record() dedup.Record {
	e.Helper()
	return must.Get(e.store(e.admin).Inspect(context.Background(), recordKey))(e)
}

// again names the run that is completed now.
func (e *done) again() func(*ops.ReplayOptions) {
	fence := e.record().Fence
	return func(o *ops.ReplayOptions) { o.Again = fence }
}

func (e *done) replay(d *ops.DLQ, optFns ...func(*ops.ReplayOptions)) (ops.Result, error) {
	return d.Replay(context.Background(), e.m, note, optFns...)
}

// wantRuns ends the worker, and checks how often the event has run, and that nothing is hidden.
func (e *done) wantRuns(want int) {
	e.Helper()
	time.Sleep(visibility + time.Second)
	e.worker.stop()
	if n := e.runs(); n != want {
		e.Errorf("%d runs, want %d", n, want)
	}
	if n := e.hidden(); n != 0 {
		e.Errorf("%d messages are hidden", n)
	}
}

// eachWay is the test on both kinds of queue, with a message of the queue and one of an archive.
func eachWay(t *testing.T, name string, f func(x *fixture, archived bool)) {
	t.Helper()
	for _, archived := range []bool{false, true} {
		eachKind(t, fmt.Sprintf("%sarchived=%t", name, archived), setup{maxReceives: 100}, func(x *fixture) { f(x, archived) })
	}
}

// replayAndDie replays in a process that is killed before or after a request: see process.killAt. It reports whether it was.
func (e *done) replayAndDie(at int, again func(*ops.ReplayOptions), ended *sync.WaitGroup) bool {
	e.Helper()
	p := e.newProcess()
	d := e.openIn(p)
	p.killAt = 2*len(p.ops) + at
	ctx, cancel := context.WithCancel(context.Background())
	returned := make(chan struct{})
	ended.Go(func() {
		_, _ = d.Replay(ctx, e.m, note, again)
		close(returned)
	})
	defer cancel()
	for {
		select {
		case <-returned:
			return p.dead.Load()
		case <-time.After(500 * time.Millisecond):
			if p.dead.Load() {
				return true
			}
		}
	}
}

// replayOn makes the same call until there is nothing to go on with.
func (e *done) replayOn(again func(*ops.ReplayOptions)) {
	e.Helper()
	d := e.redriver()
	var err error
	for range 20 {
		if _, err = e.replay(d, again); err == nil || errors.Is(err, ops.ErrRanAgain) || errors.Is(err, ops.ErrNotCompleted) {
			return
		}
		if e.m.ReceiptHandle != "" && len(e.bodies(e.dlq)) == 0 {
			return // deleted
		}
		time.Sleep(20 * time.Second)
	}
	e.Errorf("the replay does not end: %v", err)
}
