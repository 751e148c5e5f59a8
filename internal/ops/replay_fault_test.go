package ops_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// Whatever fails: the error says so, what is in the dead-letter queue is visible, and the same call goes on to one run more.
func TestReplayFaults(t *testing.T) {
	t.Parallel()
	always := func(op string, do fault.Kind, code string) fault.Rule {
		return fault.Rule{Op: op, Prob: 1, Do: do, Code: code}
	}
	const denied = "AccessDeniedException"
	for name, tt := range map[string]struct {
		sqs, ddb []fault.Rule
		reopened bool       // the error says that it is
		action   ops.Action // default: Left
		text     string
	}{
		"no move tasks":           {sqs: []fault.Rule{always("ListMessageMoveTasks", fault.Error, denied)}, text: "sqs:ListMessageMoveTasks"},
		"no look":                 {ddb: []fault.Rule{always("GetItem", fault.Error, "InternalServerError")}, text: "not read"},
		"no receive":              {sqs: []fault.Rule{always("ReceiveMessage", fault.Error, denied)}, text: "sqs:ReceiveMessage"},
		"no look at what it has":  {ddb: []fault.Rule{{Op: "GetItem", Nth: 2, Times: 99, Do: fault.Error, Code: "InternalServerError"}}, text: "not read"},
		"no reopen":               {ddb: []fault.Rule{always("UpdateItem", fault.Error, denied)}, text: "unknown whether"},
		"no answer of the reopen": {ddb: []fault.Rule{always("UpdateItem", fault.LoseReply, "")}, text: "unknown whether"},
		"no look after it":        {ddb: []fault.Rule{{Op: "GetItem", Nth: 3, Times: 99, Do: fault.Error, Code: "InternalServerError"}}, reopened: true, text: "not read"},
		"no look after the wait":  {ddb: []fault.Rule{{Op: "GetItem", Nth: 4, Times: 99, Do: fault.Error, Code: "InternalServerError"}}, reopened: true, text: "not read"},
		"no extension":            {sqs: []fault.Rule{always("ChangeMessageVisibilityBatch", fault.Error, denied)}, reopened: true, text: "sqs:ChangeMessageVisibility"},
		"no answer of the send":   {sqs: []fault.Rule{always("SendMessageBatch", fault.LoseReply, "")}, reopened: true, action: ops.ActionUnknownOutcome},
		"throttled":               {sqs: []fault.Rule{always("SendMessageBatch", fault.Error, "RequestThrottled")}, reopened: true, action: ops.ActionSendFailed, text: "sqs:SendMessage"},
		"no send":                 {sqs: []fault.Rule{always("SendMessageBatch", fault.Error, denied)}, reopened: true, action: ops.ActionSendFailed, text: "sqs:SendMessage"},
		"a refused message":       {sqs: []fault.Rule{always("SendMessageBatch", fault.FailEntries, "InvalidMessageContents")}, reopened: true, action: ops.ActionSendFailed, text: "InvalidMessage"},
		"no delete":               {sqs: []fault.Rule{always("DeleteMessageBatch", fault.Error, denied)}, action: ops.ActionUndeleted, text: "sqs:DeleteMessage"},
		"no answer of the delete": {sqs: []fault.Rule{always("DeleteMessageBatch", fault.DropEntries, "")}, action: ops.ActionUndeleted, text: "sqs:DeleteMessage"},
	} {
		eachKind(t, name, setup{maxReceives: 100}, func(x *fixture) {
			e := x.doneEvent(false)
			again := e.again()
			d := x.redriver()
			e.worker.stop() // it would see the faults, too
			x.sqs.Set(fault.Plan{Rules: tt.sqs})
			x.ddb.Set(fault.Plan{Rules: tt.ddb})
			res, err := e.replay(d, again, func(o *ops.ReplayOptions) { o.Timeout = -1 })
			x.sqs.Set(fault.Plan{})
			x.ddb.Set(fault.Plan{})
			action := cmp.Or(tt.action, ops.ActionLeft)
			if err == nil || res.Err == nil || errors.Is(err, ops.ErrReopened) != tt.reopened || res.Action != action || !strings.Contains(err.Error(), tt.text) {
				x.Errorf("%+v, %v", res, err)
			}
			if name == "no extension" {
				time.Sleep(time.Minute)
			}
			if name != "no answer of the delete" {
				x.wantBodies(x.dlq, "a-1")
			}
			if n := x.hidden(); n != 0 {
				x.Errorf("%d messages are hidden", n)
			}
			e.worker = e.newWorker()
			if tt.action == ops.ActionUndeleted || tt.action == ops.ActionUnknownOutcome {
				time.Sleep(10 * time.Second) // and SQS has the copy
			}
			e.replayOn(again)
			e.wantRuns(2)
		})
	}
}

