package ops_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// wire is a client that sees the calls of a redrive: what was sent and acknowledged before what is deleted.
type wire struct {
	ops.Client
	*calls
}

// calls are those of one process, or of several one after the other.
type calls struct {
	x       *fixture
	mu      sync.Mutex
	bodies  map[string]string // by receipt handle
	sent    map[string]int    // by body: copies that SQS has acknowledged
	order   []string          // of these
	sends   int               // requests
	deletes int               // entries
}

func (x *fixture) wired(c ops.Client) *wire {
	w := &wire{calls: &calls{x: x, bodies: map[string]string{}, sent: map[string]int{}}}
	return w.over(c)
}

// over returns the wire of another process.
func (w *wire) over(c ops.Client) *wire { return &wire{spy{c, w.around}, w.calls} }

func (c *calls) around(in any, call call) (any, error) {
	if in, ok := in.(*sqs.DeleteMessageBatchInput); ok {
		c.deleting(in)
	}
	out, err := call()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range received(out, err) {
		c.bodies[*m.ReceiptHandle] = *m.Body
	}
	sent, ok := in.(*sqs.SendMessageBatchInput)
	if !ok {
		return out, err
	}
	if c.sends++; err == nil {
		for _, e := range out.(*sqs.SendMessageBatchOutput).Successful {
			for _, entry := range sent.Entries {
				if *entry.Id == *e.Id {
					c.sent[*entry.MessageBody]++
					c.order = append(c.order, *entry.MessageBody)
				}
			}
		}
	}
	return out, err
}

func (c *calls) deleting(in *sqs.DeleteMessageBatchInput) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range in.Entries {
		if body := c.bodies[*e.ReceiptHandle]; c.sent[body] == 0 {
			c.x.Errorf("%s is deleted before its copy was acknowledged", body)
		}
		c.deletes++
	}
}

// openWired opens the queue with a wire.
func (x *fixture) openWired(optFns ...func(*ops.Options)) (*ops.DLQ, *wire) {
	x.Helper()
	w := x.wired(x.newProcess().sqs)
	d := must.Get(ops.Open(context.Background(), w, x.dlq, append([]func(*ops.Options){func(o *ops.Options) {
		o.Key, o.Store = x.once(x.admin).Key, x.store(x.admin)
	}}, optFns...)...))(x)
	return d, w
}

// effects runs the events of the source, and counts how often each had its effect.
func (x *fixture) effects() (map[string]int, func()) {
	var mu sync.Mutex
	n := map[string]int{}
	h := x.worker(x.url, x.guarded(func(_ context.Context, m *sqsonce.Message) error {
		mu.Lock()
		defer mu.Unlock()
		n[m.Body]++
		return nil
	}))
	return n, h.stop
}

// The answer of a send stays unknown: the message stays, and on FIFO its group.
func TestRedriveUnknownOutcome(t *testing.T) {
	t.Parallel()
	for _, skip := range []bool{false, true} {
		bubble(t, setup{fifo: true}, func(x *fixture) {
			x.send(x.dlq, "a-1", "a-2")
			x.sqs.Set(fault.Plan{Rules: []fault.Rule{{Op: "SendMessageBatch", Prob: 1, Do: fault.LoseReply}}})
			start := time.Now()
			r := x.redriveAll(x.redriver(), func(o *ops.RedriveOptions) { o.SkipAhead = skip })
			if took := time.Since(start); took < 4*time.Minute || took > 6*time.Minute {
				t.Errorf("ended after %s", took)
			}
			if len(r.Results) != 2 || r.Results[0].Action != ops.ActionUnknownOutcome || !errors.Is(r.Results[1].Err, ops.ErrHeldBehind) ||
				!strings.Contains(r.Results[1].Err.Error(), r.Results[0].ID) {
				t.Errorf("skip %t: %+v", skip, r.Results)
			}
			x.wantBodies(x.url, "a-1")
			x.wantBodies(x.dlq, "a-1 a-2")
		})
	}
}

