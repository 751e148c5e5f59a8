package ops_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// The first events are sent alone, and the others when these are completed.
func TestCanary(t *testing.T) {
	t.Parallel()
	for canaries, together := range map[int]int{0: 24, 3: 22, -1: 25} {
		eachKind(t, fmt.Sprint(canaries), setup{}, func(x *fixture) {
			x.fill(25)
			var runs atomic.Int64
			h := x.worker(x.url, x.guarded(func(context.Context, *sqsonce.Message) error {
				if int(runs.Add(1)) <= 25-together {
					time.Sleep(10 * time.Second)
					if n := len(x.bodies(x.dlq)); n != 25-int(runs.Load()) || x.hidden() > 10 {
						x.Errorf("%d messages in the dead-letter queue beside canary %d", n, runs.Load())
					}
				}
				return nil
			}))
			start := time.Now()
			r := x.redriveAll(x.redriver(hold(10*time.Second)), func(o *ops.RedriveOptions) { o.Canary = canaries })
			if took := time.Since(start); took < time.Duration(25-together)*10*time.Second {
				x.Errorf("ended after %s", took)
			}
			time.Sleep(time.Minute)
			h.stop()
			if r.Count(ops.ActionRedriven) != 25 || runs.Load() != 25 || (r.Results[0].After == dedup.StateCompleted) != (canaries >= 0) {
				x.Errorf("%d redriven, %d runs, %+v", r.Count(ops.ActionRedriven), runs.Load(), r.Results[0])
			}
		})
	}
}

// A canary that fails, or does not run, ends the redrive, and the rest is untouched.
func TestCanaryFails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		handler sqsonce.Handler
		opts    []func(*dedup.Options)
		dies    bool // its process
		down    bool // the store
		after   dedup.RecordState
		within  time.Duration
		text    string
	}{
		"fails":       {handler: fails(errCard), after: dedup.StateReleased, within: 10 * time.Second, text: "card declined"},
		"crashes":     {handler: hangs, dies: true, after: dedup.StateCrashed, within: 45 * time.Second, text: "|g0-1 crashed with its process: if it may have killed"},
		"is rejected": {handler: fails(sqsonce.Reject(errCard)), after: dedup.StateReleased, within: 10 * time.Second, text: "card declined"},
		"hangs":       {handler: hangs, after: ops.StateUnknown, within: 45 * time.Second, text: "unknown within 40s"},
		"not read":    {down: true, after: ops.StateUnknown, within: time.Minute, text: "not read"},
		"no consumer": {after: ops.StateUnknown, within: 45 * time.Second, text: "unknown within 40s"},
		"has its record elsewhere": {handler: fails(nil), opts: []func(*dedup.Options){func(o *dedup.Options) {
			o.Key = func(m *sqsonce.Message) (string, error) { return "f" + m.Body, nil }
		}}, after: ops.StateUnknown, within: 45 * time.Second, text: "unknown within 40s"},
	} {
		for _, before := range []bool{false, true} { // the redrive the event has failed, or never ran
			run(t, fmt.Sprintf("%s/before=%t", name, before), setup{}, func(x *fixture) {
				if before {
					for i := range 5 {
						x.send(x.url, fmt.Sprintf("g%d-1", i))
					}
					x.worker(x.url, x.guarded(fails(sqsonce.Reject(errors.New("an earlier failure"))))).stopAfter(time.Minute)
				} else {
					x.fill(5)
				}
				stop := func() {}
				if tt.handler != nil {
					h := x.worker(x.url, x.guarded(tt.handler, tt.opts...))
					if stop = h.stop; tt.dies {
						time.AfterFunc(5*time.Second, h.kill)
						stop = func() {}
					}
				}
				start := time.Now()
				if tt.down {
					time.AfterFunc(10*time.Second, func() {
						x.ddb.Set(fault.Plan{Rules: []fault.Rule{{Op: "GetItem", Prob: 1, Do: fault.Error, Code: "InternalServerError"}}})
					})
				}
				r, err := x.redriver().Redrive(context.Background(), func(o *ops.RedriveOptions) { o.Unknown, o.CanaryTimeout = true, 40*time.Second })
				took := time.Since(start)
				if !errors.Is(err, ops.ErrCanary) || !strings.Contains(err.Error(), tt.text) || strings.Contains(err.Error(), "earlier") || took > tt.within {
					x.Errorf("error %v after %s", err, took)
				}
				if r.Count(ops.ActionRedriven) != 1 || r.Results[0].After != tt.after || r.Count(ops.ActionLeft) != 4 || x.hidden() != 0 || !errors.Is(r.Results[4].Err, ops.ErrCanary) {
					x.Errorf("%+v, %d left, %d hidden", r.Results[0], r.Count(ops.ActionLeft), x.hidden())
				}
				stop()
			})
		}
	}
}

