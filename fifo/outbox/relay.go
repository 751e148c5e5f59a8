package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Relay publishes the events of a store. Any number may work on one store, in any processes. Make one with [NewRelay]. All
// methods are safe for concurrent use. An idle Relay doesn't use goroutines or timers.
type Relay struct {
	store     safeStore
	publisher *fifo.Publisher
	opts      Options
	clocks    func() instant // readClocks, except in tests
	lines     host.Lines     // what opts.Logger writes to
	slots     chan struct{}  // one for each group that is being published, by whichever call

	mu      sync.Mutex
	groups  map[string]*group
	owing   map[*group]struct{}
	owed    int   // events of all groups
	denied  error // a delete was refused for good, and none has succeeded since
	stats   Stats
	cursor  string  // where the next sweep begins
	backlog Backlog // of the last whole sweep
	later   later
	said    episodes
	rung    map[string]struct{}
	ring    chan struct{} // has an element while Run has not looked at rung
}

// NewRelay returns a Relay that publishes the store's events with the publisher. It neither calls the store nor starts a goroutine. You
// may share the publisher with other uses of its queue, but not of the store's groups. On a standard queue neither order nor
// single acceptance is promised. The error joins one [*sqsonce.OptionError] per bad argument.
func NewRelay(s Store, p *fifo.Publisher, optFns ...func(*Options)) (*Relay, error) {
	var o Options
	for _, fn := range optFns {
		fn(&o)
	}
	o.setDefaults()
	if err := validate(s, p, &o); err != nil {
		return nil, err
	}
	r := &Relay{
		store: safeStore{s}, publisher: p, opts: o, clocks: readClocks,
		slots:  make(chan struct{}, o.Groups),
		groups: make(map[string]*group),
		owing:  make(map[*group]struct{}),
		rung:   make(map[string]struct{}),
		ring:   make(chan struct{}, 1),
	}
	r.opts.Logger = slog.New(r.lines.LateHandler(o.Logger.Handler()))
	r.attach(o.Logger, o.Hooks)
	return r, nil
}

// QueueURL returns the URL of the publisher's queue.
func (r *Relay) QueueURL() string { return r.publisher.QueueURL() }

// group is what a relay remembers of a group. It belongs to the relay's mutex; known and unanswered belong to the visit.
type group struct {
	name  string
	ended chan struct{} // closed when the visit ends; nil: the group is in none
	known Known
	// owed are events that SQS confirmed, and whose delete has not succeeded yet, without their bodies.
	owed []Entry
	// unanswered is the event of which the last send had no answer.
	unanswered struct {
		id    string
		first instant
	}
	refused string    // ID of the event that was parked last
	saw     sight     // what the last visit saw
	until   time.Time // a sweep leaves the group alone until then, unless it has a new event: it has nothing to send
}

// enter begins a visit of the group. While another one is under way it returns when that ends: two visits of one process would
// only do the same work.
func (r *Relay) enter(name string) (g *group, busy <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g = r.groups[name]
	if g == nil {
		r.forgetSome()
		g = &group{name: name}
		r.groups[name] = g
	}
	if g.ended != nil {
		return nil, g.ended
	}
	g.ended = make(chan struct{})
	return g, nil
}

func (r *Relay) leave(g *group) {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(g.ended)
	g.ended = nil
}

// forgetSome makes place for one more group. What is forgotten costs the store a request. What is owed is kept: visits that would
// add to it do not begin while it is too much. The caller holds the lock.
func (r *Relay) forgetSome() {
	for name, g := range r.groups {
		if len(r.groups) < mostRemembered {
			return
		}
		if g.ended == nil && len(g.owed) == 0 {
			delete(r.groups, name)
		}
	}
}

// Drain publishes the events of the groups, until each group is empty or halted, or ctx ends. Use it in a process that
// has just committed, and for doorbells. All of its goroutines end with it.
//
// Drain returns nil if the groups were empty when it looked. Else the error joins one [*GroupError] a group. It is the error of
// a group that waits for an operator ([ErrHalted], [ErrBroken], [ErrWrongSource], [ErrManySkipped]), or the last one
// before ctx ended. Drain repeats an attempt that failed with a passing error until then, after a pause that doubles up to
// 30 s. An error of the whole queue that doesn't pass, such as a missing permission, ends Drain at once.
//
// Drain doesn't begin a visit in the last 10 s before ctx's deadline, or in the last third of the time that ctx had if that is
// less. The requests end with ctx. The events that were in flight may be published again, and SQS drops the copies for five
// minutes. Drain then returns within 5 s.
func (r *Relay) Drain(ctx context.Context, groups ...string) error {
	var bad []error
	for i, name := range groups {
		if name == "" {
			bad = append(bad, badField(fmt.Sprintf("groups[%d]", i), "is empty"))
		}
	}
	if len(bad) > 0 {
		return errors.Join(bad...)
	}
	if len(groups) == 0 {
		return nil
	}
	j := r.newJob(ctx, ctx)
	defer j.end()
	if err := j.begin(); err != nil {
		return err
	}
	q := newQueue(j, untilGone)
	for _, name := range groups {
		q.push(Group{Name: name})
	}
	q.wait()
	if err := q.fatalError(); err != nil {
		return err
	}
	return q.err()
}