// On FIFO the messages of a group go back in their order. One that is left holds those behind it.
func TestRedriveOrder(t *testing.T) {
	t.Parallel()
	var ids []string
	for i := range 30 {
		ids = append(ids, fmt.Sprintf("%c-%02d", 'a'+i%3, i))
	}
	records := func(completed, crashed []string) func(o *ops.Options) {
		return func(o *ops.Options) {
			o.Store = inspector(func(_ context.Context, key string) (dedup.Record, error) {
				_, id, _ := strings.Cut(key, "|")
				switch of := (dedup.Record{Lease: dedup.Lease{Owner: "w1"}}); {
				case slices.Contains(completed, id):
					of.Completed = true
					return of, nil
				case slices.Contains(crashed, id):
					of.Until = time.Now().Add(-time.Minute)
					return of, nil
				}
				return dedup.Record{}, dedup.ErrNotFound
			})
		}
	}
	skipAhead := func(o *ops.RedriveOptions) { o.SkipAhead = true }
	nine := []string{"a-00", "a-03", "a-06", "a-09", "a-12", "a-15", "a-18", "a-21", "a-24"}
	for name, tt := range map[string]struct {
		done, crashed []string
		set           func(*ops.RedriveOptions)
		left          string // what stays
	}{
		"all":                       {},
		"one is left":               {crashed: []string{"b-13"}, left: "b-13 b-16 b-19 b-22 b-25 b-28"},
		"one is left, skip ahead":   {crashed: []string{"b-13"}, left: "b-13", set: skipAhead},
		"nine are left, skip ahead": {crashed: nine, left: strings.Join(nine, " "), set: skipAhead},
		"one is done":               {done: []string{"b-13"}, left: "b-13"},
		"nine are done":             {done: nine, left: strings.Join(nine, " ")},
		"one is done, one is left":  {done: []string{"b-01", "b-16"}, crashed: []string{"b-13"}, left: "b-01 b-13 b-16 b-19 b-22 b-25 b-28"},
	} {
		run(t, name, setup{fifo: true}, func(x *fixture) {
			x.send(x.dlq, ids...)
			d, w := x.openWired(records(tt.done, tt.crashed))
			r := x.redriveAll(d, func(o *ops.RedriveOptions) {
				if tt.set != nil {
					tt.set(o)
				}
			})
			left := x.bodies(x.dlq)
			slices.Sort(left)
			if got := strings.Join(left, " "); got != tt.left {
				x.Errorf("left: %s, want %s", got, tt.left)
			}
			last := map[byte]string{}
			for _, body := range w.order {
				if body <= last[body[0]] {
					x.Errorf("%s was sent after %s", body, last[body[0]])
				}
				last[body[0]] = body
			}
			for _, res := range r.Results {
				if res.Action == ops.ActionLeft && errors.Is(res.Err, ops.ErrHeldBehind) == errors.Is(res.Err, ops.ErrState) {
					x.Errorf("%s: %v", res.ID, res.Err)
				}
			}
		})
	}
}

// Holds are extended at half of them for as long as a run needs its messages.
func TestRedriveExtendsItsHold(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		x.fill(10)
		p := x.newProcess()
		d := x.openIn(p, hold(10*time.Second))
		r := x.redriveAll(d, func(o *ops.RedriveOptions) {
			o.Filter = func(m *ops.Message) bool {
				if m.Body == "g7-1" {
					for range 40 {
						time.Sleep(time.Second)
						if n := x.hidden(); n != 10 {
							t.Errorf("%d messages are hidden", n)
						}
					}
				}
				return m.Body != "g3-1"
			}
		})
		if n := p.requests("ChangeMessageVisibilityBatch"); n < 7 || n > 10 { // one of them gives back
			t.Errorf("%d changes of the visibility in 40 s", n)
		}
		if r.Count(ops.ActionRedriven) != 9 || r.Count(ops.ActionLeft) != 1 {
			t.Errorf("%d redriven", r.Count(ops.ActionRedriven))
		}
	})
}

// A handle that may no longer be the run's is not used, and nothing is sent without one.
func TestRedriveWithoutItsHold(t *testing.T) {
	t.Parallel()
	denied := fault.Rule{Op: "ChangeMessageVisibilityBatch", Prob: 1, Do: fault.Error, Code: "AccessDeniedException"}
	for want, rules := range map[ops.Action][]fault.Rule{
		ops.ActionLeft:      {denied},
		ops.ActionUndeleted: {denied, {Op: "SendMessageBatch", Nth: 1, Do: fault.Delay, Delay: 4 * time.Second}},
	} {
		bubble(t, setup{}, func(x *fixture) {
			x.fill(1)
			d, w := x.openWired(hold(10 * time.Second))
			x.sqs.Set(fault.Plan{Rules: rules})
			r, err := d.Redrive(context.Background(), noCanary, func(o *ops.RedriveOptions) {
				o.Filter = func(*ops.Message) bool {
					time.Sleep(7 * time.Second)
					if want == ops.ActionLeft {
						time.Sleep(4 * time.Second)
					}
					return true
				}
			})
			if err != nil || len(r.Results) != 1 {
				t.Fatalf("%d results, %v", len(r.Results), err)
			}
			res := r.Results[0]
			if res.Action != want || !errors.Is(res.Err, ops.ErrHoldOver) || !strings.Contains(res.Err.Error(), "sqs:ChangeMessageVisibility") {
				t.Errorf("%s, %v; want %s", res.Action, res.Err, want)
			}
			if want == ops.ActionLeft && (w.deletes != 0 || len(w.order) != 0) {
				t.Errorf("%d sends, %d deletes", len(w.order), w.deletes)
			}
		})
	}
}

// late is a queue whose approximate counts don't have its messages yet.
type late struct{ ops.Client }

func (c late) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, o ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	out, err := c.Client.GetQueueAttributes(ctx, in, o...)
	if err == nil {
		for name := range out.Attributes {
			if strings.HasPrefix(name, "ApproximateNumber") {
				out.Attributes[name] = "0"
			}
		}
	}
	return out, err
}

// A count of 0 doesn't say that a queue is empty: a redrive receives before it ends without a result.
func TestRedriveOfALateCount(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		x.fill(3)
		p := x.newProcess()
		d := must.Get(ops.Open(context.Background(), late{p.sqs}, x.dlq, func(o *ops.Options) { o.Key, o.Store = x.once(p).Key, x.store(p) }))(x)
		r := must.Get(d.Redrive(context.Background()))(x)
		if r.Count(ops.ActionLeft) != 3 || !errors.Is(r.Results[0].Err, ops.ErrArrivedLater) || x.hidden() != 0 {
			x.Errorf("%d left, %d hidden", r.Count(ops.ActionLeft), x.hidden())
		}
	})
}
