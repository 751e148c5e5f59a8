package lambda

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/sqsonce/sqsonce"
)

// TestStorm attacks invocations in virtual time: handlers with any outcome that ignore their context or not; a client that is
// slow, refuses, panics, answers nothing, or ignores its context; deadlines from 100 ms. Several invocations run in one
// process, some at the same time, while the handlers and calls that earlier ones abandoned go on. SOAK=1 takes many more.
func TestStorm(t *testing.T) {
	t.Parallel()
	storms := 300
	if os.Getenv("SOAK") != "" {
		storms = 20_000
	} else if testing.Short() {
		storms = 60
	}
	var total stormTotals
	for seed := range uint64(storms) {
		synctest.Test(t, func(t *testing.T) { newStorm(t, seed, &total).run() })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%+v", total)
	if total.successes == 0 || total.deadLettered == 0 || total.failures == 0 || total.errors == 0 || total.abandoned == 0 {
		t.Errorf("a storm without one of them tests nothing: %+v", total)
	}
}

type stormTotals struct{ successes, deadLettered, failures, errors, abandoned int }

type storm struct {
	*testing.T
	total *stormTotals
	fifo  bool
	last  bool // each receive is the last one: those behind a failed message of their group run, where SQS moves that
	opts  Options

	mu     sync.Mutex // of what follows
	rnd    *rand.Rand
	events int // made so far
	tries  map[string]*stormTry
}

// stormTry is what happened to a record, by its body. Zero times: not yet.
type stormTry struct {
	group                string
	started, ended       time.Time // of the handler
	succeeded            bool
	sendBegun, confirmed time.Time
	settled, settledDead int
	answered             time.Time // the invocation
	reported             bool      // as a failure
}

func newStorm(t *testing.T, seed uint64, total *stormTotals) *storm {
	s := &storm{T: t, total: total, rnd: rand.New(rand.NewPCG(seed, 1)), tries: map[string]*stormTry{}}
	s.fifo = s.chance(0.5)
	s.last = s.fifo && s.chance(0.5)
	margins := []time.Duration{0, 10 * time.Millisecond, 40 * time.Millisecond, 200 * time.Millisecond, time.Second}
	s.opts = Options{
		Concurrency: 1 + s.rnd.IntN(12), Margin: margins[s.rnd.IntN(len(margins))],
		Abandoned: []int{-1, 0, 3}[s.rnd.IntN(3)], Backoff: func(int) time.Duration { return s.up(time.Minute) },
	}
	if s.chance(0.5) {
		s.opts.DeadLetterQueue = stubDLQ
		if s.fifo {
			s.opts.DeadLetterQueue += ".fifo"
		}
	}
	return s
}

// chance and up may be called from any goroutine.
func (s *storm) chance(p float64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rnd.Float64() < p
}

// up returns a duration up to most, the short ones as likely as the long ones.
func (s *storm) up(most time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return most >> s.rnd.IntN(12) * time.Duration(s.rnd.IntN(1000)) / 1000
}

func (s *storm) run() {
	var a *adapter
	restart := func() {
		var err error
		if a, err = newAdapter(s.handle, []func(*Options){func(o *Options) { *o = s.opts; o.Client = s.client() }}, nil); err != nil {
			s.Fatal(err)
		}
	}
	restart()
	for range 4 {
		var wg sync.WaitGroup
		exits := make(chan bool, 2)
		atOnce := 1
		if s.chance(0.5) {
			atOnce = 2
		}
		for range atOnce {
			e := s.event()
			wg.Go(func() { exits <- s.invoke(a, e) })
		}
		wg.Wait()
		close(exits)
		for exit := range exits {
			if exit {
				restart()
			}
		}
		time.Sleep(s.up(time.Minute))
	}
	time.Sleep(24 * time.Hour) // the clients and handlers give up
	if n := a.abandoned.Load(); n != 0 {
		s.Errorf("%d abandoned goroutines in the end, want none", n)
	}
	s.checkSettled()
}

func (s *storm) event() events.SQSEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events++
	var ids []string
	groups := 1 + s.rnd.IntN(8)
	for i := range 1 + s.rnd.IntN(60) {
		ids = append(ids, fmt.Sprintf("%c-%d-%d", 'a'+s.rnd.IntN(groups), s.events, i))
	}
	e := batch(ids...)
	if s.fifo {
		e = fifoBatch(ids...)
	}
	for _, r := range e.Records {
		s.tries[r.Body] = &stormTry{group: r.Body[:1]}
	}
	return e
}

