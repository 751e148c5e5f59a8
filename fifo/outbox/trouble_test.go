package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

const send = "SendMessageBatch"

// SQS is away for an hour: Run tries it at most every 30 s, says so once a minute, and is well again 30 s after it is back.
func TestSQSIsAwayForAnHour(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault.Rule{
		"no connection": {Op: send, Do: fault.Reset},
		"denied":        {Op: send, Do: fault.Error, Code: "AccessDenied"},
		"no answer":     {Op: send, Do: fault.LoseReply},
		"slow":          {Op: send, Do: fault.Delay, Delay: 10 * time.Minute},
		"throttled":     {Op: send, Do: fault.Error, Code: "ThrottlingException"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(x *fixture) {
				r := x.relay()
				names := groupNames(30)
				x.commit(2, names...)
				stop := x.run(r)
				ringing := time.NewTicker(time.Second) // producers go on ringing
				defer ringing.Stop()
				over := time.After(time.Hour)
				for waiting := true; waiting; {
					select {
					case <-ringing.C:
						r.Ring(names[0])
					case <-over:
						waiting = false
					}
				}
				if n := x.requests(); n > 10_000 {
					t.Errorf("%d requests in the hour, want at most 10,000", n)
				}
				if n := x.ops.of("Read"); n > 30*240 {
					t.Errorf("%d reads in the hour, want at most two a minute and group, and some", n)
				}
				if n := x.log.lines("level=ERROR"); n < 30 || n > 61 {
					t.Errorf("%d lines at ERROR in the hour, want one a minute", n)
				}
				if s := r.Stats(); s.Refused != 0 || x.ops.of("Park") != 0 {
					t.Errorf("an outage has parked events: %+v", s)
				}
				x.srv.Set(fault.Plan{})
				time.Sleep(31 * time.Second)
				for _, g := range names {
					if left := len(x.table.Events(g)); left > 0 {
						t.Errorf("31 s after the outage: %d events of %s are left", left, g)
					}
				}
				if err, took := stop(); err != nil || took > 10*time.Second {
					t.Errorf("Run: %v after %v", err, took)
				}
			}, f)
		})
	}
}

