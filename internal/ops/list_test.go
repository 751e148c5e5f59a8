package ops_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// fill sends n events to the dead-letter queue, each in a group of its own.
func (x *fixture) fill(n int) {
	for i := range n {
		x.send(x.dlq, fmt.Sprintf("g%d-1", i))
	}
}

// fillGroups sends n events of so many groups to the dead-letter queue.
func (x *fixture) fillGroups(n, groups int) {
	for i := range n {
		x.send(x.dlq, fmt.Sprintf("g%d-%02d", i%groups, i))
	}
}

// ids are those of the messages in the dead-letter queue.
func (x *fixture) ids() map[string]bool {
	all := map[string]bool{}
	for _, m := range x.sqs.Messages(x.dlq) {
		all[m.ID] = true
	}
	return all
}

// hooked calls before each receive, with its number from 1.
func hooked(c ops.Client, before func(n int)) ops.Client {
	var n atomic.Int64
	return spy{c, func(in any, call call) (any, error) {
		if _, ok := in.(*sqs.ReceiveMessageInput); ok {
			before(int(n.Add(1)))
		}
		return call()
	}}
}

// openHooked opens the queue with a function that is called before each receive.
func (x *fixture) openHooked(p *process, before func(n int), optFns ...func(*ops.Options)) *ops.DLQ {
	return must.Get(ops.Open(context.Background(), hooked(p.sqs, before), x.dlq, optFns...))(x)
}

// Whatever ends a listing, what it has read is visible again when it returns.
func TestListGivesBack(t *testing.T) {
	t.Parallel()
	for _, fifo := range []bool{false, true} {
		for name, end := range map[string]func(x *fixture, cancel func(error)){
			"cancelled": func(_ *fixture, cancel func(error)) { cancel(errCard) },
			"an error": func(x *fixture, _ func(error)) {
				x.sqs.Set(fault.Plan{Rules: []fault.Rule{{Op: "ReceiveMessage", Prob: 1, Do: fault.Error, Code: "QueueDoesNotExist"}}})
			},
			"a panic": func(*fixture, func(error)) { panic(errCard) },
		} {
			run(t, fmt.Sprintf("%s/fifo=%t", name, fifo), setup{fifo: fifo}, func(x *fixture) {
				x.fill(200)
				ctx, cancel := context.WithCancelCause(context.Background())
				d := x.openHooked(x.looker(), func(n int) {
					if n == 10 {
						end(x, cancel)
					}
				})
				defer x.watch()()
				l, err := d.List(ctx, 0)
				if err == nil || !errors.Is(err, errCard) && !strings.Contains(err.Error(), "sqs:ReceiveMessage") {
					x.Errorf("error %v", err)
				}
				if n := x.hidden(); n != 0 {
					x.Errorf("%d messages are hidden", n)
				}
				if len(l.Messages) < 80 || l.Complete {
					x.Errorf("%d messages, complete %t; want what was read", len(l.Messages), l.Complete)
				}
			})
		}
	}
}

// Groups of ten messages or fewer are read whole, also where a receive ends within a group, by a listing, a dry run and an export.
func TestReceivesThatCutGroups(t *testing.T) {
	t.Parallel()
	bubble(t, setup{fifo: true}, func(x *fixture) {
		for i := range 10 {
			for group := range 15 {
				if i < 1+group%10 {
					x.send(x.dlq, fmt.Sprintf("%c-%d", 'a'+group, i))
				}
			}
		}
		const all = 55 + 15
		for range 3 { // the groups are in another order each time
			l := must.Get(x.open().List(context.Background(), 0))(t)
			if len(l.Messages) != all || !l.Complete || l.Behind != 0 || x.hidden() != 0 {
				t.Errorf("%d of %d listed, complete %t, %d behind, %d hidden", len(l.Messages), all, l.Complete, l.Behind, x.hidden())
			}
			last := map[string]string{}
			for _, m := range l.Messages {
				if m.Body < last[m.Group] {
					t.Errorf("%s after %s", m.Body, last[m.Group])
				}
				last[m.Group] = m.Body
			}
			planned, err := x.open().Redrive(context.Background(), func(o *ops.RedriveOptions) { o.Unknown, o.DryRun = true, true })
			if err != nil || len(planned.Results) != all {
				t.Errorf("a dry run of %d of %d: %v", len(planned.Results), all, err)
			}
			r, err := x.open().Export(context.Background(), filepath.Join(t.TempDir(), "archive"))
			if err != nil || r.Count(ops.ActionExported) != all || x.hidden() != 0 {
				t.Errorf("%d of %d exported, %d hidden: %v", r.Count(ops.ActionExported), all, x.hidden(), err)
			}
		}
	})
}

