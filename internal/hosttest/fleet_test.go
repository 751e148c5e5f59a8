package hosttest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/limit"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// TestFleet runs fleets through disruptions of every kind. SEED=n runs the plan of one seed; SOAK=1 runs a million
// deliveries.
func TestFleet(t *testing.T) {
	runPlans(t, drawFleet, 36, deliveries, 1_000_000,
		workersKilled, workersStopped, workersFrozen, publishFailures, queueChanges, unsignedCalls, processExits,
		deadRejected, deadFailed, deadExpired, movedFailed, movedKilled)
}

// TestSimulation runs fleets that are the function alone, with many disruptions. SEED=n runs the plan of one seed; SOAK=1
// runs 100,000 invocations.
func TestSimulation(t *testing.T) {
	total := runPlans(t, drawFunction, 16, invocations, 100_000, killedInside, timedOut, responsesLost, throttled, atKills, expired)
	if total[repeats] > total[atKills]+total[expired] {
		t.Errorf("%d repeats, and only %d handlers ran when their processes died, or their leases ended", total[repeats], total[atKills]+total[expired])
	}
}

// runPlans runs the plans of the first seeds, and with SOAK=1 until there are soak of what is counted. Some of each variety
// must happen.
func runPlans(t *testing.T, draw func(uint64) *fleetPlan, seeds uint64, counted tallied, soak int, variety ...tallied) tally {
	from, enough := uint64(0), math.MaxInt
	if os.Getenv("SOAK") != "" {
		seeds, enough = 1<<32, soak
	}
	if s := os.Getenv("SEED"); s != "" {
		n := must.Get(strconv.ParseUint(s, 10, 64))(t)
		from, seeds, variety = n, 1, nil
	}
	total := tally{}
	for seed := from; seed < from+seeds && total[counted] < enough; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			p := draw(seed)
			defer func() {
				if t.Failed() {
					t.Log(p)
				}
			}()
			if p.perProcess > 1 {
				t.Setenv("AWS_LAMBDA_MAX_CONCURRENCY", strconv.Itoa(p.perProcess))
			}
			synctest.Test(t, func(t *testing.T) {
				for what, n := range simulateFleet(t, p).check() {
					total[what] += n
				}
			})
		})
	}
	t.Log(total)
	for _, what := range variety {
		if total[what] == 0 && !t.Failed() {
			t.Errorf("nothing was ever %s", what)
		}
	}
	return total
}

// fleet is the run of a fleetPlan.
type fleet struct {
	*fixture
	plan  *fleetPlan
	start time.Time
	pool  *pool // nil: no function
	byKey map[string]*eventPlan
	run   sync.WaitGroup // workers and publishers
	over  chan struct{}  // closed at the end

	complaints map[string]int         // by kind
	dead       map[string]bool        // events in the dead-letter queue; set by check
	deleted    []memsqs.QueuedMessage // with a dead-letter queue
	hooks      hookTally
	counter    limit.Counter // in memory

	mu        sync.Mutex
	nodes     map[*process]*node
	published map[string]bool
	tries     map[string]int            // by event: of the handler, without the unavailable ones
	receipts  map[string][]*receipt     // by message ID
	sends     map[time.Duration][]*node // of hosts to the dead-letter queue
	unheard   []window                  // receives that their processes gave up: SQS hands out messages to them all the same
	attempts  int                       // to invoke
	limits    limiterNotes
	tally     tally
}

func (f *fleet) now() time.Duration { return time.Since(f.start) }

// at waits for a time of the simulation. It reports false where the simulation ends before.
func (f *fleet) at(d time.Duration) bool {
	t := time.NewTimer(d - f.now())
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-f.over:
		return false
	}
}

// faulty returns the window of the fault that is open for a host now, or nil.
func (f *fleet) faulty(kind faultKind, host int) *window {
	now := f.now()
	for i := range f.plan.faults {
		if w := &f.plan.faults[i]; w.kind == kind && w.has(now, host) {
			return w
		}
	}
	return nil
}