// The store is away for an hour.
func TestStoreIsAwayForAnHour(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"Groups", "Claim", "Read", "Delete"} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(x *fixture) {
				r := x.relay()
				names := groupNames(30)
				x.commit(12, names...)
				x.ops.failing(func(called string) error {
					if called == op {
						return errors.New("no answer")
					}
					return nil
				})
				stop := x.run(r)
				time.Sleep(time.Hour)
				if n := x.ops.of(op); n > 121*30*4 {
					t.Errorf("%d calls of %s in the hour, want at most those of 120 rounds", n, op)
				}
				if n := x.log.lines("level=ERROR"); n < 30 || n > 61 {
					t.Errorf("%d lines at ERROR in the hour, want one a minute", n)
				}
				// P3: nothing more is sent of a group that owes deletes.
				if n := len(x.queued(names[0])); op == "Delete" && n != 10 || op != "Delete" && n != 0 {
					t.Errorf("%d events of a group are in the queue, want a page before the delete that fails, else none", n)
				}
				if s := r.Stats(); op == "Delete" && (s.Undeleted != 300 || s.Published != 300) {
					t.Errorf("stats %+v, want a page of each group published and owed", s)
				}
				x.ops.failing(nil)
				time.Sleep(31 * time.Second)
				for _, g := range names {
					x.wantQueued(g, 12)
				}
				if s := r.Stats(); s.Undeleted != 0 || s.Deleted != 360 {
					t.Errorf("stats %+v, want nothing owed", s)
				}
				if err, _ := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A delete that is refused for good stops the relay: nothing is published again and again.
func TestDeletesAreDenied(t *testing.T) {
	t.Parallel()
	bubble(t, func(x *fixture) {
		x.commit(50, "g")
		x.ops.failing(func(op string) error {
			if op == "Delete" {
				return fmt.Errorf("no permission: %w", outbox.ErrDenied)
			}
			return nil
		})
		r := x.relay()
		if err := r.Run(x.Context()); !errors.Is(err, outbox.ErrDenied) {
			t.Fatalf("Run: %v, want ErrDenied", err)
		}
		sent := x.requests()
		if n := len(x.queued("g")); n != 10 || sent != 10 {
			t.Errorf("%d events in the queue by %d requests, want the first page", n, sent)
		}
		x.commit(5, "h")
		for range 5 { // the next invocations of a function
			if err := r.Drain(x.Context(), "h"); !errors.Is(err, outbox.ErrDenied) {
				t.Errorf("Drain: %v, want ErrDenied", err)
			}
			if _, err := r.Sweep(x.Context()); !errors.Is(err, outbox.ErrDenied) {
				t.Errorf("Sweep: %v, want ErrDenied", err)
			}
		}
		if n := x.requests(); n != sent {
			t.Errorf("%d requests more, want none", n-sent)
		}
		x.ops.failing(nil)
		if err := r.Drain(x.Context(), "g"); err != nil {
			t.Errorf("Drain with the permission: %v", err)
		}
		x.wantQueued("g", 50)
		if n := x.requests() - sent; n != 40 {
			t.Errorf("%d requests for the rest, want 40: no copies", n)
		}
		if err := r.Drain(x.Context(), "h"); err != nil {
			t.Errorf("Drain with the permission: %v", err)
		}
		x.wantQueued("h", 5)
	})
}

// Refused events: the ways of FIFO's ErrRefused.
func TestARefusedEventHaltsItsGroupOnly(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]func(x *fixture){
		"by SQS": func(x *fixture) {
			x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: send, Nth: 2, Do: fault.FailEntries, Code: "InvalidMessageContents"}}})
		},
		"by a field": func(x *fixture) {
			x.table.Change("g", 2, func(e *outbox.Entry) bool { e.Body = "\x00"; return false })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(x *fixture) {
				r := x.relay()
				x.commit(4, "g")
				refuse(x)
				err := r.Drain(x.Context(), "g")
				halted, ok := errors.AsType[*outbox.HaltedError](err)
				if !ok || halted.Group != "g" || halted.Seq != 2 || halted.EventID != "g/v2" || halted.Reason == "" {
					t.Fatalf("Drain: %v, want the HaltedError of g/v2", err)
				}
				x.commit(3, "h")
				if err := r.Drain(x.Context(), "g", "h"); !errors.As(err, &halted) {
					t.Errorf("Drain again: %v, want the HaltedError", err)
				}
				x.wantQueued("h", 3)
				if got := x.queued("g"); len(got) != 1 {
					t.Errorf("queue has %v of the halted group, want its first event", got)
				}
				if n := x.log.lines("level=ERROR"); n != 1 {
					t.Errorf("%d lines at ERROR, want one:\n%s", n, x.log)
				}
				parked, err := r.Parked(x.Context(), 10)
				if err != nil || len(parked) != 1 || parked[0].Parked != outbox.Halt {
					t.Fatalf("Parked: %+v, %v, want one halted event", parked, err)
				}
				if s := r.Stats(); s.Refused != 1 || s.Halted != 2 {
					t.Errorf("stats %+v, want 1 refused, 2 visits that ended there", s)
				}
				b, err := r.Sweep(x.Context())
				if err != nil || b.Halted != 1 || b.Groups != 1 || b.Skipped != 0 {
					t.Errorf("Sweep: %+v, %v, want a halted group and no error", b, err)
				}
				// The operator mends it and unparks: its place is kept.
				x.table.Change("g", 2, func(e *outbox.Entry) bool { e.Body = "g/v2"; return false })
				if err := r.Unpark(x.Context(), parked[0]); err != nil {
					t.Fatal(err)
				}
				if err := r.Drain(x.Context(), "g"); err != nil {
					t.Fatal(err)
				}
				x.wantQueued("g", 4)
				for what, err := range map[string]error{"Unpark": r.Unpark(x.Context(), parked[0]), "Discard": r.Discard(x.Context(), parked[0])} {
					if !errors.Is(err, outbox.ErrNotFound) {
						t.Errorf("%s of what is gone: %v, want ErrNotFound", what, err)
					}
				}
			})
		})
	}
}

