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

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// A message goes back to the queue that it came from, and to no other one that an attribute names.
func TestRedriveDestinations(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		other := x.create("other", x.redrive("jobs-dlq", 1))
		stranger := x.create("stranger", nil)
		for body, source := range map[string]string{"a1": "jobs", "a2": "other", "a3": "stranger", "a4": ""} {
			attrs := map[string]string{sqsonce.AttrEventID: body, sqsonce.AttrEventSource: "orders"}
			if source != "" {
				attrs[sqsonce.AttrDeadLetterSource] = arnPrefix + source
			}
			x.sendWith(x.dlq, body, attrs)
		}
		x.send(other, "a5")
		x.receive(other)
		time.Sleep(visibility + time.Second)
		x.receive(other)
		r := x.redriveAll(x.redriver())
		x.wantBodies(x.url, "a1")
		x.wantBodies(other, "a2 a5")
		x.wantBodies(stranger, "")
		x.wantBodies(x.dlq, "a3 a4")
		for _, res := range r.Results {
			if res.Action == ops.ActionLeft && !errors.Is(res.Err, ops.ErrNoDestination) {
				t.Errorf("%v", res.Err)
			}
		}
		x.redriveAll(x.redriver(func(o *ops.Options) { o.Source = arnPrefix + "other" }))
		x.wantBodies(other, "a2 a4 a5")
		x.wantBodies(x.dlq, "a3")
	})
	bubble(t, setup{}, func(x *fixture) { // a queue that only hosts send to
		x.set(x.url, map[string]string{"RedrivePolicy": ""})
		x.send(x.dlq, "a1")
		x.redriveAll(x.redriver(func(o *ops.Options) { o.NotDeadLetter, o.Source = true, arnPrefix+"jobs" }))
		x.wantBodies(x.url, "a1")
	})
}

// An event whose record was reopened a moment ago runs at once in a worker that remembers it as done: the copy has the redriven
// attribute. Where that has no room the message is left until the worker has forgotten.
func TestRedriveAfterReopen(t *testing.T) {
	t.Parallel()
	eachKind(t, "", setup{}, func(x *fixture) {
		var runs atomic.Int64
		defer x.worker(x.url, x.guarded(func(context.Context, *sqsonce.Message) error { runs.Add(1); return nil })).stop()
		full := map[string]string{sqsonce.AttrEventID: "b1", sqsonce.AttrEventSource: "orders"}
		for i := range 8 {
			full[fmt.Sprint("x", i)] = "1"
		}
		redrive := func(want ops.Action, why error, ran int64) {
			x.Helper()
			r := x.redriveAll(x.redriver(), noCanary)
			time.Sleep(20 * time.Second)
			if res := r.Results[0]; res.Action != want || !errors.Is(res.Err, why) || runs.Load() != ran {
				x.Errorf("%s, %v, and %d runs, want %s, %v and %d", res.Action, res.Err, runs.Load(), want, why, ran)
			}
		}
		reopen := func() {
			store := x.store(x.admin)
			rec := must.Get(store.Inspect(context.Background(), "billing#orders|b1"))(x)
			must.Do(x, store.Reopen(context.Background(), rec, "again"))
		}
		x.send(x.url, "b1")
		time.Sleep(10 * time.Second)
		reopen()
		x.send(x.dlq, "b1")
		redrive(ops.ActionRedriven, nil, 2)
		reopen()
		x.sendWith(x.dlq, "b1", full)
		redrive(ops.ActionLeft, ops.ErrRemembered, 2)
		time.Sleep(forget)
		redrive(ops.ActionRedriven, nil, 3)
	})
}

// Rate bounds how many messages are sent a second, on average.
func TestRedriveRate(t *testing.T) {
	t.Parallel()
	for rate, want := range map[int]time.Duration{0: 1800 * time.Millisecond, 5: 18 * time.Second, -1: 0} {
		eachKind(t, fmt.Sprint(rate), setup{}, func(x *fixture) {
			x.fill(100)
			d, w := x.openWired()
			start := time.Now()
			r := x.redriveAll(d, func(o *ops.RedriveOptions) { o.Rate = rate })
			took := time.Since(start)
			if r.Count(ops.ActionRedriven) != 100 || took < want || took > want+want/2+3*time.Second {
				x.Errorf("x.fifo %t, rate %d: %d redriven in %s, want %s", x.fifo, rate, r.Count(ops.ActionRedriven), took, want)
			}
			if !x.fifo && w.sends > 12 {
				x.Errorf("%d requests for 100 messages", w.sends)
			}
		})
	}
}

