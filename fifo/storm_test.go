package fifo_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/fifokit"
	"github.com/sqsonce/sqsonce/internal/proof/netfault"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// TestStorm: producers publish with every method, under contexts that end at any time, and publish again what failed until
// all is sent. What an error says of an event is true when it is said; in the end each event is in the queue once, in the
// order of its group; no call outlasts its context.
func TestStorm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) { drawStorm(rt, t, shortFault, &storm{}) })
}

// drawStorm draws the rest of a storm, and runs it.
func drawStorm(rt *rapid.T, t *testing.T, rule func(*rapid.T) fault.Rule, s *storm) {
	s.seed = rapid.Uint64().Draw(rt, "seed")
	s.groups = rapid.IntRange(1, 6).Draw(rt, "groups")
	s.events = rapid.IntRange(1, 15).Draw(rt, "events of each")
	s.faults = rapid.SliceOfN(rapid.Custom(rule), 0, 8).Draw(rt, "faults")
	s.opts = fifo.Options{
		MaxRequests: rapid.IntRange(1, 4).Draw(rt, "in flight"),
		MaxMessages: rapid.IntRange(1, 20).Draw(rt, "messages"),
		Linger:      rapid.SampledFrom([]time.Duration{-1, 0, time.Second}).Draw(rt, "linger"),
	}
	if s.forwards || rapid.Bool().Draw(rt, "hooks") {
		s.hooks = &watched{}
		s.hooks.option(&s.opts)
	}
	synctest.Test(t, s.run)
	if len(s.problems) > 0 {
		rt.Fatalf("%s\n%+v", s.problems[0], s.faults)
	}
}