func TestARefusedEventIsSkipped(t *testing.T) {
	t.Parallel()
	bubble(t, func(x *fixture) {
		r := x.relay(func(o *outbox.Options) { o.OnRefused, o.Settle = outbox.Skip, -1 })
		x.commit(25, "g")
		for _, seq := range []int64{1, 13} {
			x.table.Change("g", seq, func(e *outbox.Entry) bool { e.Body = "\x00"; return false })
		}
		if err := r.Drain(x.Context(), "g"); err != nil {
			t.Fatal(err)
		}
		if got := x.queued("g"); len(got) != 23 || got[0] != "g/v2" || got[22] != "g/v25" {
			t.Errorf("queue has %v, want all but 1 and 13", got)
		}
		for range 3 {
			b, err := r.Sweep(x.Context())
			if err != nil || b.Skipped != 2 || b.Halted != 0 || b.Oldest != 0 {
				t.Errorf("Sweep: %+v, %v, want two skipped events, which have no part in the age", b, err)
			}
		}
		x.ops.forget()
		stop := x.run(r)
		time.Sleep(30 * time.Second)
		if n := x.ops.of("Read"); n > 1 {
			t.Errorf("%d reads in 30 s of a group that has skipped events only, want at most 1", n)
		}
		x.commit(1, "g") // found by its Seq
		time.Sleep(2 * time.Second)
		if got := x.queued("g"); len(got) != 24 {
			t.Errorf("%d events in the queue, want the new one too", len(got))
		}
		if err, _ := stop(); err != nil {
			t.Error(err)
		}
	})
}

