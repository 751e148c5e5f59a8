package control_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/control"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/internal/testlog"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
	"github.com/sqsonce/sqsonce/sqsworker"
)

const (
	consumer = "billing"
	key      = "sqsonce.control#billing"
	obeys    = 6 * time.Second // from a command to the last worker that does what it says
)

// store fails, or hangs, while it is told to.
type store struct {
	records
	takes time.Duration // a read
	mu    sync.Mutex
	reads int
	err   error
	hangs bool
	deaf  chan struct{} // not nil: a read ignores its context, and returns when this is closed
}

// records is a store of records.
type records interface {
	dedup.Store
	dedup.Keeper
	Delete(ctx context.Context, key string) error
}

// skewed is a store whose clock differs from the workers'.
type skewed struct {
	records
	ahead time.Duration
}

func (s skewed) Inspect(ctx context.Context, key string) (dedup.Record, error) {
	r, err := s.records.Inspect(ctx, key)
	r.ExpiresAt = r.ExpiresAt.Add(s.ahead)
	return r, err
}

func (s *store) Inspect(ctx context.Context, key string) (dedup.Record, error) {
	s.mu.Lock()
	s.reads++
	err, hangs, deaf := s.err, s.hangs, s.deaf
	s.mu.Unlock()
	if deaf != nil {
		<-deaf
	}
	if hangs {
		<-ctx.Done()
		return dedup.Record{}, ctx.Err()
	}
	if err != nil {
		return dedup.Record{}, err
	}
	time.Sleep(s.takes)
	return s.records.Inspect(ctx, key)
}

func (s *store) set(err error, hangs bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.hangs = err, hangs
}

// deafen has reads ignore their context until hear is called.
func (s *store) deafen() (hear func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	deaf := make(chan struct{})
	s.deaf = deaf
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.deaf = nil
		close(deaf)
	}
}

func (s *store) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

var errAway = sqsonce.Unavailable(errors.New("no answer"))

// world is a queue, a store, and the processes that share them, in a bubble.
type world struct {
	*testing.T
	srv   *memsqs.Server
	c     *sqs.Client
	url   string
	store *store
	log   testlog.Book
	stops []func()
}

func bubble(t *testing.T, f func(x *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := &world{T: t, srv: memsqs.New(), store: &store{records: memstore.New()}}
		defer x.srv.Close()
		x.c = testaws.SQS(x.srv)
		x.url = testaws.Queue(t, x.c, "jobs", map[string]string{"VisibilityTimeout": "30"})
		f(x)
		x.stop()
	})
}

// process is one of the fleet.
type process struct {
	*sqsworker.Worker
	control *control.Control
	took    time.Duration // of a handler

	mu       sync.Mutex
	started  []time.Time
	receives []int // the receive counts of the messages
	bodies   []int
	ended    int
}

// start starts a process whose worker obeys.
func (x *world) start(took time.Duration, optFns ...func(*sqsworker.Options)) *process {
	x.Helper()
	logger := slog.New(slog.NewTextHandler(io.MultiWriter(&x.log), nil))
	p := &process{took: took}
	p.control = must.Get(control.New(x.store, consumer, func(o *control.Options) { o.Logger = logger }))(x)
	x.run(p, func(o *sqsworker.Options) {
		o.Hooks = append(o.Hooks, p.control.Hooks())
		for _, fn := range optFns {
			fn(o)
		}
	})
	return p
}

func (x *world) run(p *process, optFn func(*sqsworker.Options)) {
	x.Helper()
	h := p.control.Handler(p.handle)
	p.Worker = must.Get(sqsworker.New(x.c, x.url, h, func(o *sqsworker.Options) {
		o.Concurrency, o.Logger = 4, slog.New(slog.DiscardHandler)
		optFn(o)
	}))(x)
	ctx, cancel := context.WithCancel(x.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	x.stops = append(x.stops, func() {
		cancel()
		if err := <-ended; err != nil {
			x.Errorf("Run: got error %v", err)
		}
	})
}

func (x *world) stop() {
	for _, stop := range x.stops {
		stop()
	}
	x.stops = nil
}

func (p *process) handle(_ context.Context, m *sqsonce.Message) error {
	body, err := strconv.Atoi(m.Body)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.bodies = append(p.bodies, body)
	p.started, p.receives = append(p.started, time.Now()), append(p.receives, m.ReceiveCount)
	p.mu.Unlock()
	time.Sleep(p.took)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended++
	return nil
}

// since is how many handlers have started since then.
func (p *process) since(then time.Time) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, at := range p.started {
		if !at.Before(then) {
			n++
		}
	}
	return n
}

func (x *world) send(n int) {
	for i := range n {
		in := &sqs.SendMessageInput{QueueUrl: &x.url, MessageBody: aws.String(fmt.Sprint(i))}
		if strings.HasSuffix(x.url, ".fifo") {
			in.MessageGroupId, in.MessageDeduplicationId = aws.String("g"), in.MessageBody
		}
		must.Get(x.c.SendMessage(x.Context(), in))(x)
	}
}

// receives is how many receives were sent.
func (x *world) receives() (n int) {
	for _, c := range x.srv.Calls() {
		if c.Op == "ReceiveMessage" {
			n++
		}
	}
	return n
}

// set asks for a state, as an operator does.
func (x *world) set(s control.State, d time.Duration) {
	x.Helper()
	s.By, s.Reason = "ann", "bank is down"
	seen := must.Get(control.Read(x.Context(), x.store.records, consumer))(x)
	must.Get(control.Set(x.Context(), x.store.records, seen, s, d))(x)
}

func (x *world) wantIntake(p *process, when string, want sqsworker.Intake) {
	x.Helper()
	if got := p.Stats().Intake; got != want {
		x.Errorf("%s: intake is %s, want %s", when, got, want)
	}
}
