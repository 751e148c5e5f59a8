package hosttest

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// crashing is a worker whose process dies when it runs a poison message, and is started again.
type crashing struct {
	*fixture
	crash  crash
	poison string
	lives  context.Context // until the end

	mu    sync.Mutex
	kills int
	done  map[string]int // receive count of events that are done
}

// handler is the handler of a process, with a record for each event.
func (c *crashing) handler(p *process) sqsonce.Handler {
	store := must.Get(dynamostore.New(p.ddb, table, func(o *dynamostore.Options) { o.Logger = c.log }))(c)
	once := must.Get(dedup.New(store, consumer, func(o *dedup.Options) { o.Logger = c.log }))(c)
	return once.Handler(func(_ context.Context, m *sqsonce.Message) error { return c.handle(p, m) })
}

// live runs processes one after the other.
func (c *crashing) live() {
	for !c.ended() {
		p := c.newProcess()
		k := must.Get(sqsworker.New(p.sqs, c.url, c.handler(p), func(o *sqsworker.Options) { o.Logger = c.log }))(c)
		ctx, cancel := context.WithCancel(context.Background())
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			_ = k.Run(ctx) // of a process that died it cannot end well
		}()
		for p.alive() && !c.ended() {
			time.Sleep(time.Second)
		}
		cancel()
		<-stopped
		p.kill()
		time.Sleep(2 * time.Second)
	}
}

func (c *crashing) ended() bool { return c.lives.Err() != nil }

