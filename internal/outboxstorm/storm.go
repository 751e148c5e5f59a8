package outboxstorm

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// World is an outbox and what its relays share, in the bubble of one run.
type World struct {
	// Source is the namespace of its events.
	Source string
	// Commit commits events of one group, which have consecutive numbers from first, in one transaction. It may be decided without
	// being visible as a whole: finish, if it is not nil, is called up to 20 s later.
	Commit func(es []fifo.Event, first int64) (finish func())
	// Open returns the store of a new process. If it is at the other end of a network, that is the process's: [Process.Through].
	Open func(p *Process) outbox.Store
	// Left returns the IDs of a group's events in the outbox, in their order.
	Left func(group string) []string
	// Calm ends the faults of the outbox. nil: it has none of its own.
	Calm func()
}

// Run has relays publish what writers commit while everything fails, lets one relay publish the rest in a calm world, and returns
// what is wrong then; "": nothing. It is called in a bubble.
func Run(ctx context.Context, p Plan, w World) (problem string) {
	s := &storm{
		plan: p, world: w, queue: memsqs.New(), under: &sync.WaitGroup{}, gone: make(map[string]bool), carried: make(map[string][]outbox.Entry),
	}
	defer s.queue.Close()
	if err := s.run(ctx); err != nil {
		return err.Error()
	}
	if len(s.problems) > 0 {
		return fmt.Sprintf("%s\n%+v", s.problems[0], p)
	}
	return ""
}

type storm struct {
	plan  Plan
	world World
	queue *memsqs.Server
	url   string
	under *sync.WaitGroup // late requests

	mu       sync.Mutex
	problems []string
	procs    []*Process
	pubs     []*fifo.Publisher
	gone     map[string]bool           // events that were seen to be deleted
	carried  map[string][]outbox.Entry // by the last transaction of each group
}

func (s *storm) problem(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

func (s *storm) group(g int) string { return fmt.Sprint("g", g) }

func (s *storm) run(ctx context.Context) error {
	out, err := testaws.SQS(s.queue).CreateQueue(ctx, &sqs.CreateQueueInput{
		QueueName: aws.String("orders.fifo"), Attributes: map[string]string{"FifoQueue": "true"},
	})
	if err != nil {
		return err
	}
	s.url = *out.QueueUrl
	s.queue.Set(fault.Plan{Seed: s.plan.Seed, Rules: s.rules()})
	var writers, relays sync.WaitGroup
	for g := range s.plan.Groups {
		writers.Go(func() { s.write(g) })
	}
	stormOver := make(chan struct{})
	for i := range s.plan.Relays {
		relays.Go(func() { s.relay(ctx, i, stormOver) })
	}
	operator, stopOperator := context.WithCancel(ctx)
	operated := make(chan struct{})
	go func() {
		defer close(operated)
		s.operate(operator)
	}()
	writers.Wait()
	time.Sleep(time.Duration(rand.New(rand.NewPCG(s.plan.Seed, 9)).Int64N(int64(30 * time.Minute))))
	// The world becomes calm; relays that are frozen thaw.
	s.queue.Set(fault.Plan{})
	if s.world.Calm != nil {
		s.world.Calm()
	}
	s.mu.Lock()
	for _, p := range s.procs {
		p.calm()
	}
	s.mu.Unlock()
	close(stormOver)
	relays.Wait()
	s.finish(ctx)
	s.under.Wait()
	time.Sleep(s.plan.Freeze + 10*time.Minute) // calls of frozen processes, and copies on their way, arrive
	stopOperator()
	<-operated
	s.check()
	closed, end := context.WithCancel(ctx)
	end()
	for _, p := range s.pubs {
		_ = p.Close(closed) // what is in flight is given up
	}
	return nil
}

// rules are SQS's own faults.
func (s *storm) rules() (rules []fault.Rule) {
	const op = "SendMessageBatch"
	if s.plan.Refusals > 0 {
		rules = append(rules, fault.Rule{Op: op, Prob: float64(s.plan.Refusals) / 100, Do: fault.FailEntries, Code: "InvalidMessageContents", Entries: []int{0}})
	}
	if s.plan.Throttle {
		rules = append(rules, fault.Rule{Op: op, Prob: 0.05, Do: fault.Error, Code: "ThrottlingException"})
	}
	return append(rules, fault.Rule{Op: op, Prob: 0.02, Do: fault.Replay, Delay: 7 * time.Minute})
}

// write commits the events of a group, some in one transaction, and some transactions take a while to be visible.
func (s *storm) write(g int) {
	rng := rand.New(rand.NewPCG(s.plan.Seed, uint64(g)))
	var finished sync.WaitGroup
	for n := 0; n < s.plan.Events; {
		first := n + 1
		var es []fifo.Event
		for range 1 + rng.IntN(3) {
			if n < s.plan.Events {
				n++
				es = append(es, event(s.group(g), n))
			}
		}
		d := time.Duration(0)
		if rng.IntN(4) == 0 {
			d = time.Duration(rng.Int64N(int64(20 * time.Second)))
		}
		ordered := make(chan struct{})
		finished.Go(func() {
			if s.plan.Defect == NoLock {
				close(ordered)
				time.Sleep(d)
			}
			finish := s.world.Commit(es, int64(first))
			s.carry(es, int64(first))
			if s.plan.Defect != NoLock {
				close(ordered)
			}
			time.Sleep(d)
			if finish != nil {
				finish()
			}
		})
		<-ordered
		time.Sleep(time.Duration(rng.Int64N(int64(time.Minute))))
	}
	finished.Wait()
}

// relay runs one process after the other.
func (s *storm) relay(ctx context.Context, i int, over <-chan struct{}) {
	rng := rand.New(rand.NewPCG(s.plan.Seed, 100+uint64(i)))
	for {
		select {
		case <-over:
			return
		default:
		}
		p, r := s.start(rng)
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan struct{})
		how := rng.IntN(4)
		go func() {
			defer close(ended)
			s.use(ctx, r, how)
		}()
		life := time.Duration(rng.Int64N(int64(10 * time.Minute)))
		if s.plan.Freeze > 0 && rng.IntN(2) == 0 {
			time.Sleep(life / 2)
			p.freeze(time.Duration(rng.Int64N(int64(s.plan.Freeze))))
		}
		timer := time.NewTimer(life)
		select {
		case <-timer.C:
		case <-over:
		}
		timer.Stop()
		if s.plan.Kills && rng.IntN(2) == 0 {
			p.kill()
		}
		cancel()
		<-ended
	}
}