// The same over TCP, through a proxy that loses, delays and doubles what passes, breaks all connections and stalls.
func TestStormOverTCP(t *testing.T) {
	t.Parallel()
	srv := memsqs.New()
	t.Cleanup(srv.Close)
	web := httptest.NewServer(srv)
	t.Cleanup(web.Close)
	network := proxy(t, web.Listener.Addr().String())
	network.Set(netfault.Plan{LoseRequest: 20, LoseReply: 10, Delay: 10, Double: 10, MaxDelay: 2 * time.Second})
	transport := &http.Transport{MaxIdleConnsPerHost: 10, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", network.Addr)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	x := &fixture{T: t, srv: srv, sqs: testaws.SQS(srv), sent: &recorder{Client: testaws.SQS(transport)}}
	x.url = testaws.Queue(x, x.sqs, orders, nil)
	s := storm{seed: rand.Uint64(), groups: 8, events: 15, slow: true, x: x}
	s.p = x.publisher(func(o *fifo.Options) { fifo.SetAttemptTimeout(o, time.Second) })
	ended := make(chan struct{})
	broken := make(chan struct{})
	go func() {
		defer close(broken)
		for n := 0; ; n++ {
			select {
			case <-ended:
				return
			case <-time.After(500 * time.Millisecond):
			}
			if n%2 == 0 {
				network.Cut()
				network.Mend()
			} else {
				network.Stall()
				time.Sleep(100 * time.Millisecond)
				network.Resume()
			}
		}
	}()
	s.play()
	close(ended)
	<-broken
	time.Sleep(3 * time.Second) // delayed copies arrive
	s.checkQueue()
	for _, problem := range s.problems {
		t.Error(problem)
	}
}

// shortFault returns a fault of one to three requests, or a refusal.
func shortFault(rt *rapid.T) fault.Rule {
	r := transientFault(rt)
	if refusal := rapid.SampledFrom([]string{"", "AccessDenied"}).Draw(rt, "refusal"); refusal != "" && r.Do == fault.Error && !r.After {
		r.Code = refusal
	}
	if r.Do == fault.FailEntries {
		r.Code = rapid.SampledFrom([]string{r.Code, "InvalidMessageContents"}).Draw(rt, "refused or not")
	}
	return r
}

type storm struct {
	seed           uint64
	groups, events int
	faults         []fault.Rule
	opts           fifo.Options

	x  *fixture
	p  *fifo.Publisher
	mu sync.Mutex

	lane     fifokit.Lane // of all groups
	hooks    *watched     // nil: none
	problems []string
	slow     bool             // real time: a call may take any time on a busy machine
	once     bool             // what failed is not published again
	results  map[string]error // by ID, if once
	forwards bool             // see storm.forward
}

func (s *storm) problem(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

func (s *storm) run(t *testing.T) {
	s.x = newFixture(t, orders, nil)
	defer s.x.srv.Close()
	s.x.srv.Set(fault.Plan{Rules: s.faults})
	s.p = s.x.publisher(func(o *fifo.Options) { *o = s.opts })
	s.results = map[string]error{}
	s.play()
	synctest.Wait()
	if !s.p.Idle() {
		s.problem("the publisher is not idle")
	}
	time.Sleep(2 * time.Minute) // delayed copies arrive
	s.checkQueue()
	if w := s.hooks; w != nil && (len(w.answers) != len(w.accepted) || len(w.problems) > 0) {
		s.problem("hooks: %d events accepted, %d answered, %v", len(w.accepted), len(w.answers), w.problems)
	}
}

// play has the producers publish, and closes the publisher.
func (s *storm) play() {
	l, closeLane := fifokit.OpenLane(s.p, s.x.Context())
	s.lane = l
	var wg sync.WaitGroup
	for g := range s.groups {
		wg.Go(func() { s.produce(g) })
	}
	wg.Wait()
	closeLane()
	if err := s.p.Close(s.x.Context()); err != nil {
		s.problem("Close: %v", err)
	}
}

// checkQueue expects each event once, in the order of its group: of a storm that publishes once, each that was sent. One whose
// outcome is not known may be there or not.
func (s *storm) checkQueue() {
	if problem := s.x.sent.problem(); problem != "" {
		s.problem("%s", problem)
	}
	for g := range s.groups {
		var want []string
		got := s.x.queued(fmt.Sprint("g", g))
		for n := range s.events {
			e := event(fmt.Sprint("g", g), n)
			switch err := s.results[e.ID]; {
			case err == nil:
				want = append(want, e.Body)
			case !errors.Is(err, fifo.ErrNotSent):
				got = slices.DeleteFunc(got, func(body string) bool { return body == e.Body })
			}
		}
		if !slices.Equal(got, want) {
			s.problem("group %d: %v in the queue", g, got)
		}
	}
}

var errNotCalled = errors.New("not published, since an earlier event failed")

// produce publishes the events of a group until each is sent.
func (s *storm) produce(g int) {
	rng := rand.New(rand.NewPCG(s.seed, uint64(g)))
	var todo []fifo.Event
	for n := range s.events {
		todo = append(todo, event(fmt.Sprint("g", g), n))
	}
	for len(todo) > 0 {
		burst := todo[:1+rng.IntN(min(6, len(todo)))]
		method := []func(*rand.Rand, []fifo.Event) []error{s.publish, s.enqueue, s.publishAll, s.visit, s.visitOneLane}[rng.IntN(5)]
		if s.forwards {
			method = s.forward
		}
		errs := method(rng, burst)
		var left []fifo.Event
		for i, err := range errs {
			switch {
			case err != nil:
				left = append(left, burst[i])
			case len(left) > 0:
				s.problem("%s was sent, and %s before it failed", burst[i].ID, left[0].ID)
			}
			s.check(burst[i], err)
		}
		if s.once {
			s.mu.Lock()
			for i, err := range errs {
				s.results[burst[i].ID] = err
			}
			s.mu.Unlock()
			left = nil
		}
		todo = append(left, todo[len(burst):]...)
		time.Sleep(rand.N(50 * time.Millisecond))
	}
}

// check compares a result with the queue.
func (s *storm) check(e fifo.Event, err error) {
	queued := slices.Contains(s.x.queued(e.Group), e.Body)
	switch {
	case err == nil && !queued:
		s.problem("%s is sent, and not in the queue", e.ID)
	case errors.Is(err, fifo.ErrNotSent) && queued:
		s.problem("%s is in the queue: %v", e.ID, err)
	case err != nil && err != errNotCalled && errors.Is(err, fifo.ErrNotSent) == errors.Is(err, fifo.ErrUnknownOutcome):
		s.problem("%s: %v is not one of ErrNotSent and ErrUnknownOutcome", e.ID, err)
	}
}

// within calls f with a context that ends at some time.
func (s *storm) within(rng *rand.Rand, f func(context.Context)) {
	d := []time.Duration{0, 5 * time.Millisecond, 300 * time.Millisecond, 3 * time.Second, time.Minute}[rng.IntN(5)]
	ctx, cancel := context.WithTimeout(s.x.Context(), d)
	defer cancel()
	start := time.Now()
	f(ctx)
	if took := time.Since(start); took > d+100*time.Millisecond && !s.slow {
		s.problem("a call took %v, its context %v", took, d)
	}
}

func (s *storm) publish(rng *rand.Rand, es []fifo.Event) []error {
	errs := make([]error, len(es))
	for i, e := range es {
		if i > 0 && errs[i-1] != nil {
			errs[i] = errNotCalled
			continue
		}
		s.within(rng, func(ctx context.Context) { _, errs[i] = s.p.Publish(ctx, e) })
	}
	return errs
}

func (s *storm) enqueue(rng *rand.Rand, es []fifo.Event) []error { return s.enqueueTo(rng, s.p, es) }

// visitOneLane uses the lane that is open all the time.
func (s *storm) visitOneLane(rng *rand.Rand, es []fifo.Event) []error {
	return s.enqueueTo(rng, s.lane, es)
}

// visit uses a lane of its own.
func (s *storm) visit(rng *rand.Rand, es []fifo.Event) (errs []error) {
	s.within(rng, func(ctx context.Context) {
		l, closeLane := fifokit.OpenLane(s.p, ctx)
		var pending []*fifo.PublishResult
		errs, pending = s.accept(es, func(e fifo.Event) (*fifo.PublishResult, error) { return l.Enqueue(ctx, e) })
		for _, pd := range pending {
			if pd != nil {
				_, _ = pd.Get(ctx)
			}
		}
		closeLane()
		for i, pd := range pending {
			if pd == nil {
				continue
			}
			if _, errs[i] = pd.Get(ctx); errs[i] != nil && !isPublishError(errs[i]) {
				errs[i] = errNotCalled // in a request of others: it may be sent, or will be
			}
		}
	})
	return errs
}

func isPublishError(err error) bool {
	_, is := errors.AsType[*fifo.PublishError](err)
	return is
}

// accept enqueues events up to the first that is not accepted.
func (s *storm) accept(es []fifo.Event, enqueue func(fifo.Event) (*fifo.PublishResult, error)) ([]error, []*fifo.PublishResult) {
	errs := make([]error, len(es))
	pending := make([]*fifo.PublishResult, len(es))
	for i, e := range es {
		if i > 0 && errs[i-1] != nil { // its own caller knows that it was not accepted
			errs[i] = errNotCalled
			continue
		}
		pending[i], errs[i] = enqueue(e)
	}
	return errs, pending
}

func (s *storm) enqueueTo(rng *rand.Rand, to interface {
	Enqueue(context.Context, fifo.Event) (*fifo.PublishResult, error)
}, es []fifo.Event) []error {
	errs, pending := s.accept(es, func(e fifo.Event) (pd *fifo.PublishResult, err error) {
		s.within(rng, func(ctx context.Context) { pd, err = to.Enqueue(ctx, e) })
		return pd, err
	})
	for i, pd := range pending {
		if pd != nil {
			_, errs[i] = pd.Get(s.x.Context())
		}
	}
	return errs
}

func (s *storm) publishAll(rng *rand.Rand, es []fifo.Event) []error {
	errs := make([]error, len(es))
	s.within(rng, func(ctx context.Context) {
		_, err := s.p.PublishAll(ctx, es)
		for _, pe := range split(err) {
			errs[pe.Index] = pe
		}
	})
	return errs
}