// A receive that is under way at the end of the context is awaited: SQS would go on with it, and hide what it finds.
func TestListAwaitsItsReceive(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		d := x.open()
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(500*time.Millisecond, cancel)
		time.AfterFunc(700*time.Millisecond, func() { x.fill(1) })
		l, err := d.List(ctx, 0)
		if !errors.Is(err, context.Canceled) || len(l.Messages) != 1 || x.hidden() != 0 {
			t.Errorf("%d messages, error %v, %d hidden; want the one that the receive found, given back", len(l.Messages), err, x.hidden())
		}
	})
}

// A process that dies while it lists leaves messages hidden for Hold, and the next listing says so.
func TestKilledListing(t *testing.T) {
	t.Parallel()
	eachKind(t, "", setup{}, func(x *fixture) {
		x.fill(100)
		const held = 40 * time.Second
		p := x.looker()
		d := x.openHooked(p, func(n int) {
			if n == 4 {
				p.dead.Store(true)
			}
		}, hold(held))
		start := time.Now()
		if _, err := d.List(context.Background(), 0); err == nil || !strings.Contains(err.Error(), "stay hidden until") {
			x.Errorf("error %v, want one that says what is hidden", err)
		}
		read := x.hidden()
		if read == 0 {
			x.Fatal("nothing is hidden")
		}
		l, err := x.list(x.open())
		if err != nil || l.Hidden != read || l.Complete || l.Total != 100 {
			x.Errorf("x.fifo %t: %d hidden, total %d, complete %t, %v; want %d of 100", x.fifo, l.Hidden, l.Total, l.Complete, err, read)
		}
		time.Sleep(time.Until(start.Add(held + time.Second)))
		if l, err = x.list(x.open()); err != nil || len(l.Messages) != 100 || !l.Complete {
			x.Errorf("x.fifo %t: %d messages, complete %t, %v", x.fifo, len(l.Messages), l.Complete, err)
		}
	})
}

// On FIFO what SQS does not show of a group is counted, and each group is in its order.
func TestListBehind(t *testing.T) {
	t.Parallel()
	bubble(t, setup{fifo: true}, func(x *fixture) {
		for group, n := range map[string]int{"a": 30, "b": 3, "c": 12} {
			for i := range n {
				x.send(x.dlq, fmt.Sprintf("%s%02d", group, i))
			}
		}
		l := must.Get(x.list(x.open()))(t)
		last := map[string]string{}
		for _, m := range l.Messages {
			if m.Body <= last[m.Group] {
				t.Errorf("%s is behind %s", m.Body, last[m.Group])
			}
			last[m.Group] = m.Body
		}
		if l.Total != 45 || l.Behind != 45-len(l.Messages) || l.Behind < 22 || l.Complete {
			t.Errorf("%d messages of %d, %d behind, complete %t", len(l.Messages), l.Total, l.Behind, l.Complete)
		}
	})
}

// Limit and Hold end a listing that has not read all, and it says so.
func TestListBounds(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		x.fill(60)
		l, err := x.list(x.open(), 25)
		if err != nil || len(l.Messages) != 25 || l.Complete || l.Total != 60 {
			t.Errorf("%d messages of %d, complete %t, %v; want 25 of 60", len(l.Messages), l.Total, l.Complete, err)
		}
		if l, err = x.list(x.open(), 60); err != nil || len(l.Messages) != 60 || l.Complete {
			t.Errorf("%d messages, complete %t, %v; want 60, and not to know that these are all", len(l.Messages), l.Complete, err)
		}
		x.fill(140)
		x.sqs.Set(fault.Plan{Rules: []fault.Rule{{Op: "ReceiveMessage", Prob: 1, Do: fault.Delay, Delay: 4 * time.Second}}})
		start := time.Now()
		l, err = x.list(x.open(hold(9500*time.Millisecond+time.Second)), -1)
		if took := time.Since(start); err != nil || len(l.Messages) != 160 || l.Complete || took > 9*time.Second {
			t.Errorf("%d messages in %s, complete %t, %v; want twice eight receives", len(l.Messages), took, l.Complete, err)
		}
	})
}