// An event that cannot be read, and one of another namespace: neither sent nor parked, their groups wait, others go on.
func TestGroupsThatWait(t *testing.T) {
	t.Parallel()
	bubble(t, func(x *fixture) {
		r := x.relay()
		x.commit(5, "broken", "foreign", "fine", "many")
		x.table.Change("broken", 3, func(*outbox.Entry) bool { return true })
		x.table.Change("foreign", 4, func(e *outbox.Entry) bool { e.Source = "payments"; return false })
		for i := range outbox.MaxSkipped + 1 {
			x.commit(1, "many")
			x.table.Change("many", int64(6+i), func(e *outbox.Entry) bool { e.Parked = outbox.Skip; return false })
		}
		start := time.Now()
		err := r.Drain(x.Context(), "broken", "foreign", "fine", "many")
		if time.Since(start) > time.Second {
			t.Errorf("Drain took %v, want that it does not wait for operators", time.Since(start))
		}
		var broken *outbox.BrokenError
		if !errors.As(err, &broken) || !errors.Is(err, outbox.ErrWrongSource) || !errors.Is(err, outbox.ErrManySkipped) {
			t.Errorf("Drain: %v, want BrokenError, ErrWrongSource and ErrManySkipped", err)
		}
		x.wantQueued("fine", 5)
		for g, want := range map[string]int{"broken": 2, "foreign": 3, "many": 5} {
			if got := x.queued(g); len(got) != want {
				t.Errorf("group %s: queue has %v, want the first %d", g, got, want)
			}
		}
		if n := x.ops.of("Park"); n != 0 {
			t.Errorf("%d calls of Park", n)
		}
		if s := r.Stats(); s.WrongSource == 0 {
			t.Errorf("stats %+v, want WrongSource", s)
		}
		x.ops.forget()
		for range 2 {
			if _, err := r.Sweep(x.Context()); err == nil {
				t.Error("Sweep: nil, want the errors of the groups that wait")
			}
		}
		stop := x.run(r)
		time.Sleep(10 * time.Minute)
		if n := x.ops.of("Read"); n > 3*13 {
			t.Errorf("%d reads in 10 minutes of three groups that wait, want one a minute each", n)
		}
		if n := x.log.lines("waits for an operator; logged once"); n < 9 || n > 11 {
			t.Errorf("%d lines, want one a minute", n)
		}
		if err, _ := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A transaction that is not settled is waited for, and its group alone.
func TestUnsettled(t *testing.T) {
	t.Parallel()
	bubble(t, func(x *fixture) {
		r := x.relay()
		finish := x.table.Half(event("g", 1), event("g", 2))
		x.commit(3, "h")
		time.AfterFunc(5*time.Second, finish)
		start := time.Now()
		if err := r.Drain(x.Context(), "g", "h"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 5*time.Second || took > 7*time.Second {
			t.Errorf("took %v, want that of the transaction", took)
		}
		x.wantQueued("g", 2)
		x.wantQueued("h", 3)
		if s := r.Stats(); s.Unsettled < 4 || s.Unsettled > 60 {
			t.Errorf("%d unsettled reads in 5 s", s.Unsettled)
		}
	})
}

// What the store may not do is contained.
func TestBrokenStores(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]func(s outbox.Store) outbox.Store{
		"panics": func(s outbox.Store) outbox.Store { return &wild{Store: s, read: func() { panic("at the disco") }} },
		"blocks": func(s outbox.Store) outbox.Store {
			return &wild{Store: s, read: func() { time.Sleep(5 * time.Minute) }}
		},
		"wrong order":     func(s outbox.Store) outbox.Store { return &wild{Store: s, reverse: true} },
		"another group":   func(s outbox.Store) outbox.Store { return &wild{Store: s, other: "h"} },
		"more than asked": func(s outbox.Store) outbox.Store { return &wild{Store: s, more: true} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(x *fixture) {
				x.commit(30, "g", "h")
				ctx, cancel := context.WithTimeout(x.Context(), 2*time.Minute)
				defer cancel()
				start := time.Now()
				err := x.relayOf(broken(x.table.Open())).Drain(ctx, "g")
				if took := time.Since(start); err == nil || took > 2*time.Minute+5*time.Second {
					t.Errorf("Drain: %v after %v, want an error by the end of its context", err, took)
				}
				if n := x.requests(); n != 0 {
					t.Errorf("%d requests, want none", n)
				}
				time.Sleep(10 * time.Minute)
				synctest.Wait()
			})
		})
	}
}

// wild is a store whose Read does not keep the contract.
type wild struct {
	outbox.Store
	read          func()
	reverse, more bool
	other         string
}

func (w *wild) Read(ctx context.Context, g outbox.Group, k outbox.Known, limit int) ([]outbox.Entry, error) {
	if w.read != nil {
		w.read()
	}
	if w.more {
		limit = 1000
	}
	es, err := w.Store.Read(ctx, g, k, limit)
	if w.reverse && len(es) > 1 {
		es[0], es[1] = es[1], es[0]
	}
	if w.other != "" && len(es) > 0 {
		es[len(es)-1].Group = w.other
	}
	return es, err
}

// A closed publisher ends Run, and does not leave it trying for ever.
func TestThePublisherIsClosed(t *testing.T) {
	t.Parallel()
	bubble(t, func(x *fixture) {
		p := x.publisher()
		r, err := outbox.NewRelay(x.table.Open(), p)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Close(x.Context()); err != nil {
			t.Fatal(err)
		}
		x.commit(1, "g")
		if err := r.Run(x.Context()); !errors.Is(err, fifo.ErrClosed) {
			t.Errorf("Run: %v, want ErrClosed", err)
		}
		if err := r.Drain(x.Context(), "g"); !errors.Is(err, fifo.ErrClosed) {
			t.Errorf("Drain: %v, want ErrClosed", err)
		}
	})
}

// A queue that was deleted: nothing is parked, Drain says so at once.
func TestTheQueueIsDeleted(t *testing.T) {
	t.Parallel()
	bubble(t, func(x *fixture) {
		x.commit(3, "g")
		if _, err := x.sqs.DeleteQueue(x.Context(), &sqs.DeleteQueueInput{QueueUrl: &x.url}); err != nil {
			t.Fatal(err)
		}
		r := x.relay()
		start := time.Now()
		err := r.Drain(x.Context(), "g")
		if err == nil || !strings.Contains(err.Error(), "NonExistentQueue") || time.Since(start) > 10*time.Second {
			t.Errorf("Drain: %v after %v, want that the queue is not there", err, time.Since(start))
		}
		if _, err := r.Sweep(x.Context()); err != nil { // younger than Settle
			t.Errorf("Sweep: %v", err)
		}
		time.Sleep(time.Minute)
		if b, err := r.Sweep(x.Context()); err == nil || b.Groups != 1 || b.Oldest < time.Minute {
			t.Errorf("Sweep: %+v, %v, want the age of what waits, and an error", b, err)
		}
		if n := x.ops.of("Park"); n != 0 {
			t.Errorf("%d calls of Park", n)
		}
	})
}

// While deletes fail, what is owed is bounded: no further group is published.
func TestOwedDeletesAreBounded(t *testing.T) {
	t.Parallel()
	bubble(t, func(x *fixture) {
		r := x.relay(func(o *outbox.Options) { o.Groups, o.Page = 2, 3 })
		names := groupNames(50)
		x.commit(3, names...)
		x.ops.failing(func(op string) error {
			if op == "Delete" {
				return errors.New("no answer")
			}
			return nil
		})
		stop := x.run(r)
		time.Sleep(time.Hour)
		if s := r.Stats(); s.Undeleted < 6 || s.Undeleted > 12 || s.Published != s.Undeleted {
			t.Errorf("stats %+v, want two pages of two groups published and owed at most", s)
		}
		x.ops.failing(nil)
		time.Sleep(time.Minute)
		for _, g := range names {
			x.wantQueued(g, 3)
		}
		if err, _ := stop(); err != nil {
			t.Error(err)
		}
	})
}