// When the context ends nothing more is done, the error says what is left, and the same call waits for the rest of the 65 s.
func TestReplayIsCancelled(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, 500 * time.Millisecond, 10 * time.Second, 60 * time.Second} {
		eachWay(t, fmt.Sprintf("after=%s/", after), func(x *fixture, archived bool) {
			e := x.doneEvent(archived)
			again := e.again()
			d := x.redriver()
			ctx, cancel := context.WithTimeoutCause(context.Background(), after, errCard)
			defer cancel()
			start := time.Now()
			res, err := d.Replay(ctx, e.m, note, again)
			if took := time.Since(start); !errors.Is(err, errCard) || errors.Is(err, ops.ErrReopened) != (after > 0) || res.Action != ops.ActionLeft || took > after+time.Second {
				x.Errorf("%+v, %v after %s", res, err, took)
			}
			if completed := e.record().Completed; completed != (after == 0) || x.hidden() != 0 || len(x.bodies(x.url)) != 0 {
				x.Errorf("completed %t, %d hidden, %d sent", completed, x.hidden(), len(x.bodies(x.url)))
			}
			if res, err := e.replay(d, again); err != nil || res.Action != ops.ActionReplayed {
				x.Errorf("%+v, %v", res, err)
			}
			if took := e.times[len(e.times)-1].Sub(start); took < forget || took > forget+5*time.Second {
				x.Errorf("the event runs after %s", took)
			}
			e.wantRuns(2)
		})
	}
}