// Faults of the network and of SQS: a listing is either complete or says that it is not, and hides nothing.
func TestListFaults(t *testing.T) {
	t.Parallel()
	const n = 40
	for _, s := range []setup{{}, {fifo: true}, {strict: true}, {fifo: true, strict: true}} {
		fifo := s.fifo
		for name, tt := range map[string]struct {
			rule   fault.Rule
			hidden int // standard queues
			read   int
		}{
			"lost reply of a receive":    {rule: fault.Rule{Op: "ReceiveMessage", Nth: 2, Do: fault.LoseReply}, hidden: 10, read: 30},
			"throttled receives":         {rule: fault.Rule{Op: "ReceiveMessage", Nth: 2, Times: 2, Do: fault.Error, Code: "RequestThrottled"}, read: n},
			"a message twice":            {rule: fault.Rule{Op: "ReceiveMessage", Nth: 1, Do: fault.Duplicate, Entries: []int{0}}, read: n},
			"lost reply of a change":     {rule: fault.Rule{Op: "ChangeMessageVisibilityBatch", Nth: 1, Do: fault.LoseReply}, read: n},
			"throttled changes":          {rule: fault.Rule{Op: "ChangeMessageVisibilityBatch", Nth: 1, Times: 2, Do: fault.Error, Code: "RequestThrottled"}, read: n},
			"entries that fail":          {rule: fault.Rule{Op: "ChangeMessageVisibilityBatch", Nth: 1, Times: 2, Do: fault.FailEntries, Entries: []int{1, 2}}, read: n},
			"entries that are throttled": {rule: fault.Rule{Op: "ChangeMessageVisibilityBatch", Nth: 1, Times: 2, Do: fault.FailEntries, Code: "RequestThrottled"}, read: n},
			"entries without an answer":  {rule: fault.Rule{Op: "ChangeMessageVisibilityBatch", Nth: 1, Times: 2, Do: fault.DropEntries, Entries: []int{0}}, read: n},
			"visible early":              {rule: fault.Rule{Op: "ReceiveMessage", Nth: 4, Do: fault.ExpireEarly}, read: n},
		} {
			t.Run(fmt.Sprintf("%s/fifo=%t strict=%t", name, fifo, s.strict), func(t *testing.T) {
				t.Parallel()
				if fifo && tt.rule.Do == fault.Duplicate {
					t.Skip("a FIFO queue delivers no duplicates")
				}
				bubble(t, s, func(x *fixture) {
					x.fill(n)
					d := x.open()
					x.sqs.Set(fault.Plan{Rules: []fault.Rule{tt.rule}})
					l := must.Get(d.List(context.Background(), 0))(t)
					read, hidden := tt.read, tt.hidden
					if fifo { // the attempt's ID gets the same messages again
						read, hidden = n, 0
					}
					ids := map[string]bool{}
					for _, m := range l.Messages {
						ids[m.ID] = true
					}
					if len(l.Messages) != read || len(ids) != read || l.Complete != (read == n) || x.hidden() != hidden {
						t.Errorf("%d messages with %d IDs, complete %t, %d hidden; want %d, %d hidden", len(l.Messages), len(ids), l.Complete, x.hidden(), read, hidden)
					}
				})
			})
		}
	}
}

// Messages that cannot be given back are said, with the time when they are visible by themselves.
func TestNotGivenBack(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]fault.Rule{
		"denied":  {Op: "ChangeMessageVisibilityBatch", Prob: 1, Do: fault.Error, Code: "AccessDeniedException"},
		"entries": {Op: "ChangeMessageVisibilityBatch", Prob: 1, Do: fault.FailEntries},
	} {
		bubble(t, setup{}, func(x *fixture) {
			x.fill(25)
			d := x.open()
			x.sqs.Set(fault.Plan{Rules: []fault.Rule{rule}})
			until := time.Now().Add(time.Minute).UTC().Format(time.RFC3339)
			l, err := d.List(context.Background(), 0)
			if err == nil || len(l.Messages) != 25 || !strings.Contains(err.Error(), "25 messages stay hidden until "+until+": sqs:ChangeMessageVisibility of ") {
				t.Errorf("%s: %d messages, error %v", name, len(l.Messages), err)
			}
		})
	}
}

