package fifo_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/fifokit"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// results waits for all results, and returns what is certain of each event.
func (x *fixture) results(pending []*fifo.PublishResult) (got []string) {
	for _, q := range pending {
		_, err := q.Get(x.Context())
		switch {
		case err == nil:
			got = append(got, "sent")
		case errors.Is(err, fifo.ErrRefused):
			got = append(got, "refused")
		default:
			got = append(got, reason(err))
		}
	}
	return got
}

// settled returns the same of results that are there.
func (x *fixture) settled(pending []*fifo.PublishResult) []string {
	synctest.Wait()
	ctx, cancel := context.WithCancel(x.Context())
	cancel()
	var got []string
	for _, q := range pending {
		if _, err := q.Get(ctx); errors.Is(err, context.Canceled) && !isPublishError(err) {
			got = append(got, "none")
			continue
		}
		got = append(got, x.results([]*fifo.PublishResult{q})...)
	}
	return got
}

func (x *fixture) expectIdle(p *fifo.Publisher) {
	x.Helper()
	if !p.Idle() {
		x.Error("the publisher is not idle")
	}
}

func (x *fixture) expect(what string, want, got any) {
	x.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		x.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// A page of one group: each event is sent when the one before it is confirmed. What is behind one that is refused is not sent, nor
// is what comes before all results have been read.
func TestAPageOfAGroup(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		l, closeLane := fifokit.OpenLane(p, x.Context())
		defer closeLane()
		page := x.enqueueTo(l, event("g", 1), event("g", 2), event("g", 3), event("g", 4))
		time.Sleep(time.Second)
		if _, err := l.Enqueue(x.Context(), event("g", 5)); !errors.Is(err, fifo.ErrGroupHalted) {
			x.Errorf("Enqueue behind an unread failure: %v, want ErrGroupHalted", err)
		}
		if err := p.Flush(x.Context()); err != nil {
			x.Errorf("Flush: %v, want nil: the lane's user reads its results", err)
		}
		x.results(page[:3])
		if _, err := l.Enqueue(x.Context(), event("g", 5)); !errors.Is(err, fifo.ErrGroupHalted) {
			x.Errorf("Enqueue behind an unread failure: %v, want ErrGroupHalted", err)
		}
		x.expect("results", []string{"sent", "refused", "halted", "halted"}, x.results(page))
		x.expect("queue", []string{"g/v1"}, x.queued("g"))
		x.expect("results of the second visit", []string{"sent", "sent", "sent"}, x.results(x.enqueueTo(l, event("g", 2), event("g", 3), event("g", 4))))
		x.expect("queue", []string{"g/v1", "g/v2", "g/v3", "g/v4"}, x.queued("g"))
		x.expect("requests", []int{1, 1, 1, 1, 1}, x.sizes())
	}, fault.Rule{Op: "SendMessageBatch", Nth: 2, Do: fault.FailEntries, Code: "InvalidMessageContents"})
}

// Flush reads the failures of others, of which there are more than it remembers. The group of the lane's failure stays closed.
func TestFlushOpensNoGroupOfALane(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		p := x.publisher(func(o *fifo.Options) { o.MaxMessages = 3 })
		l, closeLane := fifokit.OpenLane(p, x.Context())
		defer closeLane()
		first := x.enqueueTo(l, event("lane", 1), event("lane", 2))
		x.enqueueTo(l, event("resumed", 1))
		time.Sleep(time.Second)
		p.Resume("resumed")
		x.expect("result", []string{"refused"}, x.results(first[:1]))
		for n := range 5 {
			x.enqueue(p, event(fmt.Sprint("g", n), 1))
			time.Sleep(time.Second)
		}
		if err := p.Flush(x.Context()); len(split(err)) != 3 {
			x.Errorf("Flush: %v, want three failures and a number", err)
		}
		if _, err := l.Enqueue(x.Context(), event("lane", 2)); !errors.Is(err, fifo.ErrGroupHalted) {
			x.Errorf("Enqueue behind an unread failure: %v, want ErrGroupHalted", err)
		}
		x.srv.Set(fault.Plan{})
		for n := range 5 {
			must.Get(p.Publish(x.Context(), event(fmt.Sprint("g", n), 2)))(x)
		}
		x.expect("of the group that was opened by Resume", []string{"sent"}, x.results(x.enqueueTo(l, event("resumed", 1))))
		x.expect("result", []string{"halted"}, x.results(first[1:]))
		x.expect("again", []string{"sent", "sent"}, x.results(x.enqueueTo(l, event("lane", 1), event("lane", 2))))
	}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.FailEntries, Code: "InvalidMessageContents"})
}