func (c *crashing) handle(p *process, m *sqsonce.Message) error {
	event := m.Attributes[sqsonce.AttrEventID].String
	c.mu.Lock()
	kills := event == c.poison && (c.crash.times == 0 || c.kills < c.crash.times)
	if kills {
		c.kills++
	}
	c.mu.Unlock()
	if kills {
		p.sleep(cmp.Or(c.crash.after, 100*time.Millisecond))
		p.kill()
		return errDead
	}
	if !p.sleep(c.crash.takes) {
		return errDead
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done[event] = max(c.done[event], m.ReceiveCount)
	return nil
}

// liveFunction runs a mapping and processes of a function.
func (c *crashing) liveFunction() {
	all := &pool{newEnvironment: func() *environment {
		p := c.newProcess()
		return newEnvironment(c.T, p, c.handler(p), func(o *lambda.Options) {
			if o.Logger = c.log; !c.crash.noClient {
				o.Client = p.sqs
			}
		})
	}}
	must.Do(c, esm.Run(c.lives, c.admin.sqs, esm.Config{
		QueueURL: c.url, FunctionTimeout: 4 * time.Minute, MaximumConcurrency: 2, ReportBatchItemFailures: true, Logger: c.log,
	}, all.invoke))
	all.kill()
}

// crash is a case of TestCrashingMessage.
type crash struct {
	kind        kind
	maxReceives int
	hosts       int
	takes       time.Duration // of the others

	function, noClient bool
	behind             int           // messages behind the head of each group; the head of one kills its process
	after              time.Duration // it has run for so long. Default: 100 ms
	times              int           // it kills so many processes, and then succeeds. 0: always
	refuses            bool          // the dead-letter queue
	load               int           // further messages, one a second, each in its own group
}

// TestCrashingMessage: a message kills its process each time it runs. It goes to the dead-letter queue alone. All that was received with
// it is done, also what is behind it in its group.
func TestCrashingMessage(t *testing.T) {
	t.Parallel()
	const quick, slow = 200 * time.Millisecond, 10 * time.Minute
	all := []crash{
		{kind: standard, maxReceives: 3, hosts: 1, takes: quick, function: true},
		{kind: standard, maxReceives: 5, hosts: 1, takes: 5 * time.Second, function: true},
		{kind: fifo, maxReceives: 3, hosts: 2, takes: quick, function: true},
		{kind: standard, maxReceives: 5, hosts: 1, takes: 5 * time.Second, function: true, noClient: true},

		{kind: fifo, maxReceives: 3, hosts: 1, takes: quick, behind: 9},
		{kind: fifo, maxReceives: 3, hosts: 5, takes: 3 * time.Second, behind: 5},
		{kind: fifo, maxReceives: 5, hosts: 3, takes: quick, behind: 5, load: 1500},
		{kind: fifo, maxReceives: 5, hosts: 1, takes: slow, behind: 5, after: time.Minute, load: 10},
		{kind: fifo, maxReceives: 3, hosts: 1, takes: slow, behind: 2, after: time.Minute, load: 10},
		{kind: standard, maxReceives: 3, hosts: 1, takes: slow, after: time.Minute, load: 10},
		{kind: fifo, maxReceives: 5, hosts: 1, takes: quick, behind: 9, refuses: true},
		{kind: fifo, maxReceives: 5, hosts: 1, takes: quick, behind: 5, times: 2},
		{kind: fifo, maxReceives: 3, hosts: 1, takes: quick, behind: 9, function: true},
		{kind: fifo, maxReceives: 5, hosts: 2, takes: 3 * time.Second, behind: 5, function: true},
		{kind: fifo, maxReceives: 5, hosts: 1, takes: quick, behind: 9, function: true, refuses: true},
		{kind: fifo, maxReceives: 5, hosts: 1, takes: quick, behind: 5, function: true, times: 2},
	}
	for n := range 32 { // all of these with each other
		c := crash{kind: []kind{standard, fifo}[n%2], maxReceives: 3 + n/2%2*2, hosts: 1 + n/4%2*4}
		c.takes = []time.Duration{quick, 5 * time.Second, time.Minute, slow}[n/8]
		all = append(all, c)
	}
	for _, c := range all {
		must.RunParallel(t, fmt.Sprintf("%+v", c), func(t *testing.T) { c.check(t) })
	}
}

func (c crash) check(t *testing.T) {
	visibility := 30 * time.Second
	if c.function {
		visibility = 5 * time.Minute
	}
	ctx, end := context.WithCancel(context.Background())
	w := &crashing{
		fixture: newFixture(t, setup{fifo: c.kind == fifo, visibility: visibility, maxReceives: c.maxReceives, quiet: true}),
		crash:   c, poison: fmt.Sprintf("g%d-0", 1+10*(c.hosts-1)/(1+c.behind)), lives: ctx, done: map[string]int{},
	}
	w.net.dlqRefuses = c.refuses
	live := w.live
	if c.function {
		live = w.liveFunction
	}
	var lives sync.WaitGroup
	for range c.hosts {
		lives.Go(live)
	}
	var all []message
	for n := range 30 * c.hosts {
		all = append(all, message{name: fmt.Sprintf("g%d-%d", n/(1+c.behind), n%(1+c.behind))})
	}
	for n := range c.load + 1 {
		if n == c.load/10 {
			w.send(all...)
		}
		w.send(message{name: fmt.Sprintf("h%d-0", n)})
		time.Sleep(time.Second)
	}
	time.Sleep(time.Hour + 20*c.takes)
	end()
	lives.Wait()
	w.admin.kill()

	want, least := len(all)+c.load, c.maxReceives
	switch {
	case c.behind > 0:
		least = max(2, c.maxReceives-2)
	case c.noClient: // it fails unrun where others are in its batch
		least--
	}
	if c.times > 0 {
		want, least = want+1, c.times
	}
	if len(w.done) != want {
		t.Errorf("%d of %d done", len(w.done), want)
	}
	most := 3
	if c.behind > 0 { // those behind a head are received with it
		most = min(c.maxReceives, 4)
	}
	byReceives := map[int]int{}
	for event, receives := range w.done {
		if byReceives[receives]++; receives > most && !c.refuses {
			t.Errorf("%s was done in its %d. receive, want the %d. at the latest", event, receives, most)
		}
	}
	t.Logf("%d processes killed; messages done, by their receives: %v", w.kills, byReceives)
	if w.kills < least {
		t.Errorf("%d processes killed, want %d at least", w.kills, least)
	}
	dead := 0
	for _, m := range w.sqs.Messages(w.dlq) {
		dead++
		if e := m.Attributes[sqsonce.AttrEventID]; e != w.poison || c.times > 0 {
			t.Errorf("in the dead-letter queue: %s, received %d times", e, m.ReceiveCount)
		}
	}
	if c.times == 0 && dead != 1 {
		t.Errorf("%d dead-lettered, want the poison", dead)
	}
	for _, m := range w.sqs.Messages(w.url) {
		t.Errorf("left: %s, received %d times", m.Attributes[sqsonce.AttrEventID], m.ReceiveCount)
	}
}
