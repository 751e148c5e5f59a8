package fifo_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// slowQueue answers a send after some time. The send takes effect at once, and also if nobody waits for its answer.
type slowQueue struct {
	next  http.RoundTripper
	takes atomic.Int64
}

func (q *slowQueue) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := q.next.RoundTrip(r)
	if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".SendMessageBatch") {
		return resp, err
	}
	select {
	case <-time.After(time.Duration(q.takes.Load())):
		return resp, err
	case <-r.Context().Done():
		if err == nil {
			_ = resp.Body.Close()
		}
		return nil, r.Context().Err()
	}
}

// A queue that answers after its timeout gets the time that it needs, for all its events, until it is quick again.
func TestSlowQueue(t *testing.T) {
	t.Parallel()
	for _, queue := range []string{orders, standard} {
		runIn(t, queue, queue, func(x *fixture) {
			slow := &slowQueue{next: x.srv}
			x.sent.Client = testaws.SQS(slow)
			p := x.publisher()
			for n, step := range []struct {
				takes    time.Duration
				attempts int
			}{
				{6 * time.Second, 2},  // 5 s, then 10 s
				{6 * time.Second, 1},  // 10 s
				{19 * time.Second, 2}, // 10 s, then 20 s
				{time.Second, 1},      // 20 s
				{6 * time.Second, 2},  // 5 s again
			} {
				slow.takes.Store(int64(step.takes))
				if r, err := p.Publish(x.Context(), event("g", n)); err != nil || r.Attempts != step.attempts {
					x.Errorf("step %d: %+v, %v, want success by attempt %d", n, r, err, step.attempts)
				}
			}
			want := 5 // a FIFO queue recognises the copies
			if queue == standard {
				want = 8
			}
			x.expect("messages", want, len(x.queued("g")))
		})
	}
}

// For a while nothing is answered, and every attempt waits to its end. After that a new event waits for one of them at most, and the others
// for their backoff too.
func TestAfterAnOutageWithoutAnswers(t *testing.T) {
	t.Parallel()
	for _, outage := range []time.Duration{10 * time.Second, 40 * time.Second, 80 * time.Second, 150 * time.Second} {
		inBubble(t, orders, func(x *fixture) {
			end := time.Now().Add(outage)
			x.sent.Client = testaws.SQS(roundTripper(func(r *http.Request) (*http.Response, error) {
				if time.Now().Before(end) {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
				return x.srv.RoundTrip(r)
			}))
			p := x.publisher()
			x.enqueue(p, each(100, 1)...)
			time.Sleep(outage + time.Second)
			start := time.Now()
			if _, err := p.Publish(x.Context(), event("fresh", 1)); err != nil || time.Since(start) > 20*time.Second {
				x.Errorf("after %v: %v after %v, want success within 20s", outage, err, time.Since(start))
			}
			time.Sleep(time.Until(end.Add(25*time.Second + time.Second))) // an attempt's time and a backoff
			if s := p.Stats(); s.Pending > 0 {
				x.Errorf("after %v: %d events wait, %v after the outage", outage, s.Pending, time.Since(end))
			}
			must.Do(x, p.Close(x.Context()))
		})
	}
}

// Only an answer says that the queue is quick again.
func TestQuickFailureIsNoQuickAnswer(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		slow := &slowQueue{next: x.srv}
		slow.takes.Store(int64(6 * time.Second))
		fail := false
		x.sent.Client = testaws.SQS(roundTripper(func(r *http.Request) (*http.Response, error) {
			if fail {
				fail = false
				return nil, errRefused
			}
			return slow.RoundTrip(r)
		}))
		p := x.publisher()
		for n := range 3 {
			if r, err := p.Publish(x.Context(), event("g", n)); err != nil || r.Attempts != 2 {
				x.Errorf("event %d: %+v, %v, want success by the second attempt", n, r, err)
			}
			fail = true
		}
	})
}

// A caller that gives up does not make the queue slow.
func TestCancelledRequestIsNoTimeout(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		c := &hangingClient{Client: x.sqs}
		x.sent.Client = c
		p := x.publisher()
		for n := range 3 {
			ctx, cancel := context.WithTimeout(x.Context(), time.Second)
			if _, err := p.PublishAll(ctx, []fifo.Event{event("g", n)}); reason(err) != "unknown" {
				x.Errorf("PublishAll: %v, want an unknown outcome", err)
			}
			cancel()
		}
		ctx, cancel := context.WithTimeout(x.Context(), time.Minute)
		defer cancel()
		_, _ = p.PublishAll(ctx, []fifo.Event{event("g", 4)})
		if got := c.timeout[3]; got != 5*time.Second {
			x.Errorf("the next attempt has %v, want 5s", got)
		}
	})
}

// hangingClient answers no send. It notes when each began and by when its context would end it.
type hangingClient struct {
	fifo.Client
	began   []time.Duration // from the first one
	timeout []time.Duration
	start   time.Time
}

func (c *hangingClient) SendMessageBatch(ctx context.Context, _ *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	now := time.Now()
	if c.start.IsZero() {
		c.start = now
	}
	deadline, _ := ctx.Deadline()
	c.began, c.timeout = append(c.began, now.Sub(c.start)), append(c.timeout, deadline.Sub(now))
	<-ctx.Done()
	return nil, ctx.Err()
}