// A context that ends just before the reopen lets nothing be reopened. A reopen that is under way is awaited: the error says that it was done.
func TestReplayIsCancelledAtTheReopen(t *testing.T) {
	t.Parallel()
	for _, under := range []bool{false, true} {
		bubble(t, setup{}, func(x *fixture) {
			e := x.doneEvent(true)
			again := e.again()
			d := x.redriver()
			e.worker.stop()
			if under {
				x.ddb.Set(fault.Plan{Rules: []fault.Rule{{Op: "UpdateItem", Nth: 1, Do: fault.Delay, Delay: 3 * time.Second}}})
			} else {
				e.m.Body = strings.Repeat("x", 2<<10) // for which the queue's limit is read
				x.sqs.Set(fault.Plan{Rules: []fault.Rule{{Op: "GetQueueAttributes", Nth: 1, Do: fault.Delay, Delay: 3 * time.Second}}})
			}
			ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, errCard)
			defer cancel()
			if res, err := d.Replay(ctx, e.m, note, again); !errors.Is(err, errCard) || errors.Is(err, ops.ErrReopened) != under || e.record().Completed == under {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
}

// A Progress that panics ends the replay where it is.
func TestReplayProgressPanics(t *testing.T) {
	t.Parallel()
	for _, in := range []bool{false, true} {
		bubble(t, setup{}, func(x *fixture) {
			e := x.doneEvent(false)
			again := e.again()
			if in {
				e.worker.stop()
			}
			res, err := e.replay(x.redriver(), again, func(o *ops.ReplayOptions) {
				o.Progress = func(w bool, _ time.Duration) {
					if w == in {
						panic("progress")
					}
				}
			})
			_, panicked := errors.AsType[*sqsonce.PanicError](err)
			if !panicked || errors.Is(err, ops.ErrReopened) != !in || (res.Action == ops.ActionReplayed) != in {
				t.Errorf("sent %t: %+v, %v", in, res, err)
			}
			if in {
				e.worker = e.newWorker()
			} else {
				e.replayOn(again)
			}
			e.wantRuns(2)
		})
	}
}

// A message that the queue does not show is not replayed, and no record is reopened.
func TestReplayNotShown(t *testing.T) {
	t.Parallel()
	for name, hide := range map[string]func(x *fixture){
		"deleted": func(x *fixture) {
			x.redriveAll(x.redriver(func(o *ops.Options) {
				o.Store = inspector(func(context.Context, string) (dedup.Record, error) { return dedup.Record{}, dedup.ErrNotFound })
			}))
		},
		"hidden": func(x *fixture) { x.receive(x.dlq) },
	} {
		bubble(t, setup{}, func(x *fixture) {
			e := x.doneEvent(false)
			again := e.again()
			x.send(x.dlq, "b-1")
			e.worker.stop()
			hide(x)
			start := time.Now()
			res, err := e.replay(x.redriver(), again)
			if took := time.Since(start); !errors.Is(err, ops.ErrNotShown) || res.Action != ops.ActionLeft || took > 5*time.Second || !e.record().Completed {
				t.Errorf("%s: %+v, %v after %s", name, res, err, took)
			}
		})
	}
	bubble(t, setup{fifo: true}, func(x *fixture) { // behind others of its group
		e := x.doneEvent(false)
		x.purge()
		for i := range 12 {
			x.send(x.dlq, fmt.Sprint("a-", i+2))
		}
		x.send(x.dlq, "a-1")
		e.m.ID = x.sqs.Messages(x.dlq)[12].ID
		if res, err := e.replay(x.redriver(), e.again()); !errors.Is(err, ops.ErrNotShown) || !e.record().Completed {
			t.Errorf("%+v, %v", res, err)
		}
		e.wantRuns(1)
	})
}

// What the delivery comes to is said: an event that fails again is one of the source queue.
func TestReplayOutcomes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prepare func(e *done) (stop func())
		after   dedup.RecordState
		text    string
		within  time.Duration
	}{
		"fails":       {func(e *done) func() { e.fails = errCard; return e.worker.stop }, dedup.StateReleased, "is released: card declined", 70 * time.Second},
		"crashes":     {(*done).crash, dedup.StateCrashed, "is crashed", 2 * time.Minute},
		"no consumer": {func(e *done) func() { e.worker.stop(); return func() {} }, ops.StateUnknown, "unknown within 1m30s", 160 * time.Second},
	} {
		bubble(t, setup{maxReceives: 100}, func(x *fixture) {
			e := x.doneEvent(false)
			again := e.again()
			stop := tt.prepare(e)
			start := time.Now()
			res, err := e.replay(x.redriver(), again, func(o *ops.ReplayOptions) { o.Timeout = 90 * time.Second })
			if took := time.Since(start); !errors.Is(err, ops.ErrNotCompleted) || !strings.Contains(err.Error(), tt.text) || res.After != tt.after || res.Action != ops.ActionReplayed || took > tt.within {
				t.Errorf("%s: %+v, %v after %s", name, res, err, took)
			}
			x.wantBodies(x.url, "a-1")
			x.wantBodies(x.dlq, "")
			stop()
		})
	}
}

// crash has the event's next run end with its process.
func (e *done) crash() func() {
	e.worker.stop()
	w := e.fixture.worker(e.url, e.guarded(hangs))
	time.AfterFunc(forget+10*time.Second, w.kill)
	return func() {}
}