// Each class has a canary: one cause may be fixed, and the other not. The queue's delay counts for none of them, nor one that SQS does not
// tell.
func TestCanaryOfEachClass(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]func(ops.Client) ops.Client{
		"classes": func(c ops.Client) ops.Client { return c }, "delay not read": func(c ops.Client) ops.Client { return noDelay{c} },
	} {
		eachKind(t, name, setup{}, func(x *fixture) {
			x.set(x.url, map[string]string{"DelaySeconds": "600"})
			for i := range 8 {
				x.sendWith(x.dlq, fmt.Sprintf("g%d-1", i), map[string]string{sqsonce.AttrRejectReason: fmt.Sprintf("status %d", []int{404, 503}[i/4])})
			}
			h := x.worker(x.url, x.guarded(func(_ context.Context, m *sqsonce.Message) error {
				if m.Body >= "g4" {
					return sqsonce.Reject(errCard)
				}
				return nil
			}))
			p := x.newProcess()
			d := must.Get(ops.Open(context.Background(), client(p.sqs), x.dlq, func(o *ops.Options) { o.Key, o.Store = x.once(p).Key, x.store(p) }))(x)
			r, err := d.Redrive(context.Background(), withUnknown)
			h.stop()
			if !errors.Is(err, ops.ErrCanary) || r.Count(ops.ActionRedriven) != 2 || r.Count(ops.ActionLeft) != 6 {
				x.Errorf("%v: %d redriven, %d left", err, r.Count(ops.ActionRedriven), r.Count(ops.ActionLeft))
			}
		})
	}
}

// Two texts that make one class have two causes, perhaps: each has a canary, as long as they are few. Each class has one, however many
// they are.
func TestCanaryOfEachText(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		reason          string
		texts, canaries int
	}{"few": {"plan %d unknown", 4, 4}, "many": {"plan %d unknown", 30, 10}, "classes": {"status 5%02d", 30, 30}} {
		eachKind(t, name, setup{}, func(x *fixture) {
			for i := range 2 * of.texts {
				x.sendWith(x.dlq, fmt.Sprintf("g%02d-1", i), map[string]string{sqsonce.AttrRejectReason: fmt.Sprintf(of.reason, i/2)})
			}
			h := x.worker(x.url, x.guarded(fails(nil)))
			r := x.redriveAll(x.redriver(), withUnknown, func(o *ops.RedriveOptions) { o.Canary = 1 })
			h.stop()
			canaries := 0
			for _, res := range r.Results {
				if res.Canary > 0 {
					canaries++
				}
			}
			if canaries != of.canaries || r.Count(ops.ActionRedriven) != 2*of.texts {
				x.Errorf("%d canaries, want %d: %d redriven", canaries, of.canaries, r.Count(ops.ActionRedriven))
			}
		})
	}
}

// noDelay does not tell a queue's delay.
type noDelay struct{ ops.Client }

func (c noDelay) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, o ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	if slices.Contains(in.AttributeNames, sqstypes.QueueAttributeNameDelaySeconds) {
		return nil, errCard
	}
	return c.Client.GetQueueAttributes(ctx, in, o...)
}

// What waits for a canary is looked at again after it, and given back when the context ends.
func TestRestAfterCanary(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		x.fill(3)
		h := x.worker(x.url, x.guarded(func(_ context.Context, m *sqsonce.Message) error {
			if m.Body == "g0-1" {
				x.send(x.url, "g1-1") // the producer sends it once more
				time.Sleep(10 * time.Second)
			}
			return nil
		}))
		r := x.redriveAll(x.redriver(), func(o *ops.RedriveOptions) { o.Canary = 1 })
		h.stop()
		if r.Count(ops.ActionRedriven) != 2 || r.Results[1].State != dedup.StateCompleted || !errors.Is(r.Results[1].Err, ops.ErrState) {
			t.Errorf("%+v", r.Results[1])
		}
	})
	bubble(t, setup{}, func(x *fixture) {
		x.fill(3)
		ctx, cancel := context.WithTimeoutCause(context.Background(), 20*time.Second, errCard)
		defer cancel()
		start := time.Now()
		r, err := x.redriver().Redrive(ctx, withUnknown)
		if took := time.Since(start); !errors.Is(err, errCard) || errors.Is(err, ops.ErrCanary) || took > 22*time.Second || r.Count(ops.ActionLeft) != 2 || x.hidden() != 0 {
			t.Errorf("%v after %s: %d left, %d hidden", err, took, r.Count(ops.ActionLeft), x.hidden())
		}
	})
}