// The timeout doubles up to 20 s. Neither a longer timeout nor a shorter one moves the end of the last attempt out of the
// window: SQS forgets the event 300 s after it got it, and a request may be on its way for another ten.
func TestTimeoutsStayInTheWindow(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{time.Second, 5 * time.Second, 40 * time.Second, time.Minute} {
		runIn(t, timeout.String(), orders, func(x *fixture) {
			c := &hangingClient{Client: x.sqs}
			x.sent.Client = c
			p := x.publisher(func(o *fifo.Options) { fifo.SetAttemptTimeout(o, timeout) })
			if _, err := p.Publish(x.Context(), event("g", 1)); reason(err) != "unknown" {
				x.Errorf("Publish: %v, want an unknown outcome", err)
			}
			want := timeout
			for i, got := range c.timeout {
				if end := c.began[i] + got; end > 290*time.Second || got < min(timeout, 5*time.Second) {
					x.Errorf("attempt %d has %v and ends at %v, want 290s at the latest and its timeout at least", i, got, end)
				}
				if left := 290*time.Second - c.began[i]; got != min(want, left) {
					x.Errorf("attempt %d, begun at %v, has %v, want %v", i, c.began[i], got, min(want, left))
				}
				want = max(timeout, min(2*want, 20*time.Second))
			}
			if n := len(c.began); n < 4 {
				x.Errorf("%d attempts, want some", n)
			}
		})
	}
}

// A standard queue recognises no copy, so an event is sent three times at most.
func TestCopiesOnAStandardQueue(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fault  fault.Rule
		want   string
		copies int
	}{
		{fault.Rule{Prob: 1, Do: fault.LoseReply}, "unknown", 3},
		{fault.Rule{Prob: 1, Do: fault.DropEntries}, "unknown", 3},
		{fault.Rule{Nth: 1, Times: 2, Do: fault.LoseReply}, "", 3},
		{fault.Rule{Nth: 1, Times: 20, Do: fault.FailEntries}, "", 1},
	} {
		tt.fault.Op = "SendMessageBatch"
		runIn(t, fmt.Sprintf("%v/%d", tt.fault.Do, tt.fault.Times), standard, func(x *fixture) {
			_, err := x.publisher().Publish(x.Context(), event("g", 1))
			if reason(err) != tt.want || tt.want == "" && err != nil {
				x.Errorf("Publish: %v, want %q", err, tt.want)
			}
			if tt.want != "" && errors.Is(err, fifo.ErrNotSent) {
				x.Errorf("Publish: %v, want no ErrNotSent", err)
			}
			time.Sleep(10 * time.Minute)
			x.expect("copies", tt.copies, len(x.queued("g")))
		}, tt.fault)
	}
}

// The window starts with the first attempt that may have put the event into the queue.
func TestWindowStartsWithTheFirstUnknownOutcome(t *testing.T) {
	t.Parallel()
	failThenLose := func(x *fixture) {
		set := func(do fault.Kind) {
			x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: "SendMessageBatch", Prob: 1, Do: do}}})
		}
		set(fault.FailEntries)
		time.AfterFunc(200*time.Second, func() { set(fault.LoseReply) })
	}
	inBubble(t, orders, func(x *fixture) {
		failThenLose(x)
		time.AfterFunc(400*time.Second, func() { x.srv.Set(fault.Plan{}) })
		r, err := x.publisher().Publish(x.Context(), event("g", 1))
		if err != nil || r.Attempts < 10 {
			x.Errorf("Publish: %+v, %v, want success after 400 s", r, err)
		}
		x.expect("copies", 1, len(x.queued("g")))
	})
	inBubble(t, orders, func(x *fixture) {
		failThenLose(x)
		start := time.Now()
		_, err := x.publisher().Publish(x.Context(), event("g", 1))
		if took := time.Since(start); reason(err) != "unknown" || took < 480*time.Second || took > 500*time.Second {
			x.Errorf("Publish: %v after %v, want an unknown outcome 285 s after the first lost reply", err, took)
		}
	})
}

// What is not sent for long says so in the log, once a minute.
func TestLongOutageIsLogged(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		x.outage(10*time.Minute+30*time.Second, fault.Rule{Do: fault.Error, Code: "RequestThrottled"})
		var book logBook
		p := x.publisher(book.option)
		must.Get(p.PublishAll(x.Context(), each(30, 1)))(x)
		if n := book.count("WARN", "no attempt has succeeded"); n < 9 || n > 10 {
			x.Errorf("%d lines in ten minutes, want one a minute: %s", n, book.String())
		}
		if n, all := book.count("WARN", "accepted=30\n"), book.count("WARN", "no attempt has succeeded"); n != all {
			x.Errorf("%d of %d lines have the number of accepted events", n, all)
		}
		if book.count("DEBUG", "unknown=true") > 0 || book.count("DEBUG", "unknown=false") == 0 {
			x.Error("the lines do not say that what was throttled is not in the queue")
		}
	})
}