// inspector is a store of a function.
type inspector func(ctx context.Context, key string) (dedup.Record, error)

func (f inspector) Inspect(ctx context.Context, key string) (dedup.Record, error) { return f(ctx, key) }

// A store that is away, slow or broken delays a listing for a bounded time, and its messages are listed all the same.
func TestListWithABrokenStore(t *testing.T) {
	t.Parallel()
	const n = 160
	for name, tt := range map[string]struct {
		inspect inspector
		most    time.Duration // after the receives
		calls   int64
		state   dedup.RecordState
	}{
		"away": {inspect: func(ctx context.Context, _ string) (dedup.Record, error) {
			<-ctx.Done()
			return dedup.Record{}, ctx.Err()
		}, most: 11 * time.Second, calls: 16 + 15, state: ops.StateUnknown},
		"slow": {inspect: func(context.Context, string) (dedup.Record, error) {
			time.Sleep(time.Second)
			return dedup.Record{}, dedup.ErrNotFound
		}, most: 11 * time.Second, calls: n, state: noRecord},
		"unreadable": {inspect: func(context.Context, string) (dedup.Record, error) { return dedup.Record{}, errCard }, calls: n, state: ops.StateUnknown, most: time.Second},
		"panics":     {inspect: func(context.Context, string) (dedup.Record, error) { panic("boom") }, calls: n, state: ops.StateUnknown, most: time.Second},
	} {
		run(t, name, setup{}, func(x *fixture) {
			x.fill(n)
			var calls, running, most atomic.Int64
			d := x.open(func(o *ops.Options) {
				o.Store = inspector(func(ctx context.Context, key string) (dedup.Record, error) {
					calls.Add(1)
					if now := running.Add(1); now > most.Load() {
						most.Store(now)
					}
					defer running.Add(-1)
					if x.hidden() != 0 {
						x.Error("messages are hidden while the store is asked")
					}
					return tt.inspect(ctx, key)
				})
			})
			start := time.Now()
			l, err := x.list(d)
			if took := time.Since(start) - 2*time.Second; err != nil || took > tt.most {
				x.Errorf("%s after the receives, error %v; want %s at most", took, err, tt.most)
			}
			if calls.Load() > tt.calls || most.Load() > 16 {
				x.Errorf("%d reads, %d at once; want %d, 16 at once", calls.Load(), most.Load(), tt.calls)
			}
			if len(l.Messages) != n || !l.Complete {
				x.Errorf("%d messages, complete %t", len(l.Messages), l.Complete)
			}
			for _, m := range l.Messages {
				if stateOf(m) != tt.state || m.Problem == nil {
					x.Fatalf("%s: %s, problem %v", m.Body, m.State, m.Problem)
				}
			}
		})
	}
}

// A listing that was stopped for longer than Hold, such as by the sleep of its machine, does not use its handles: SQS may take them for
// that of the consumer which has the messages now.
func TestStoppedListing(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		x.fill(20)
		d := x.openHooked(x.looker(), func(n int) {
			if n == 2 {
				time.Sleep(time.Minute + time.Second)
				x.receive(x.dlq)
				x.receive(x.dlq)
			}
		})
		if _, err := d.List(context.Background(), 0); err == nil || strings.Contains(err.Error(), "stay hidden") {
			t.Errorf("error %v, want that of the receive", err)
		}
		if n := x.hidden(); n != 20 {
			t.Errorf("%d messages of another consumer are hidden, want all 20", n)
		}
	})
}

// One receive that finds nothing, as of a small queue, does not end a listing.
func TestEmptyReceive(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		x.fill(30)
		var n atomic.Int64
		d := must.Get(ops.Open(context.Background(), spy{x.looker().sqs, func(in any, call call) (any, error) {
			if _, ok := in.(*sqs.ReceiveMessageInput); ok && n.Add(1)%2 == 1 {
				return &sqs.ReceiveMessageOutput{}, nil
			}
			return call()
		}}, x.dlq))(t)
		if l, err := x.list(d); err != nil || len(l.Messages) != 30 || !l.Complete {
			t.Errorf("%d messages, complete %t, %v", len(l.Messages), l.Complete, err)
		}
	})
}
