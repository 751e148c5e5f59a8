package hosttest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/counting"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/limit"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// tenants is a queue of tenants under a limit for each: some noisy ones, whose backlogs last longer than the test, and 50 quiet ones, which
// send 10 messages a second together.
type tenants struct {
	fair    bool // the messages have message groups
	workers int
	noisy   int
	rate    int  // starts a second for each tenant
	delayed bool // sqsworker.Options.Delayed is as large as the backlog
	killed  bool
	down    bool // the counter, from downFrom to downTo
}

const (
	quietTenants = 50
	quietRate    = 10 // messages a second, of all quiet tenants
	tenantTakes  = 200 * time.Millisecond
	killEvery    = 20 * time.Second

	downFrom, downTo = 2 * time.Minute, 3 * time.Minute
)

func (c tenants) String() string {
	kind := "plain"
	if c.fair {
		kind = "fair"
	}
	s := fmt.Sprintf("%s, %d workers, %d noisy at %d a second", kind, c.workers, c.noisy, c.rate)
	if c.delayed {
		s += ", delayed"
	}
	if c.killed {
		s += ", killed"
	}
	if c.down {
		s += ", counter down"
	}
	return s
}

// limits is a run of tenants.
type limits struct {
	*fixture
	tenants
	counter limit.Counter
	backlog int           // of all noisy tenants together
	lasts   time.Duration // below the five minutes after which SQS takes a tenant that sends nothing for a quiet one
	settled time.Duration // from when on the bounds hold
	begun   time.Time

	mu     sync.Mutex
	sent   map[string]time.Time       // of quiet messages, by ID
	ran    map[string]time.Duration   // how long a quiet message waited for its first run
	taken  map[string]bool            // quiet messages that a killed worker had received
	starts map[string][]time.Duration // of the noisy tenants' handlers
	most   int                        // receives of a message that ran
	held   int64                      // the most that a worker held
}

// TestBoundLimits: tenants at their limits have exactly their rates, and delay no other tenant. On a fair queue this holds for up to
// four of them, and on any queue with Options.Delayed beyond the backlog. No message is dead-lettered without a run.
func TestBoundLimits(t *testing.T) {
	t.Parallel()
	all := []tenants{
		{fair: true, workers: 1, noisy: 4, rate: 2},
		{fair: true, workers: 5, noisy: 1, rate: 10, killed: true},
		{delayed: true, workers: 1, noisy: 1, rate: 10},
		{delayed: true, workers: 5, noisy: 100, rate: 2},
		{fair: true, workers: 1, noisy: 1, rate: 10},
		{fair: true, workers: 5, noisy: 1, rate: 10},
		{fair: true, workers: 5, noisy: 4, rate: 2},
		{delayed: true, workers: 5, noisy: 1, rate: 10},
		{delayed: true, workers: 5, noisy: 1, rate: 10, killed: true},
		{fair: true, workers: 5, noisy: 1, rate: 10, down: true},
		{fair: true, workers: 1, noisy: 1, rate: 10, down: true},
		{fair: true, workers: 2, noisy: 1, rate: 10, down: true},
		{delayed: true, workers: 1, noisy: 1, rate: 10, down: true},
	}
	if testing.Short() {
		all = all[:4]
		all[3].noisy = 30
	}
	for _, c := range all {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, c.run)
		})
	}
}

