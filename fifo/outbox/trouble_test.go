package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
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
				if n := x.requests(); n > 11_000 {
					t.Errorf("%d requests in the hour, want at most 11,000", n)
				}
				if n := x.ops.of("Read"); n > 30*240 {
					t.Errorf("%d reads in the hour, want at most two a minute and group, and some", n)
				}
				if n := x.log.lines("level=ERROR"); n < 30 || n > 61 {
					t.Errorf("%d lines at ERROR in the hour, want one a minute", n)
				}
				if s := r.Stats(); name == "no answer" && (s.Copies < 30 || s.Unknown < 30) || name == "denied" && (s.Copies > 0 || s.Unknown > 0) {
					t.Errorf("stats %+v, want that lost answers make copies, and refusals none", s)
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
				if took, err := stop(); err != nil || took > 10*time.Second {
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
				must.Get(stop())(t)
			})
		})
	}
}

// A read or a claim that is refused for good ends a Drain at once, and the end of its time does not hide why a store that is away was
// tried again.
func TestStoreRefuses(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"Read", "Claim"} {
		for _, why := range []error{outbox.ErrDenied, &sqsonce.OptionError{Package: "store", Field: "db", Problem: "is nil"}, errors.New("away")} {
			t.Run(fmt.Sprint(op, " ", why), func(t *testing.T) {
				bubble(t, func(x *fixture) {
					x.commit(1, "g")
					x.ops.failing(func(o string) error {
						if o == op {
							return fmt.Errorf("the store's: %w", why)
						}
						return nil
					})
					ctx, cancel := context.WithTimeout(x.Context(), 30*time.Second)
					defer cancel()
					start := time.Now()
					err := x.relay().Drain(ctx, "g")
					if !errors.Is(err, why) {
						t.Errorf("Drain: %v, want %v", err, why)
					}
					_, isField := errors.AsType[*sqsonce.OptionError](err)
					atOnce := time.Since(start) == 0
					if atOnce != (isField || errors.Is(err, outbox.ErrDenied)) {
						t.Errorf("Drain has ended after %v: %v", time.Since(start), err)
					}
				})
			})
		}
	}
}

// A delete that is refused for good stops the relay: nothing is published again and again.
func TestDeletesAreDenied(t *testing.T) {
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
		must.Do(t, r.Drain(x.Context(), "g"))
		x.wantQueued("g", 50)
		if n := x.requests() - sent; n != 40 {
			t.Errorf("%d requests for the rest, want 40: no copies", n)
		}
		must.Do(t, r.Drain(x.Context(), "h"))
		x.wantQueued("h", 5)
	})
}

// A closed publisher ends Run, and does not leave it trying for ever.
func TestThePublisherIsClosed(t *testing.T) {
	bubble(t, func(x *fixture) {
		p := x.publisher()
		r := must.Get(outbox.NewRelay(x.table.Open(), p))(t)
		must.Do(t, p.Close(x.Context()))
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
	bubble(t, func(x *fixture) {
		x.commit(3, "g")
		must.Get(x.sqs.DeleteQueue(x.Context(), &sqs.DeleteQueueInput{QueueUrl: &x.url}))(t)
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
		must.Get(stop())(t)
	})
}