// use publishes in one of four ways until ctx ends.
func (s *storm) use(ctx context.Context, r *outbox.Relay, how int) {
	if how == 3 { // Run, and doorbells of the same process
		var running sync.WaitGroup
		running.Go(func() { s.use(ctx, r, 0) })
		defer running.Wait()
		how = 1
	}
	if how == 0 {
		if err := r.Run(ctx); err != nil {
			s.problem("Run: %v", err)
		}
		return
	}
	for ctx.Err() == nil {
		short, cancel := context.WithTimeout(ctx, time.Minute)
		var names []string
		for g := range s.plan.Groups {
			names = append(names, s.group(g))
		}
		if how == 1 {
			_ = r.Drain(short, names...)
		} else {
			_, _ = r.Sweep(short)
		}
		cancel()
		time.Sleep(10 * time.Second)
	}
}

// start starts a process with a relay.
func (s *storm) start(rng *rand.Rand) (*Process, *outbox.Relay) {
	p := &Process{
		storm: s, reads: make(map[string]context.Context), pages: make(map[string]page), rng: rand.New(rand.NewPCG(rng.Uint64(), 1)),
	}
	p.Store = s.world.Open(p)
	quiet := slog.New(slog.DiscardHandler)
	pub, err := fifo.NewPublisher(testaws.SQS(p.Through(s.queue)), s.url, s.world.Source, func(o *fifo.Options) { o.Logger = quiet })
	if err != nil {
		panic(err)
	}
	r, err := outbox.NewRelay(p, pub, func(o *outbox.Options) {
		o.Page, o.Groups, o.Settle, o.Logger = s.plan.Page, s.plan.AtOnce, -1, quiet
	})
	if err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.procs, s.pubs = append(s.procs, p), append(s.pubs, pub)
	return p, r
}

// calmly starts a process that meets no fault.
func (s *storm) calmly() (*Process, *outbox.Relay) {
	p, r := s.start(rand.New(rand.NewPCG(1, 1)))
	p.calm()
	return p, r
}

// operate unparks what is parked, and watches that nothing that was deleted comes back.
func (s *storm) operate(ctx context.Context) {
	p, _ := s.calmly()
	store := p.Store
	was := make(map[string]bool)
	for ctx.Err() == nil {
		there := make(map[string]bool)
		for g := range s.plan.Groups {
			for _, id := range s.world.Left(s.group(g)) {
				there[id] = true
				if s.gone[id] {
					s.problem("%s is back in the outbox", id)
				}
			}
		}
		for id := range was {
			if !there[id] {
				s.gone[id] = true
			}
		}
		was = there
		parked, err := store.Parked(ctx, 100)
		for _, e := range parked {
			_ = store.Unpark(ctx, e)
		}
		_ = err // the outbox has faults of its own
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
		}
	}
}