// A lane ends with its context, and when it is closed: in flight, between two attempts, and before the first one.
func TestALaneEnds(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]fault.Rule{
		"in flight":        {Op: "SendMessageBatch", Prob: 1, Do: fault.Delay, Delay: time.Minute},
		"between attempts": {Op: "SendMessageBatch", Prob: 1, Do: fault.LoseReply},
		"throttled":        {Op: "SendMessageBatch", Prob: 1, Do: fault.Error, Code: "ThrottlingException"},
	} {
		for how, end := range map[string]func(cancel context.CancelCauseFunc, closeLane func()){
			"context":             func(cancel context.CancelCauseFunc, _ func()) { cancel(errCancelled) },
			"close":               func(_ context.CancelCauseFunc, closeLane func()) { closeLane() },
			"context, then close": func(cancel context.CancelCauseFunc, closeLane func()) { cancel(errCancelled); closeLane() },
		} {
			runIn(t, name+"/"+how, orders, func(x *fixture) {
				p := x.publisher(func(o *fifo.Options) { o.MaxMessages = 3 })
				ctx, cancel := context.WithCancelCause(x.Context())
				defer cancel(nil)
				l, closeLane := fifokit.OpenLane(p, ctx)
				pending := x.enqueueTo(l, event("g", 1), event("g", 2), event("h", 1))
				waits := make(chan error, 1)
				go func() {
					_, err := l.Enqueue(context.Background(), event("i", 1))
					waits <- err
				}()
				time.Sleep(time.Second)
				start := time.Now()
				end(cancel, closeLane)
				if how == "close" {
					cancel(errCancelled)
				}
				want := []string{"unknown", "not sent", "unknown"}
				if name == "throttled" {
					want[0], want[2] = "not sent", "not sent"
				}
				x.expect("results", want, x.settled(pending))
				if err := <-waits; !errors.Is(err, fifo.ErrNotSent) || !errors.Is(err, fifo.ErrBufferFull) {
					x.Errorf("Enqueue without capacity: %v, want ErrNotSent, ErrBufferFull", err)
				}
				_, err := l.Enqueue(x.Context(), event("j", 1))
				if !errors.Is(err, fifo.ErrNotSent) || errors.Is(err, errCancelled) != (how != "close") {
					x.Errorf("Enqueue after the end: %v, want ErrNotSent with the cause", err)
				}
				closeLane()
				closeLane()
				if took := time.Since(start); took != 0 || !p.Idle() || x.sent.inFlight() != 0 {
					x.Errorf("closed after %v, idle: %t, %d requests in flight", took, p.Idle(), x.sent.inFlight())
				}
				x.srv.Set(fault.Plan{})
				_, err = p.PublishAll(x.Context(), []fifo.Event{event("g", 1), event("g", 2), event("h", 1)})
				if err != nil {
					x.Errorf("the groups after the lane: %v", err)
				}
				time.Sleep(2 * time.Minute)
				x.expect("queue", []string{"g/v1", "g/v2"}, x.queued("g"))
			}, rule)
		}
	}
}

// A failure that nobody has read closes its group until the lane is closed.
func TestCloseOfALaneReadsItsFailures(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		l, closeLane := fifokit.OpenLane(p, x.Context())
		x.enqueueTo(l, event("g", 1), event("g", 2))
		time.Sleep(time.Second)
		if _, err := p.Publish(x.Context(), event("g", 1)); !errors.Is(err, fifo.ErrGroupHalted) {
			x.Errorf("Publish while the lane is open: %v, want ErrGroupHalted", err)
		}
		closeLane()
		must.Get(p.Publish(x.Context(), event("g", 1)))(x)
	}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.FailEntries, Code: "InvalidMessageContents"})
}

// What is sent on for others may fail without its caller: its group is open when theirs have read their results.
func TestWhatIsSentOnFails(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		short, closeShort := fifokit.OpenLane(p, x.Context())
		long, closeLong := fifokit.OpenLane(p, x.Context())
		defer closeLong()
		x.enqueueTo(short, event("g", 1))
		others := x.enqueueTo(long, event("g", 2))
		time.Sleep(500 * time.Millisecond)
		closeShort()
		x.expect("results", []string{"halted"}, x.results(others))
		x.srv.Set(fault.Plan{})
		x.expect("again", []string{"sent", "sent"}, x.results(x.enqueueTo(long, event("g", 1), event("g", 2))))
	}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.LoseReply})
}

// Close sends what lanes have, or says what it could not send. Lanes accept nothing after it, and end as ever.
func TestCloseWithAnOpenLane(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		l, closeLane := fifokit.OpenLane(p, x.Context())
		pending := x.enqueueTo(l, event("g", 1), event("g", 2))
		must.Do(x, p.Close(x.Context()))
		x.expect("results", []string{"sent", "sent"}, x.settled(pending))
		if _, err := l.Enqueue(x.Context(), event("g", 3)); !errors.Is(err, fifo.ErrClosed) {
			x.Errorf("Enqueue after Close: %v, want ErrClosed", err)
		}
		closeLane()
		x.expectIdle(p)
	}, slowSQS)
	inBubble(t, orders, func(x *fixture) {
		p := x.publisher()
		l, closeLane := fifokit.OpenLane(p, x.Context())
		pending := x.enqueueTo(l, event("g", 1), event("g", 2))
		ctx, cancel := context.WithTimeout(x.Context(), time.Second)
		defer cancel()
		if err := p.Close(ctx); !errors.Is(err, fifo.ErrClosed) || len(split(err)) != 2 {
			x.Errorf("Close: %v, want ErrClosed for two events", err)
		}
		x.expect("results", []string{"unknown", "not sent"}, x.settled(pending))
		closeLane()
		x.expectIdle(p)
	}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.Delay, Delay: time.Minute})
}

// The user of a lane has the failures, and says them: a relay whose queue is refused would log one for each group. PublishAll's are
// logged as ever.
func TestFailuresOfALaneAreNotLogged(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		var log logBook
		p := x.publisher(log.option)
		l, closeLane := fifokit.OpenLane(p, x.Context())
		x.expect("results", []string{"refused"}, x.results(x.enqueueTo(l, event("g", 1))))
		closeLane()
		if n := log.count("ERROR", "fifo: event failed"); n != 0 {
			x.Errorf("%d lines about a lane's failure:\n%s", n, log.String())
		}
		if _, err := p.PublishAll(x.Context(), []fifo.Event{event("h", 1)}); err == nil {
			x.Error("PublishAll: no error")
		}
		if n := log.count("ERROR", "fifo: event failed"); n != 1 {
			x.Errorf("%d lines about a failure of PublishAll, want 1:\n%s", n, log.String())
		}
	}, fault.Rule{Op: "SendMessageBatch", Do: fault.FailEntries, Code: "InvalidMessageContents"})
}