// When the context ends no more is sent, what is under way is awaited, and all the rest is given back.
func TestRedriveIsCancelled(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rule fault.Rule
		want ops.Action // of the ten that are under way
	}{
		"a slow send":   {fault.Rule{Op: "SendMessageBatch", Nth: 2, Times: 1, Do: fault.Delay, Delay: 3 * time.Second}, ops.ActionRedriven},
		"no answer":     {fault.Rule{Op: "SendMessageBatch", Nth: 2, Times: 99, Do: fault.LoseReply}, ops.ActionUnknownOutcome},
		"does not go":   {fault.Rule{Op: "SendMessageBatch", Nth: 2, Times: 99, Do: fault.Error, Code: "RequestThrottled"}, ops.ActionSendFailed},
		"a slow delete": {fault.Rule{Op: "DeleteMessageBatch", Nth: 2, Times: 1, Do: fault.Delay, Delay: 3 * time.Second}, ops.ActionRedriven},
	} {
		bubble(t, setup{}, func(x *fixture) {
			x.fill(50)
			d := x.redriver()
			x.sqs.Set(fault.Plan{Rules: []fault.Rule{tt.rule}})
			ctx, cancel := context.WithCancelCause(context.Background())
			time.AfterFunc(1500*time.Millisecond, func() { cancel(errCard) })
			start := time.Now()
			r, err := d.Redrive(ctx, noCanary, func(o *ops.RedriveOptions) { o.Rate = 10 })
			if took := time.Since(start); !errors.Is(err, errCard) || took > 30*time.Second {
				t.Errorf("%s: error %v after %s", name, err, took)
			}
			x.checkReport(r)
			if n := r.Count(tt.want); len(r.Results) != 20 || tt.want == ops.ActionRedriven && n != 20 || tt.want != ops.ActionRedriven && n != 10 {
				t.Errorf("%s: %d of %d are %s", name, n, len(r.Results), tt.want)
			}
			if n := x.hidden(); n != 0 {
				t.Errorf("%s: %d messages are hidden", name, n)
			}
		})
	}
}

// A message that SQS refuses is left, and the others go on.
func TestRedriveRefusedMessage(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		x.fill(30)
		d := x.redriver()
		x.sqs.Set(fault.Plan{Rules: []fault.Rule{{Op: "SendMessageBatch", Nth: 1, Do: fault.FailEntries, Entries: []int{4}, Code: "InvalidMessageContents"}}})
		r := x.redriveAll(d)
		if r.Count(ops.ActionSendFailed) != 1 || r.Count(ops.ActionRedriven) != 29 {
			t.Errorf("%d failed, %d redriven", r.Count(ops.ActionSendFailed), r.Count(ops.ActionRedriven))
		}
	})
}

// SkipAhead reaches what lies behind messages that are left, also where a receive ends within a group.
func TestSkipAheadReaches(t *testing.T) {
	t.Parallel()
	for name, groups := range map[string][]struct{ left, behind int }{
		"four groups":                 {{5, 4}, {5, 4}, {5, 4}, {5, 4}},
		"one long group":              {{3, 27}},
		"behind a group that is left": {{9, 0}, {1, 8}, {1, 8}},
		"nine of each":                {{9, 20}, {9, 20}, {9, 1}},
	} {
		bubble(t, setup{fifo: true}, func(x *fixture) {
			var want []string
			for g, n := range groups {
				for i := range n.left + n.behind {
					body := fmt.Sprintf("g%d-%02d", g, i)
					if i < n.left {
						body += "-left"
					} else {
						want = append(want, body)
					}
					x.send(x.dlq, body)
				}
			}
			d := x.redriver(func(o *ops.Options) {
				o.Store = inspector(func(_ context.Context, key string) (dedup.Record, error) {
					if strings.HasSuffix(key, "-left") {
						return dedup.Record{Lease: dedup.Lease{Owner: "w"}, Completed: true}, nil
					}
					return dedup.Record{}, dedup.ErrNotFound
				})
			})
			x.redriveAll(d, func(o *ops.RedriveOptions) { o.SkipAhead = true })
			got := x.bodies(x.url)
			slices.Sort(got)
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		})
	}
}
