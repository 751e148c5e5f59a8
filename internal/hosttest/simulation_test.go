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

// TestSimulation runs the function under fire. SOAK=1 goes on to 100,000 invocations; SEED=n runs one plan again.
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
	if seeds > 1 && min(total.killed, total.timedOut, total.failed, total.throttles, total.atKills, total.ghosts) == 0 {
		t.Error("something that should go wrong never did")
	}
}

// simulation is a plan under way.
type simulation struct {
	*world
	plan  plan
	pool  *pool
	tries atomic.Int64 // to invoke

	mu    sync.Mutex
	tally tally
	rng   *rand.Rand // of the network
}

// patience is how long a run may take, in its own time. Most settle within the hour; but a copy of an event that is in
// progress comes back after a delay that doubles with each receive, up to half a day.
const patience = 24 * time.Hour

func simulate(t *testing.T, p plan) tally {
	s := &simulation{plan: p, rng: rand.New(rand.NewPCG(p.seed, 0x6e6574))}
	s.world = newWorld(t, setup{
		seed: p.seed, quiet: true, fifo: p.fifo, visibility: 6 * functionTimeout, maxReceives: 1000, duplicates: 0.02,
	})
	if p.inbox {
		s.createLedger()
	}
	s.send(p.messages...)
	s.net.trip = s.drawTrip
	s.pool = &pool{perProcess: p.perProcess, newEnvironment: func() *environment {
		q := s.newProcess()
		return newEnvironment(t, q, s.handler(q), func(o *lambda.Options) { o.Client, o.DeadLetterQueue = q.sqs, s.dlq })
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
		time.AfterFunc(o.at, func() { s.net.queueOutFor(o.length) })
	}
	for end := time.Now().Add(patience); len(s.sqs.Messages(s.url)) > 0 && time.Now().Before(end); {
		time.Sleep(time.Minute)
	}
	time.Sleep(5 * time.Minute) // what was abandoned ends
	cancel()
	if err := <-stopped; err != nil {
		t.Errorf("mapping: %v", err)
	}
	s.pool.kill()
	s.admin.kill()
	return s.verdict()
}

// drawTrip gives each request and answer some milliseconds, in which a process can die, and loses an answer in a hundred.
func (s *simulation) drawTrip() trip {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms := func() time.Duration { return time.Duration(1+s.rng.IntN(15)) * time.Millisecond }
	return trip{there: ms(), back: ms(), arrives: s.rng.IntN(2) == 0, lost: s.rng.IntN(100) == 0}
}

var errLostAnswer = errors.New("the answer was lost")

// invoke is an esm.Invoker that does to each invocation what the plan says.
func (s *simulation) invoke(ctx context.Context, event []byte) ([]byte, error) {
	f := s.plan.invocations[int(s.tries.Add(1)-1)%len(s.plan.invocations)]
	if f.kind == throttle {
		s.count(func(t *tally) { t.throttles++ })
		return nil, esm.ErrThrottled
	}
	s.count(func(t *tally) { t.invocations++ })
	e := s.pool.take()
	defer s.pool.put(e)
	if f.kind == killed {
		time.AfterFunc(f.after, e.kill)
	}
	response, err := e.invoke(ctx, event)
	switch {
	case errors.Is(err, errKilled):
		s.count(func(t *tally) { t.killed++ })
	case f.kind == failing:
		s.count(func(t *tally) { t.failed++ })
		return nil, errLostAnswer
	case f.kind == stalled:
		s.count(func(t *tally) { t.timedOut++ })
		<-ctx.Done()
		e.kill()
		return nil, context.Cause(ctx)
	}
	return response, err
}

// handler is the plan's, guarded by a record, or by an inbox with its effect in the record's transaction.
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
		return s.guarded(p, play)
	}
	store, err := dynamostore.New(p.ddb, table)
	if err != nil {
		s.Fatal(err)
	}
	inbox, err := dynamostore.NewInbox(store, consumer, func(*dedup.Options) {})
	if err != nil {
		s.Fatal(err)
	}
	return s.witness.around(p, inbox.Handler(func(ctx context.Context, m *sqsonce.Message, tx *dynamostore.Tx) error {
		return s.witness.watch(ctx, func(ctx context.Context, r *run) error {
			tx.Update(addOne(r.event))
			return play(ctx, r)
		})
	}))
}