func (c tenants) run(t *testing.T) {
	x := &limits{
		fixture: newFixture(t, setup{quiet: true, visibility: 30 * time.Second, maxReceives: 5}),
		tenants: c, counter: memstore.NewCounter(memstore.New()), backlog: 100_000, lasts: 4 * time.Minute,
		sent: map[string]time.Time{}, ran: map[string]time.Duration{}, starts: map[string][]time.Duration{}, taken: map[string]bool{},
	}
	if testing.Short() {
		x.backlog, x.lasts = max(5_000, c.noisy*c.rate*100), 80*time.Second
	}
	if c.delayed { // what is delayed is received first, at least 1,000 messages a second in all
		x.settled = time.Duration(x.backlog/1000)*time.Second + 10*time.Second
	}
	for i := range x.backlog / 10 {
		x.sendTen("noisy" + strconv.Itoa(i%c.noisy))
	}
	x.begun = time.Now()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var all sync.WaitGroup
	for i := range c.workers {
		all.Go(func() { x.work(ctx, i) })
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range x.lasts / time.Second * quietRate {
		time.Sleep(time.Second / quietRate)
		x.sendQuiet("quiet" + strconv.Itoa(rng.IntN(quietTenants)))
	}
	stop()
	x.check()
	all.Wait()
	x.admin.kill()
}

// sendTen sends ten messages of a tenant, whose name is their body.
func (x *limits) sendTen(tenant string) {
	in := &sqs.SendMessageBatchInput{QueueUrl: &x.url}
	for i := range 10 {
		e := sqstypes.SendMessageBatchRequestEntry{Id: ptr(strconv.Itoa(i)), MessageBody: &tenant}
		if x.fair {
			e.MessageGroupId = &tenant
		}
		in.Entries = append(in.Entries, e)
	}
	must.Get(x.admin.sqs.SendMessageBatch(x.Context(), in))(x)
}

func (x *limits) sendQuiet(tenant string) {
	in := &sqs.SendMessageInput{QueueUrl: &x.url, MessageBody: &tenant}
	if x.fair {
		in.MessageGroupId = &tenant
	}
	x.mu.Lock() // before its handler asks
	defer x.mu.Unlock()
	out := must.Get(x.admin.sqs.SendMessage(x.Context(), in))(x)
	x.sent[*out.MessageId] = time.Now()
}

func ptr[T any](v T) *T { return &v }

// work is the processes of worker i, one after another, each with a limiter of its own.
func (x *limits) work(ctx context.Context, i int) {
	kills := time.Duration(i) * killEvery // one of the workers each killEvery
	for ctx.Err() == nil {
		p := x.newProcess()
		l := must.Get(limit.New([]limit.Rule{{
			Name: "tenant", Key: func(m *sqsonce.Message) string { return string(m.Body) },
			Plan: limit.Plan{Rate: limit.Rate{N: x.rate}}, Counter: processCounter{x.counter, x, p},
		}}, func(o *limit.Options) { o.Logger = x.log }))(x)
		k := must.Get(sqsworker.New(p.sqs, x.url, limit.Handler(l, x.handler(p)), func(o *sqsworker.Options) {
			o.Logger, o.MaxInFlight = x.log, 30
			if x.delayed {
				o.Delayed = x.backlog
			}
		}))(x)
		live, end := context.WithCancel(ctx)
		if x.killed {
			kills += time.Duration(x.workers) * killEvery
			time.AfterFunc(kills-time.Since(x.begun), func() { p.kill(); end() })
		}
		go x.watch(live, k)
		if err := k.Run(live); err != nil && p.alive() {
			x.Errorf("Run: %v", err)
		}
		end()
		p.kill()
		must.Do(x, l.Close(context.Background()))
	}
}

// processCounter is a counter that a dead process can't ask.
type processCounter struct {
	limit.Counter
	x *limits
	p *process
}

func (c processCounter) Take(ctx context.Context, t counting.Take) (counting.Grant, error) {
	if err := c.fails(); err != nil {
		return counting.Grant{}, err
	}
	return c.Counter.Take(ctx, t)
}

func (c processCounter) Line(ctx context.Context, key string, n int, step time.Duration) (time.Duration, error) {
	if err := c.fails(); err != nil {
		return 0, err
	}
	return c.Counter.Line(ctx, key, n, step)
}

func (c processCounter) fails() error {
	switch {
	case !c.p.alive():
		return errDead
	case c.x.isDown(time.Since(c.x.begun)):
		return errUnavailable
	}
	return nil
}

func (x *limits) isDown(at time.Duration) bool { return x.down && at >= downFrom && at < downTo }

func (x *limits) handler(p *process) sqsonce.Handler {
	return func(_ context.Context, m *sqsonce.Message) error {
		if !p.alive() {
			return errDead
		}
		x.start(m)
		if !p.sleep(tenantTakes) {
			return errDead
		}
		return nil
	}
}

func (x *limits) start(m *sqsonce.Message) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.most = max(x.most, m.ReceiveCount)
	if at, quiet := x.sent[m.ID]; !quiet {
		x.starts[string(m.Body)] = append(x.starts[string(m.Body)], time.Since(x.begun))
	} else if _, again := x.ran[m.ID]; !again {
		x.ran[m.ID] = time.Since(at)
		x.taken[m.ID] = m.ReceiveCount > 1
	}
}

