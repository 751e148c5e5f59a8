package fifo_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// results waits for all results, and returns what is certain of each event.
func (x *fixture) results(pending []*fifo.Pending) (got []string) {
	for _, q := range pending {
		_, err := q.Wait(x.Context())
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
func (x *fixture) settled(pending []*fifo.Pending) []string {
	synctest.Wait()
	ctx, cancel := context.WithCancel(x.Context())
	cancel()
	var got []string
	for _, q := range pending {
		if _, err := q.Wait(ctx); errors.Is(err, context.Canceled) && !isPublishError(err) {
			got = append(got, "none")
			continue
		}
		got = append(got, x.results([]*fifo.Pending{q})...)
	}
	return got
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
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		l, closeLane := p.OpenLane(x.Context())
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
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p := x.publisher(func(o *fifo.Options) { o.MaxMessages = 3 })
		l, closeLane := p.OpenLane(x.Context())
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
			if _, err := p.Publish(x.Context(), event(fmt.Sprint("g", n), 2)); err != nil {
				x.Error(err)
			}
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
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				bubble(t, orders, func(x *fixture) {
					p := x.publisher(func(o *fifo.Options) { o.MaxMessages = 3 })
					ctx, cancel := context.WithCancelCause(x.Context())
					defer cancel(nil)
					l, closeLane := p.OpenLane(ctx)
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
			})
		}
	}
}

// A failure that nobody has read closes its group until the lane is closed.
func TestCloseOfALaneReadsItsFailures(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		l, closeLane := p.OpenLane(x.Context())
		x.enqueueTo(l, event("g", 1), event("g", 2))
		time.Sleep(time.Second)
		if _, err := p.Publish(x.Context(), event("g", 1)); !errors.Is(err, fifo.ErrGroupHalted) {
			x.Errorf("Publish while the lane is open: %v, want ErrGroupHalted", err)
		}
		closeLane()
		if _, err := p.Publish(x.Context(), event("g", 1)); err != nil {
			x.Errorf("Publish after the lane: %v", err)
		}
	}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.FailEntries, Code: "InvalidMessageContents"})
}

// The end of a lane is no failure of another one: neither of those in the same request nor of those behind it in a group.
func TestALaneEndsBesideAnother(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]fault.Rule{
		"in flight":        {Op: "SendMessageBatch", Nth: 1, Do: fault.Delay, Delay: 3 * time.Second},
		"between attempts": {Op: "SendMessageBatch", Nth: 1, Times: 30, Do: fault.LoseReply},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, orders, func(x *fixture) {
				p := x.publisher()
				short, closeShort := p.OpenLane(x.Context())
				long, closeLong := p.OpenLane(x.Context())
				ended := x.enqueueTo(short, event("g", 1), event("g", 2))
				others := x.enqueueTo(long, event("h", 1), event("g", 3))
				time.Sleep(500 * time.Millisecond)
				start := time.Now()
				closeShort()
				if took := time.Since(start); took != 0 {
					x.Errorf("close took %v: it waited for a request of another lane", took)
				}
				x.expect("results of the lane that ended", []string{"none", "not sent"}, x.settled(ended))
				x.expect("results of the other", []string{"sent", "sent"}, x.results(others))
				x.expect("result of what was sent on", []string{"sent"}, x.results(ended[:1]))
				x.expect("queue", []string{"g/v1", "g/v3"}, x.queued("g"))
				closeLong()
				if !p.Idle() {
					x.Error("the publisher is not idle")
				}
			}, rule)
		})
	}
}

// What is sent on for others may fail without its caller: its group is open when theirs have read their results.
func TestWhatIsSentOnFails(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		short, closeShort := p.OpenLane(x.Context())
		long, closeLong := p.OpenLane(x.Context())
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

// A read of the queue's limit that a lane's event has begun ends before close returns: after its answer, or with the context.
func TestALaneAwaitsTheLimit(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{time.Second, time.Minute} {
		bubble(t, orders, func(x *fixture) {
			p := x.publisher()
			ctx, cancel := context.WithTimeout(x.Context(), timeout)
			defer cancel()
			l, closeLane := p.OpenLane(ctx)
			x.expect("results", []string{"sent"}, x.results(x.enqueueTo(l, sized("g", 3000))))
			start := time.Now()
			closeLane()
			if took := time.Since(start); took > min(timeout, 3*time.Second) || !p.Idle() {
				x.Errorf("close took %v with a context of %v, idle: %t", took, timeout, p.Idle())
			}
		}, fault.Rule{Op: "GetQueueAttributes", Prob: 1, Do: fault.Delay, Delay: 3 * time.Second})
	}
}

func TestALaneOfNoPublisher(t *testing.T) {
	t.Parallel()
	_, err := new(fifo.Lane).Enqueue(t.Context(), event("g", 1))
	if fe, ok := errors.AsType[*sqsonce.FieldError](err); !ok || fe.Field != "Lane" || !errors.Is(err, fifo.ErrNotSent) || errors.Is(err, fifo.ErrRefused) {
		t.Errorf("Enqueue: %v, want ErrNotSent and a FieldError", err)
	}
}

// Clients that panic, answer nothing or ignore their context.
func TestALaneWithABrokenClient(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]func(*fixture) fifo.Client{
		"panics":    func(x *fixture) fifo.Client { return &breaking{Client: x.sent, how: func() { panic("broken") }} },
		"no answer": func(x *fixture) fifo.Client { return &breaking{Client: x.sent, how: func() {}} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, orders, func(x *fixture) {
				p, err := fifo.NewPublisher(client(x), x.url, "orders")
				if err != nil {
					x.Fatal(err)
				}
				l, closeLane := p.OpenLane(x.Context())
				x.expect("results", []string{"sent", "sent", "sent"}, x.results(x.enqueueTo(l, event("g", 1), event("g", 2), event("h", 1))))
				closeLane()
				if !p.Idle() {
					x.Error("the publisher is not idle")
				}
			})
		})
	}
	bubble(t, orders, func(x *fixture) {
		p, err := fifo.NewPublisher(deaf{x.sent}, x.url, "orders")
		if err != nil {
			x.Fatal(err)
		}
		l, closeLane := p.OpenLane(x.Context())
		pending := x.enqueueTo(l, event("g", 1), event("g", 2))
		time.Sleep(time.Second)
		start := time.Now()
		closeLane()
		if took := time.Since(start); took != 100*time.Millisecond {
			x.Errorf("close took %v, want 100ms", took)
		}
		x.expect("results", []string{"none", "not sent"}, x.settled(pending))
		time.Sleep(time.Minute)
		x.expect("results", []string{"sent", "not sent"}, x.settled(pending))
		if !p.Idle() {
			x.Error("the publisher is not idle")
		}
	}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.Delay, Delay: 30 * time.Second})
}