// invoke reports whether the process is to end.
func (s *storm) invoke(a *adapter, e events.SQSEvent) (exit bool) {
	remaining := 100*time.Millisecond + s.up(2*time.Minute)
	deadline := time.Now().Add(remaining)
	latest := deadline.Add(-margin(s.opts.Margin, remaining) / 4)
	if now := time.Now(); latest.Before(now) {
		latest = now
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	r, err := a.invoke(ctx, e)
	now := time.Now()
	if now.After(latest) {
		s.Errorf("answered %v before the deadline, want %v", deadline.Sub(now), deadline.Sub(latest))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.total.errors++
		end, ok := errors.AsType[messages.InvokeResponse_Error](err)
		return ok && end.ShouldExit
	}
	named := map[string]bool{}
	for _, f := range r.BatchItemFailures {
		named[f.ItemIdentifier] = true
	}
	failedGroup := map[string]bool{}
	for _, rec := range e.Records {
		try := s.tries[rec.Body]
		try.answered, try.reported = now, named[rec.MessageId]
		switch {
		case try.reported:
			s.total.failures++
			failedGroup[try.group] = true
			if !try.started.IsZero() && try.ended.IsZero() {
				s.total.abandoned++
			}
		case !try.succeeded && try.confirmed.IsZero():
			s.Errorf("%s is reported as a success: its handler did not succeed, and it is not in the dead-letter queue", rec.Body)
		case s.fifo && !s.last && failedGroup[try.group]:
			s.Errorf("%s is reported as a success behind a failed message of its group", rec.Body)
		case try.succeeded:
			s.total.successes++
		default:
			s.total.deadLettered++
		}
	}
	return false
}

func (s *storm) handle(ctx context.Context, m *sqsonce.Message) error {
	s.mu.Lock()
	try := s.tries[m.Body]
	if !try.started.IsZero() || !try.answered.IsZero() {
		s.Errorf("%s started twice, or after the response", m.Body)
	}
	try.started = time.Now()
	for body, other := range s.tries {
		if s.fifo && other.group == try.group && before(body, m.Body) && !other.succeeded && other.confirmed.IsZero() && (!s.last || other.started.IsZero()) {
			s.Errorf("%s started before %s of its group was done", m.Body, body)
		}
	}
	s.mu.Unlock()
	sqsonce.OnSettled(ctx, func(dead bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		try.settled++
		if dead {
			try.settledDead++
		}
	})
	outcome := s.outcome()
	if s.chance(0.5) {
		s.pause(ctx, 0.3, 30*time.Second)
	}
	s.mu.Lock()
	try.ended = time.Now()
	// A handler that ends as the results are closed may be on either side.
	try.succeeded = outcome == nil
	s.mu.Unlock()
	if errors.Is(outcome, errPanic) {
		panic("boom")
	}
	if errors.Is(outcome, errExit) {
		return exits(ctx, m)
	}
	return outcome
}

var errPanic, errExit, errNil = errors.New("panic"), errors.New("exit"), errors.New("nil")

func (s *storm) outcome() error {
	delay := s.up(time.Hour)
	s.mu.Lock()
	defer s.mu.Unlock()
	return []error{
		nil, nil, nil, nil, nil, nil, errTest, errPanic, errExit, sqsonce.Reject(errTest), sqsonce.Reject(errTest), sqsonce.RetryAfter(delay, errTest),
		sqsonce.RetryAfter(delay, sqsonce.ErrInProgress), sqsonce.ErrLeaseLost, sqsonce.Unavailable(errTest),
	}[s.rnd.IntN(15)]
}

// pause lasts up to most, and with the probability ignores the end of ctx.
func (s *storm) pause(ctx context.Context, ignores float64, most time.Duration) {
	d := s.up(most)
	if s.chance(ignores) {
		time.Sleep(d)
		return
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// before reports whether a is in front of b in the same event.
func before(a, b string) bool {
	var x, y, i, j int
	_, _ = fmt.Sscanf(a[2:], "%d-%d", &x, &i)
	_, _ = fmt.Sscanf(b[2:], "%d-%d", &y, &j)
	return x == y && i < j
}

// client breaks calls in every way, and notes when a send begins and when it is confirmed.
func (s *storm) client() Client {
	c := &stubClient{most: 2}
	if s.last {
		c.most = 1
	}
	c.before = func(ctx context.Context, op string) error {
		if s.chance(0.5) {
			s.pause(ctx, 0.5, time.Minute)
		}
		if ctx.Err() != nil && s.chance(0.5) {
			return ctx.Err()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		switch s.rnd.IntN(20) {
		case 0:
			return errTest
		case 1:
			return errNil
		case 2:
			panic("bug of the client")
		}
		return nil
	}
	c.sending = func(body string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		try := s.tries[body]
		try.sendBegun = time.Now()
		if !s.last && (try.ended.IsZero() || try.succeeded) || !try.answered.IsZero() && try.answered.Before(time.Now()) {
			s.Errorf("%s is sent to the dead-letter queue: ended %t, succeeded %t, answered %v", body, !try.ended.IsZero(), try.succeeded, try.answered)
		}
	}
	c.sent = func(body string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.tries[body].confirmed = time.Now()
	}
	c.change = func(handle string, seconds int32) {
		s.mu.Lock()
		defer s.mu.Unlock()
		try := s.tries[strings.TrimPrefix(handle, "handle-")]
		if seconds < 1 || try.succeeded && !try.ended.After(try.answered) && !try.answered.IsZero() && !try.reported {
			s.Errorf("visibility of %s is changed to %d s: %+v", handle, seconds, try)
		}
		if !try.started.IsZero() && try.ended.IsZero() {
			s.Errorf("visibility of %s is changed, its handler runs", handle)
		}
	}
	return c
}

// checkSettled: each message whose handler was started is settled once, and with true only if the dead-letter queue has it.
func (s *storm) checkSettled() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for body, try := range s.tries {
		started := 0
		if !try.started.IsZero() {
			started = 1
		}
		if try.settled != started || try.settledDead > 0 && try.confirmed.IsZero() {
			s.Errorf("%s: started %d times, settled %d times, %d as dead-lettered", body, started, try.settled, try.settledDead)
		}
	}
}