// watch notes how many messages a worker holds.
func (x *limits) watch(ctx context.Context, k *sqsworker.Worker) {
	for ctx.Err() == nil {
		x.mu.Lock()
		x.held = max(x.held, k.Stats().Held)
		x.mu.Unlock()
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// check is called at the end of the last second.
func (x *limits) check() {
	x.mu.Lock()
	defer x.mu.Unlock()
	var waits, waitsDown []time.Duration
	for id, at := range x.sent {
		if at.Sub(x.begun) < x.settled {
			continue
		}
		wait, ran := x.ran[id]
		if !ran {
			wait = time.Since(at)
		}
		if x.killed && (x.taken[id] || !ran) { // its visibility timeout had to end
			if wait > 32*time.Second {
				x.Errorf("a quiet message waits %s, want 32 s at most", wait)
			}
			continue
		}
		if x.isDown(at.Sub(x.begun)) {
			waitsDown = append(waitsDown, wait)
			continue
		}
		waits = append(waits, wait)
	}
	slices.Sort(waits)
	p50, p99 := waits[len(waits)/2], waits[len(waits)*99/100]
	if p50 > 300*time.Millisecond || p99 > time.Second {
		x.Errorf("quiet messages wait %s, 1 of 100 longer than %s, want 0.3 s and 1 s", p50, p99)
	}
	x.checkDown(waitsDown)
	least := 1.0
	for i := range x.noisy {
		tenant := "noisy" + strconv.Itoa(i)
		least = min(least, x.part(tenant))
		x.checkRate(tenant)
	}
	if x.held > 120 {
		x.Errorf("a worker held %d messages, want 120 at most", x.held)
	}
	if dead := x.sqs.Messages(x.dlq); len(dead) > 0 {
		x.Errorf("%d messages are in the dead-letter queue, the first one after %d receives", len(dead), dead[0].ReceiveCount)
	}
	x.Logf("quiet p50 %s, p99 %s, most %s; noisy %.3f at least; most receives %d, most held %d", p50, p99, waits[len(waits)-1], least, x.most, x.held)
}

// checkDown checks how long quiet messages wait that are sent while the counter is down: their keys get a fiftieth of their rate in each
// process, or a tenth in all of them. A message waits for those of its tenant before it, and where it was received they may be many.
func (x *limits) checkDown(waits []time.Duration) {
	if len(waits) == 0 {
		return
	}
	slices.Sort(waits)
	p90, most := waits[len(waits)*9/10], waits[len(waits)-1]
	if p90 > 8*time.Second || most > 45*time.Second {
		x.Errorf("while the counter is down 1 of 10 quiet messages waits longer than %s, one %s, want 8 s and 45 s", p90, most)
	}
	x.Logf("while the counter is down: quiet p90 %s, most %s", p90, most)
}

// part is which part of its rate a tenant had, and checks it. The first ten seconds have its burst.
func (x *limits) part(tenant string) float64 {
	if x.down {
		return x.partOf(tenant, downFrom, downTo, 0.95, 1.1)
	}
	return x.partOf(tenant, max(x.settled, 10*time.Second), x.lasts, 0.97, 1)
}

func (x *limits) partOf(tenant string, from, to time.Duration, least, most float64) float64 {
	n, rate := 0, float64(x.rate)*(to-from).Seconds()
	for _, at := range x.starts[tenant] {
		n += count(at > from && at <= to)
	}
	if float64(n) < least*rate-1 || float64(n) > most*rate+1 {
		x.Errorf("%s has %d starts from %s to %s, want %g to %g of %.0f", tenant, n, from, to, least, most, rate)
	}
	return float64(n) / rate
}

// checkRate checks that in any T at most rate x (T + 1 s) + burst handlers of the tenant have started. While the counter is down it is
// 1.1 times the rate, and a start more for each process. When it answers again, the first process that asks has all of the rate, and
// each other one goes on with its share until it asks, which takes 5 s at most.
func (x *limits) checkRate(tenant string) {
	starts := x.starts[tenant]
	slices.Sort(starts)
	if x.down {
		const asks = 5 * time.Second
		between := func(from, to time.Duration) []time.Duration {
			return slices.DeleteFunc(slices.Clone(starts), func(at time.Duration) bool { return at < from || at > to })
		}
		x.checkStarts(tenant, between(0, downTo), 1.1*float64(x.rate), x.workers)
		others := x.rate * int(asks.Seconds()) * (x.workers - 1) / x.workers
		x.checkStarts(tenant, starts, 1.1*float64(x.rate), x.workers+others)
		x.checkStarts(tenant, between(downTo+asks+time.Second, x.lasts), float64(x.rate), 0)
		starts = between(0, downFrom)
	}
	x.checkStarts(tenant, starts, float64(x.rate), 0)
}

func (x *limits) checkStarts(tenant string, starts []time.Duration, rate float64, more int) {
	bound := float64(2*x.rate + more) // a second's starts, and a burst, which is those of another second
	most := 0.0                       // of behind, until now
	for i, at := range starts {
		behind := rate*at.Seconds() - float64(i) // by how many starts the tenant is behind its rate since the beginning
		most = max(most, behind)
		if over := most - behind + 1; over > bound+1e-6 {
			x.Errorf("%s: by %s there are %.1f starts more than %g a second give in some time before, want %g at most", tenant, at, over, rate, bound)
			return
		}
	}
}