// Every 50th event is watched, and the third of these that fails ends the redrive. What waits in the source is looked at once a
// second, not with every receive.
func TestWatched(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		x.fill(500)
		p := x.newProcess()
		x.redriveAll(x.openIn(p))
		if n := p.requests("GetItem"); n > 500+30+10*10 {
			t.Errorf("%d reads for 500 messages", n)
		}
	})
	for _, mended := range []bool{false, true} {
		bubble(t, setup{}, func(x *fixture) {
			x.fill(500)
			var runs atomic.Int64
			h := x.worker(x.url, x.guarded(func(context.Context, *sqsonce.Message) error {
				if n := runs.Add(1); n == 1 || mended {
					return nil
				}
				return errCard
			}))
			p := x.newProcess()
			r, err := x.openIn(p).Redrive(context.Background(), withUnknown)
			h.kill()
			watched := 0
			for _, res := range r.Results[1:] {
				if res.After != "" {
					watched++
				}
			}
			if sent := r.Count(ops.ActionRedriven); mended && (err != nil || sent != 500 || watched < 7) ||
				!mended && (!errors.Is(err, ops.ErrFailsYet) || !strings.Contains(err.Error(), "card declined") || sent < 150 || sent > 300 || watched < 3) {
				t.Errorf("mended %t: %d redriven, %d watched, %v", mended, sent, watched, err)
			}
			if n := p.requests("GetItem"); n > 500+10+20*12 {
				t.Errorf("%d reads", n)
			}
		})
	}
}

// A canary that cannot be deleted ends the redrive, and the report says what became of the others.
func TestCanaryNotDeleted(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		x.fill(5)
		h := x.worker(x.url, x.guarded(func(context.Context, *sqsonce.Message) error { return nil }))
		defer h.stop()
		d, w := x.openWired()
		x.sqs.Set(fault.Plan{Rules: []fault.Rule{{Op: "DeleteMessageBatch", Prob: 1, Do: fault.Error, Code: "AccessDenied"}}})
		r, err := d.Redrive(context.Background(), withUnknown)
		x.sqs.Set(fault.Plan{})
		x.checkSums(r)
		if err == nil || !strings.Contains(err.Error(), "sqs:DeleteMessage") || len(w.order) != 1 || r.Count(ops.ActionUndeleted) != 1 || r.Count(ops.ActionLeft) != 4 {
			t.Errorf("%d sent, %+v, %v", len(w.order), r, err)
		}
	})
}

// OnResult is called once for each message, and again when its result changes: what it was told last is the report.
func TestOnResult(t *testing.T) {
	t.Parallel()
	eachKind(t, "", setup{}, func(x *fixture) {
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
					x.Error("called while it is running")
				}
				defer inside.Add(-1)
				now := state{res.Action, res.After}
				if calls++; told[res.ID] == now {
					x.Errorf("called twice with %+v", now)
				}
				if len(told) == 150 {
					x.sqs.Set(fault.Plan{Rules: []fault.Rule{{Op: "DeleteMessageBatch", Prob: 1, Do: fault.Error, Code: "AccessDenied"}}})
				}
				if told[res.ID] = now; len(told) == 1 {
					if canary = append(canary, now); len(x.bodies(x.dlq)) != 199 {
						x.Error("the canary is told late")
					}
				}
			}
		}
		r, err := x.redriver().Redrive(context.Background(), withUnknown, tell)
		if err == nil || r.Count(ops.ActionUndeleted) == 0 {
			x.Errorf("%d undeleted, %v", r.Count(ops.ActionUndeleted), err)
		}
		if len(canary) != 2 || canary[0] != (state{action: ops.ActionRedriven}) || canary[1] != (state{ops.ActionRedriven, dedup.StateCompleted}) {
			x.Errorf("the canary: %+v", canary)
		}
		if calls < len(r.Results)+1 || len(told) != len(r.Results) {
			x.Errorf("%d calls for %d of %d results", calls, len(told), len(r.Results))
		}
		watched := 0
		for _, res := range r.Results {
			if res.After != "" {
				watched++
			}
			if told[res.ID] != (state{res.Action, res.After}) || res.Destination != x.url {
				x.Errorf("told %+v of %+v", told[res.ID], res)
			}
		}
		x.sqs.Set(fault.Plan{})
		h.stop()
		if watched < 2 {
			x.Errorf("%d watched", watched)
		}
	})
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