func simulateFleet(t *testing.T, p *fleetPlan) *fleet {
	f := &fleet{
		plan: p, byKey: map[string]*eventPlan{}, over: make(chan struct{}), nodes: map[*process]*node{},
		published: map[string]bool{}, tries: map[string]int{}, receipts: map[string][]*receipt{}, sends: map[time.Duration][]*node{}, tally: tally{},
		counter: memstore.NewCounter(memstore.New()), limits: limiterNotes{starts: map[string][]*limited{}, owed: map[string][]time.Duration{}},
	}
	f.fixture = newFixture(t, setup{
		seed: p.seed, quiet: true, fifo: p.fifo, visibility: 6 * functionTimeout, maxReceives: p.receives,
		duplicates: p.duplicates, strict: p.strict, retention: p.retention,
	})
	if p.seed%4 == 0 { // it costs a fifth of the time
		f.log = slog.New(slog.NewTextHandler(noBodies{t}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	f.createLedger()
	f.checker.commits = p.inbox && p.disturbsRecords()
	for i := range p.events {
		f.byKey[p.events[i].name] = &p.events[i]
	}
	if p.replays > 0 {
		f.ddb.Set(fault.Plan{Seed: p.seed, Rules: []fault.Rule{
			{Prob: p.replays, Do: fault.Replay, Delay: 200 * time.Millisecond},
			{Prob: p.replays, Do: fault.Replay, Delay: 20 * time.Second},
			{Prob: p.replays / 4, Do: fault.Replay, Delay: 3 * time.Minute},
		}})
	}
	f.start = time.Now()
	stopFunction := f.startFunction()
	f.publish()
	f.run.Go(f.operate)
	for i := range p.workers {
		f.run.Go(func() { f.live(i) })
	}
	f.await()
	close(f.over)
	stopFunction()
	f.run.Wait()
	f.admin.kill()
	time.Sleep(15 * time.Minute) // what dead processes try again and again ends
	f.hooks.check(t)
	return f
}

// await waits until the events are done: until the queue is empty.
func (f *fleet) await() {
	for f.now() < f.plan.calm+f.plan.limit && !(f.allPublished() && len(f.sqs.Messages(f.url)) == 0) {
		time.Sleep(10 * time.Second)
	}
	time.Sleep(2 * time.Minute) // what is still under way would show
}

// handler returns the plan's handler in dedup, or in an inbox with its effect in the record's transaction.
func (f *fleet) handler(n *node) sqsonce.Handler {
	try := func(ctx context.Context, r *run) error {
		err := f.try(ctx, n, r)
		if !n.awake() {
			return errDead
		}
		return err
	}
	if !f.plan.inbox {
		return f.counted(n, f.limited(n, f.dedupHandler(n.process, try)))
	}
	store := must.Get(dynamostore.New(n.ddb, table))(f)
	inbox := must.Get(dynamostore.NewInbox(store, consumer, func(o *dedup.Options) { o.Logger = f.log }))(f)
	return f.counted(n, f.limited(n, f.checker.delivered(n.process, inbox.Handler(func(ctx context.Context, m *sqsonce.Message, tx *dynamostore.Tx) error {
		return f.checker.run(ctx, func(ctx context.Context, r *run) error {
			tx.Update(appendTo(f.lane(r.event), r.event))
			return try(ctx, r)
		})
	}))))
}

func (f *fleet) counted(n *node, h sqsonce.Handler) sqsonce.Handler {
	return func(ctx context.Context, m *sqsonce.Message) error {
		f.count(deliveries, 1)
		if f.plan.timeout > 0 {
			limited, cancel := context.WithTimeout(ctx, f.plan.timeout)
			defer cancel()
			ctx = limited
		}
		return h(ctx, m)
	}
}

// lane is what must have its effects in order: the group, or on a standard queue the event alone.
func (f *fleet) lane(event string) string {
	if f.fifo {
		return groupOf(event)
	}
	return event
}

var (
	errDeploy = errors.New("a bad deploy")
	errGone   = errors.New("the dependency is away")
	errFlaky  = errors.New("flaky")
)

// try is one run of the handler.
func (f *fleet) try(ctx context.Context, n *node, r *run) error {
	f.used(ctx)
	if f.faulty(dependencyAway, n.index) != nil {
		return sqsonce.Unavailable(errGone)
	}
	if f.faulty(dependencyAsks, n.index) != nil {
		return sqsonce.UnavailableUntil(errGone, func(context.Context) error {
			if f.faulty(dependencyAsks, n.index) != nil {
				return errGone
			}
			return nil
		})
	}
	if f.faulty(badDeploy, n.index) != nil {
		return errDeploy
	}
	e := f.byKey[r.event]
	f.mu.Lock()
	f.tries[e.name]++
	fails := f.tries[e.name] <= e.fails
	f.mu.Unlock()
	length := takes(e.takes)
	if fails {
		switch e.how {
		case withTimeout:
			length = takes(5 * time.Minute)
		case withDeaf, withLate:
			length = ignores(e.deaf)
		case withStuck:
			if f.now() < f.plan.calm {
				length = stuck
			}
		}
	}
	if err := length(ctx, r); err != nil {
		return err
	}
	switch {
	case !fails && e.reject:
		return sqsonce.Reject(errCard)
	case !fails, e.how == withLate:
		return nil
	case e.how == withExit:
		n.exit()
		return errDead
	case e.how == withPanic:
		return panics(ctx, r)
	case e.how == withGoexit:
		return exits(ctx, r)
	case e.how == withClaim:
		return sqsonce.Unavailable(errFlaky)
	case e.how == withQuestion:
		return sqsonce.UnavailableUntil(errFlaky, func(context.Context) error { return nil })
	case e.how == withPostpone:
		return sqsonce.Postpone(30*time.Second, errFlaky)
	case e.how == withRetryAfter:
		return sqsonce.RetryAfter(30*time.Second, errFlaky)
	}
	return errFlaky
}
