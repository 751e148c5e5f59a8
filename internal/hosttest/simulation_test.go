package hosttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/localstack/esm"
)

// TestSimulation runs the function with many disruptions. SOAK=1 runs 100,000 invocations; SEED=n repeats one plan.
func TestSimulation(t *testing.T) {
	seeds, want := uint64(16), int64(0)
	if os.Getenv("SOAK") != "" {
		seeds, want = 1<<32, 100_000
	}
	from := uint64(0)
	if s := os.Getenv("SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("SEED: %v", err)
		}
		from, seeds = n, 1
	}
	var total tally
	for seed := from; seed < from+seeds && (want == 0 || total.invocations < want); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			p := drawPlan(seed, 300)
			if p.perProcess > 1 {
				t.Setenv("AWS_LAMBDA_MAX_CONCURRENCY", strconv.Itoa(p.perProcess))
			}
			synctest.Test(t, func(t *testing.T) { total.add(simulate(t, p)) })
		})
	}
	t.Log(total)
	if total.repeats > total.atKills {
		t.Errorf("%d repeats, and only %d handlers ran when their processes died", total.repeats, total.atKills)
	}
	if seeds > 1 && min(total.killed, total.timedOut, total.failed, total.throttles, total.atKills, total.expired) == 0 {
		t.Error("some kind of disruption never happened")
	}
}

// simulation is the run of a plan.
type simulation struct {
	*fixture
	plan     plan
	pool     *pool
	attempts atomic.Int64 // to invoke
	hooks    hookTally

	mu    sync.Mutex
	tally tally
	rng   *rand.Rand // of the network
}

// maxLength is the most virtual time of a simulation. Most end within an hour. But a copy of an event that is in progress is
// delivered again after a delay that doubles with each receive, up to half a day.
const maxLength = 24 * time.Hour

func simulate(t *testing.T, p plan) tally {
	s := &simulation{plan: p, rng: rand.New(rand.NewPCG(p.seed, 0x6e6574))}
	s.fixture = newFixture(t, setup{
		seed: p.seed, quiet: true, fifo: p.fifo, visibility: 6 * functionTimeout, maxReceives: 1000, duplicates: 0.02,
	})
	if p.inbox {
		s.createLedger()
	}
	s.send(p.messages...)
	s.net.trip = s.drawTrip
	s.pool = &pool{perProcess: p.perProcess, newEnvironment: func() *environment {
		q := s.newProcess()
		return newEnvironment(t, q, s.handler(q), s.hooks.function, func(o *lambda.Options) { o.Client, o.DeadLetterQueue = q.sqs, s.dlq })
	}}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() {
		stopped <- esm.Run(ctx, s.admin.sqs, esm.Config{
			QueueURL: s.url, BatchSize: p.batch, MaximumConcurrency: p.concurrency, FunctionTimeout: functionTimeout,
			ReportBatchItemFailures: true, Logger: s.log,
		}, s.invoke)
	}()
	for _, o := range p.outages {
		time.AfterFunc(o.at, func() { s.net.queueUnavailableFor(o.length) })
	}
	for end := time.Now().Add(maxLength); len(s.sqs.Messages(s.url)) > 0 && time.Now().Before(end); {
		time.Sleep(time.Minute)
	}
	time.Sleep(5 * time.Minute) // abandoned handlers end
	cancel()
	if err := <-stopped; err != nil {
		t.Errorf("mapping: %v", err)
	}
	s.pool.kill()
	s.admin.kill()
	s.hooks.check(t)
	return s.check()
}

// drawTrip gives each request and each response some milliseconds, in which a process can die, and loses one response in a
// hundred.
func (s *simulation) drawTrip() trip {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms := func() time.Duration { return time.Duration(1+s.rng.IntN(15)) * time.Millisecond }
	return trip{there: ms(), back: ms(), arrives: s.rng.IntN(2) == 0, lost: s.rng.IntN(100) == 0}
}

var errResponseLost = errors.New("the response was lost")

// invoke is an esm.Invoker that applies the plan's disruption to each invocation.
func (s *simulation) invoke(ctx context.Context, event []byte) ([]byte, error) {
	d := s.plan.invocations[int(s.attempts.Add(1)-1)%len(s.plan.invocations)]
	if d.kind == throttle {
		s.count(func(t *tally) { t.throttles++ })
		return nil, esm.ErrThrottled
	}
	s.count(func(t *tally) { t.invocations++ })
	e := s.pool.take()
	defer s.pool.put(e)
	if d.kind == killed {
		time.AfterFunc(d.after, e.kill)
	}
	response, err := e.invoke(ctx, event)
	switch {
	case errors.Is(err, errKilled):
		s.count(func(t *tally) { t.killed++ })
	case d.kind == failing:
		s.count(func(t *tally) { t.failed++ })
		return nil, errResponseLost
	case d.kind == stalled:
		s.count(func(t *tally) { t.timedOut++ })
		<-ctx.Done()
		e.kill()
		return nil, context.Cause(ctx)
	}
	return response, err
}

// handler returns the plan's handler in dedup, or in an inbox with its effect in the record's transaction.
func (s *simulation) handler(p *process) sqsonce.Handler {
	play := func(ctx context.Context, r *run) error {
		steps := s.plan.events[r.event]
		st := steps[min(r.n, len(steps))-1]
		length := takes(st.takes)
		if st.ignores {
			length = ignores(st.takes)
		}
		if err := length(ctx, r); err != nil || st.end == nil {
			return err
		}
		return st.end(ctx, r)
	}
	if !s.plan.inbox {
		return s.dedupHandler(p, play)
	}
	store, err := dynamostore.New(p.ddb, table)
	if err != nil {
		s.Fatal(err)
	}
	inbox, err := dynamostore.NewInbox(store, consumer, func(*dedup.Options) {})
	if err != nil {
		s.Fatal(err)
	}
	return s.checker.delivered(p, inbox.Handler(func(ctx context.Context, m *sqsonce.Message, tx *dynamostore.Tx) error {
		return s.checker.run(ctx, func(ctx context.Context, r *run) error {
			tx.Update(addOne(r.event))
			return play(ctx, r)
		})
	}))
}