// breaking is a client whose first call breaks.
type breaking struct {
	fifo.Client
	how  func()
	once sync.Once
}

func (c *breaking) SendMessageBatch(
	ctx context.Context, in *sqs.SendMessageBatchInput, optFns ...func(*sqs.Options),
) (out *sqs.SendMessageBatchOutput, err error) {
	broke := false
	c.once.Do(func() { broke = true })
	if broke {
		c.how()
		return nil, nil
	}
	return c.Client.SendMessageBatch(ctx, in, optFns...)
}

// Close sends what lanes have, or says what it could not send. Lanes accept nothing after it, and end as ever.
func TestCloseWithAnOpenLane(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		l, closeLane := p.OpenLane(x.Context())
		pending := x.enqueueTo(l, event("g", 1), event("g", 2))
		if err := p.Close(x.Context()); err != nil {
			x.Errorf("Close: %v", err)
		}
		x.expect("results", []string{"sent", "sent"}, x.settled(pending))
		if _, err := l.Enqueue(x.Context(), event("g", 3)); !errors.Is(err, fifo.ErrClosed) {
			x.Errorf("Enqueue after Close: %v, want ErrClosed", err)
		}
		closeLane()
		if !p.Idle() {
			x.Error("the publisher is not idle")
		}
	}, slowSQS)
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		l, closeLane := p.OpenLane(x.Context())
		pending := x.enqueueTo(l, event("g", 1), event("g", 2))
		ctx, cancel := context.WithTimeout(x.Context(), time.Second)
		defer cancel()
		if err := p.Close(ctx); !errors.Is(err, fifo.ErrClosed) || len(split(err)) != 2 {
			x.Errorf("Close: %v, want ErrClosed for two events", err)
		}
		x.expect("results", []string{"unknown", "not sent"}, x.settled(pending))
		closeLane()
		if !p.Idle() {
			x.Error("the publisher is not idle")
		}
	}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.Delay, Delay: time.Minute})
}

// Nothing of a lane is left after close, whatever goes on: the bubble fails if a goroutine is.
func TestNothingOfALaneIsLeft(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		bubble(t, orders, func(x *fixture) {
			p := x.publisher(func(o *fifo.Options) { o.MaxMessages, o.InFlight = 20, 3 })
			var wg sync.WaitGroup
			for n := range 20 {
				wg.Go(func() {
					rng := rand.New(rand.NewPCG(seed, uint64(n)))
					ctx, cancel := context.WithTimeout(x.Context(), time.Duration(rng.IntN(1000))*time.Millisecond)
					defer cancel()
					l, closeLane := p.OpenLane(ctx)
					for i := range 5 {
						e := event(fmt.Sprint("g", rng.IntN(5)), rng.Int())
						wg.Go(func() {
							if q, err := l.Enqueue(ctx, e); err == nil && i%2 == 0 {
								_, _ = q.Wait(ctx)
							}
						})
					}
					time.Sleep(time.Duration(rng.IntN(1000)) * time.Millisecond)
					wg.Go(closeLane)
					closeLane()
				})
			}
			wg.Wait()
			time.Sleep(time.Minute) // requests that other lanes waited for
			if !p.Idle() {
				x.Error("the publisher is not idle")
			}
		}, fault.Rule{Op: "SendMessageBatch", Prob: 0.5, Do: fault.Delay, Delay: 300 * time.Millisecond},
			fault.Rule{Op: "SendMessageBatch", Prob: 0.2, Do: fault.LoseReply},
			fault.Rule{Op: "SendMessageBatch", Prob: 0.2, Do: fault.FailEntries, Code: "InvalidMessageContents", Entries: []int{0}})
	}
}

// On a standard queue nothing is behind anything.
func TestALaneOnAStandardQueue(t *testing.T) {
	t.Parallel()
	bubble(t, standard, func(x *fixture) {
		p := x.publisher()
		l, closeLane := p.OpenLane(x.Context())
		defer closeLane()
		var page []fifo.Event
		for n := range 10 {
			page = append(page, event("g", n))
		}
		start := time.Now()
		x.expect("results", []string{"sent", "refused", "sent", "sent", "sent", "sent", "sent", "sent", "sent", "sent"}, x.results(x.enqueueTo(l, page...)))
		x.expect("again", []string{"sent"}, x.results(x.enqueueTo(l, event("g", 1))))
		if took := time.Since(start); took != 10*time.Millisecond {
			x.Errorf("took %v, want 10ms: ten do not wait, one does", took)
		}
		x.expect("requests", []int{10, 1}, x.sizes())
	}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.FailEntries, Code: "InvalidMessageContents", Entries: []int{1}})
}
