package ops_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/ops"
)

// OnResult is called once for each message, and again when its result changes: what it was told last is the report.
func TestOnResult(t *testing.T) {
	t.Parallel()
	for _, fifo := range []bool{false, true} {
		bubble(t, setup{fifo: fifo}, func(x *fixture) {
			x.fill(200)
			h := x.worker(x.url, x.guarded(func(context.Context, *sqsonce.Message) error { time.Sleep(100 * time.Millisecond); return nil }))
			type state struct {
				action ops.Action
				after  dedup.RecordState
			}
			var inside atomic.Int32
			told, calls, canary := map[string]state{}, 0, []state{}
			tell := func(o *ops.RedriveOptions) {
				o.Unknown, o.Rate, o.OnResult = true, 10, func(res *ops.Result) {
					if inside.Add(1) != 1 {
						t.Error("called while it is running")
					}
					defer inside.Add(-1)
					now := state{res.Action, res.After}
					if calls++; told[res.ID] == now {
						t.Errorf("called twice with %+v", now)
					}
					if len(told) == 150 {
						x.sqs.Set(fault.Plan{Rules: []fault.Rule{{Op: "DeleteMessageBatch", Prob: 1, Do: fault.Error, Code: "AccessDenied"}}})
					}
					if told[res.ID] = now; len(told) == 1 {
						if canary = append(canary, now); len(x.bodies(x.dlq)) != 199 {
							t.Error("the canary is told late")
						}
					}
				}
			}
			r, err := x.redriver().Redrive(context.Background(), withUnknown, tell)
			if err == nil || r.Count(ops.ActionUndeleted) == 0 {
				t.Errorf("%d undeleted, %v", r.Count(ops.ActionUndeleted), err)
			}
			if len(canary) != 2 || canary[0] != (state{action: ops.ActionRedriven}) || canary[1] != (state{ops.ActionRedriven, dedup.StateCompleted}) {
				t.Errorf("the canary: %+v", canary)
			}
			if calls < len(r.Results)+1 || len(told) != len(r.Results) {
				t.Errorf("%d calls for %d of %d results", calls, len(told), len(r.Results))
			}
			watched := 0
			for _, res := range r.Results {
				if res.After != "" {
					watched++
				}
				if told[res.ID] != (state{res.Action, res.After}) || res.Destination != x.url {
					t.Errorf("told %+v of %+v", told[res.ID], res)
				}
			}
			x.sqs.Set(fault.Plan{})
			h.stop()
			if watched < 2 {
				t.Errorf("%d watched", watched)
			}
		})
	}
}

// A message that is deleted only when it came once more is told again.
func TestOnResultOfDeletedAgain(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		x.fill(20)
		x.sqs.Set(fault.Plan{Rules: []fault.Rule{
			{Op: "ReceiveMessage", Nth: 1, Do: fault.Duplicate, Entries: []int{0}},
			{Op: "DeleteMessageBatch", Nth: 1, Times: 3, Do: fault.FailEntries, Entries: []int{0}},
		}})
		actions := map[string][]ops.Action{}
		r := x.redriveAll(x.redriver(), func(o *ops.RedriveOptions) {
			o.OnResult = func(res *ops.Result) { actions[res.ID] = append(actions[res.ID], res.Action) }
		})
		again := 0
		for _, res := range r.Results {
			switch got := actions[res.ID]; {
			case slices.Equal(got, []ops.Action{ops.ActionUndeleted, ops.ActionRedriven}):
				again++
			case !slices.Equal(got, []ops.Action{ops.ActionRedriven}):
				t.Errorf("told %q of %+v", got, res)
			}
		}
		if again != 1 {
			t.Errorf("%d messages were told to be deleted later, want 1", again)
		}
	})
}

// A panic of OnResult ends the redrive with its error: nothing is lost, and it is not called again.
func TestOnResultPanics(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		x.fill(30)
		calls := 0
		r, err := x.redriver().Redrive(context.Background(), noCanary, func(o *ops.RedriveOptions) {
			o.OnResult = func(*ops.Result) { calls++; panic("no terminal") }
		})
		x.checkReport(r)
		if _, ok := errors.AsType[*sqsonce.PanicError](err); !ok || calls != 1 || x.hidden() != 0 {
			t.Errorf("%d calls, %d hidden, %v", calls, x.hidden(), err)
		}
		if n := r.Count(ops.ActionRedriven); n == 0 || n == 30 || n+len(x.bodies(x.dlq)) != 30 {
			t.Errorf("%d redriven, %d left", n, len(x.bodies(x.dlq)))
		}
	})
}
