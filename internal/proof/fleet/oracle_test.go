//go:build unix

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// order is an event for a publisher.
type order struct {
	ID, Group, Kind string
	Queue           int // 0: standard, 1: FIFO
}

// note is what a run of a handler tells.
type note struct {
	What, Seat     string
	Event, Message string // IDs
	Receive        int    // the message's receive count
	Fence          int64
	Error          string
}

// What notes tell.
const start, effect, end = "start", "effect", "end"

type event struct {
	order
	publisher       string
	at              int // its place in its group
	confirmed, done bool
	runs            []*run
}

// run is a run of an event's handler. The zero time: not yet.
type run struct {
	note
	start, effect, end time.Time
}

// oracle is an HTTP service that has the events for the publishers, and hears of each run. Its effect has a fence: it refuses a run
// whose lease another delivery has taken over.
type oracle struct {
	store    *dynamostore.Store // without a network
	over     func() bool        // no more events
	poison   bool
	complain func(format string, args ...any)

	mu      sync.Mutex
	rng     *rand.Rand
	events  map[string]*event
	all     []*event
	groups  map[string][]*event // of the FIFO queue
	early   [][2]*event         // the second one started when the first one, before it in its group, was not done
	refused int
}

const prefixes, perNext = 5, 8

func (o *oracle) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var n note
	var ids []string
	var answer any
	var err error
	switch in := json.NewDecoder(r.Body); r.URL.Path {
	case "/next":
		answer = o.next(r.URL.Query().Get("publisher"))
	case "/published":
		err = in.Decode(&ids)
		for _, id := range ids {
			o.events[id].confirmed = true
		}
	default:
		if err = in.Decode(&n); err == nil {
			answer, err = o.hear(context.WithoutCancel(r.Context()), n) // its process may die meanwhile
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	_ = json.NewEncoder(w).Encode(answer) // the process may have died
}

// next returns what a publisher has not confirmed, in the order of the groups, and new events. nil: it is done.
func (o *oracle) next(publisher string) (orders []order) {
	for _, e := range o.all {
		if e.publisher == publisher && !e.confirmed {
			orders = append(orders, e.order)
		}
	}
	for len(orders) < perNext && !o.over() {
		e := &event{publisher: publisher, order: order{Queue: o.rng.IntN(2), Kind: o.kind()}}
		e.Group = fmt.Sprintf("%s-%d", publisher, o.rng.IntN(6))
		e.ID = fmt.Sprintf("%d/%s/%d", o.rng.IntN(prefixes), e.Group, len(o.all))
		if e.Queue == 1 {
			e.at = len(o.groups[e.Group])
			o.groups[e.Group] = append(o.groups[e.Group], e)
		}
		o.events[e.ID] = e
		o.all = append(o.all, e)
		orders = append(orders, e.order)
	}
	return orders
}

// unfit are the kinds of events whose handler never succeeds.
var unfit = []string{"poison", "rejected", "failing"}

func (o *oracle) kind() string {
	n := o.rng.IntN(500)
	for _, k := range []struct {
		kind string
		of   int
	}{{"poison", 1}, {"rejected", 3}, {"failing", 2}, {"deaf", 6}, {"hanging", 6}, {"flaky", 22}, {"slow", 60}} {
		if n -= k.of; n < 0 && (o.poison || k.kind != "poison") {
			return k.kind
		}
	}
	return "plain"
}

func (o *oracle) hear(ctx context.Context, n note) (answer any, err error) {
	e := o.events[n.Event]
	i := slices.IndexFunc(e.runs, func(r *run) bool { return r.Fence == n.Fence })
	switch {
	case n.What == start && i >= 0:
		o.complain("%s: two runs under the lease with fence %d", n.Event, n.Fence)
	case n.What != start && i < 0:
		return nil, fmt.Errorf("%s: %s of a run that has not started", n.Event, n.What)
	}
	if n.What == end {
		e.runs[i].end, e.runs[i].Error = time.Now(), n.Error
		return nil, nil
	}
	rec, err := o.record(ctx, e)
	switch {
	case err != nil:
		o.complain("%s: %s under fence %d without a record: %v", e.ID, n.What, n.Fence, err)
	case rec.Fence > n.Fence:
		o.refused++
		return nil, errors.New("superseded: another delivery has the lease")
	case rec.Fence < n.Fence || rec.Completed:
		o.complain("%s: %s under fence %d; its record has fence %d, completed %t", e.ID, n.What, n.Fence, rec.Fence, rec.Completed)
	}
	if n.What == effect {
		e.runs[i].effect = time.Now()
		return nil, nil
	}
	if e.Queue == 1 {
		o.checkOrder(ctx, e)
	}
	e.runs = append(e.runs, &run{note: n, start: time.Now()})
	return len(e.runs), nil
}

func (o *oracle) record(ctx context.Context, e *event) (dedup.Record, error) {
	key, err := sqsonce.EventKey(source, e.ID)
	if err != nil {
		return dedup.Record{}, err
	}
	return o.store.Inspect(ctx, consumer+"#"+key)
}

// checkOrder notes which events before e in its group are not done when e starts: they must be in the dead-letter queue.
func (o *oracle) checkOrder(ctx context.Context, e *event) {
	for _, before := range o.groups[e.Group][:e.at] {
		if !before.done {
			rec, err := o.record(ctx, before)
			before.done = err == nil && rec.Completed
		}
		if !before.done {
			o.early = append(o.early, [2]*event{before, e})
		}
	}
}

// check compares all that happened with the guarantees.
func (f *fleet) check() {
	dead, tally := map[string]memsqs.QueuedMessage{}, map[string]int{}
	for _, name := range queues {
		for _, m := range f.queue.Messages(strings.Replace(name, "fleet", "fleet-dlq", 1)) {
			dead[m.Body] = m
		}
	}
	for _, s := range f.seats {
		for _, h := range s.harms {
			tally[h.what]++
		}
	}
	for _, e := range f.oracle.all {
		rec, err := f.oracle.record(f.ctx, e)
		done, unfit, effects := err == nil && rec.Completed, slices.Contains(unfit, e.Kind), f.checkRepeats(e)
		m, inDead := dead[e.ID]
		tally["runs"] += len(e.runs)
		switch {
		case done && (unfit || effects == 0), !done && !inDead:
			f.complain("%s (%s): completed %t, %d runs had their effect, in the dead-letter queue %t%s", e.ID, e.Kind, done, effects, inDead, f.history(e))
		case !unfit && !done:
			tally["healthy and dead"]++
			f.checkDead(e, m, tally)
		}
	}
	for _, pair := range f.oracle.early {
		before, e := pair[0], pair[1]
		if _, ok := dead[before.ID]; !ok {
			f.complain("%s started before %s was done%s%s", e.ID, before.ID, f.history(before), f.history(e))
		}
	}
	f.Logf("%d events; %v; %d runs refused by their fence", len(f.oracle.all), tally, f.oracle.refused)
	for _, c := range f.complaints[:min(len(f.complaints), 10)] {
		f.Error(c)
	}
	if n := len(f.complaints); n > 10 {
		f.Errorf("%d complaints in all", n)
	}
}

// checkRepeats counts the runs that had their effect, and checks why another run started: the one before had failed, or its process or
// network was harmed, or it was deaf.
func (f *fleet) checkRepeats(e *event) (effects int) {
	for i, r := range e.runs {
		if !r.effect.IsZero() {
			effects++
		}
		if i+1 == len(e.runs) || r.Error != "" && r.end.Before(e.runs[i+1].start) || e.Kind == "deaf" || e.Kind == "poison" {
			continue
		}
		if !f.harmed(r.Seat, r.start, e.runs[i+1].start, func(h harm) bool { return h.what != throttledBatch }) {
			f.complain("%s (%s) ran again without a cause%s", e.ID, e.Kind, f.history(e))
		}
	}
	return effects
}

// heard is how much later the oracle may hear of a run: its process may be dead by then.
const heard = 2 * time.Second

// harmed says that a seat was harmed in that time.
func (f *fleet) harmed(name string, from, to time.Time, counts func(harm) bool) bool {
	return slices.ContainsFunc(f.seats, func(s *seat) bool {
		return (s.role.Seat == name || s.net == f.everywhere) && slices.ContainsFunc(s.harms, func(h harm) bool { return counts(h) && h.from.Before(to) && h.to.Add(heard).After(from) })
	})
}

// checkDead checks why an event whose handler can succeed is in the dead-letter queue: each of its receives was spent.
func (f *fleet) checkDead(e *event, m memsqs.QueuedMessage, tally map[string]int) {
	reason := m.Attributes[sqsonce.AttrRejectReason]
	switch {
	case len(e.runs) > 0:
	case reason != "":
		f.complain("%s: sent to the dead-letter queue unrun: %s%s", e.ID, reason, f.history(e))
	default:
		tally["dead unrun"]++
		f.Logf("%s: dead-lettered unrun%s", e.ID, f.history(e))
	}
	receives, crashes := f.receives(e), map[*event]map[int]bool{}
	for i, r := range receives {
		next := r.at.Add(2 * far)
		same := func(n receive) bool { return n.message == r.message } // an event may be sent twice
		if later := receives[i+1:]; slices.ContainsFunc(later, same) {
			next = later[slices.IndexFunc(later, same)].at
		}
		if p := f.crashedBy(e, r, next); p != nil {
			if crashes[p] == nil {
				crashes[p] = map[int]bool{}
			}
			crashes[p][r.count] = true
		} else if !f.spent(e, r, next) {
			f.complain("%s (%s): dead-lettered (%q), and nothing spent receive %d%s", e.ID, e.Kind, reason, r.count, f.history(e))
			return
		}
	}
	for p, counts := range crashes {
		if len(e.runs) > 0 {
			break
		}
		// The head is accused by then, and leaves its group while those behind it have a receive: 17.7c, 17.8b.
		if tally["dead unrun behind poison"]++; len(counts) >= m.ReceiveCount {
			f.complain("%s: the crashes of %s alone took all its receives%s%s", e.ID, p.ID, f.history(e), f.history(p))
		}
	}
}

// crashedBy is the event before one in its group whose crash alone has spent a receive: its seat was in no other trouble meanwhile, which
// might also have kept the head from being accused. nil: there is none.
func (f *fleet) crashedBy(e *event, r receive, next time.Time) *event {
	other := func(h harm) bool { return h.what != poisoned && h.what != failedInvocation }
	if e.Queue == 0 || !r.delivered || f.harmed(r.seat, r.at, next, other) {
		return nil
	}
	for _, p := range f.oracle.groups[e.Group][:e.at] {
		if p.Kind == "poison" && slices.ContainsFunc(p.runs, func(run *run) bool {
			return run.Seat == r.seat && run.start.Before(next) && run.start.After(r.at)
		}) {
			return p
		}
	}
	return nil
}

// spent says that something made a receive fail: its process died or stood still, its network to SQS was in trouble, its answer was
// lost, or its handler failed. A function can hold no message: there any trouble spends it, and a failure before it in its group.
func (f *fleet) spent(e *event, r receive, next time.Time) bool {
	function := strings.HasPrefix(r.seat, "function")
	if !r.delivered || f.harmed(r.seat, r.at, next, func(h harm) bool { return function || h.trouble == nil || h.trouble.service != "DynamoDB" }) {
		return true
	}
	group := []*event{e}
	if function && e.Queue == 1 {
		group = f.oracle.groups[e.Group][:e.at+1]
	}
	return slices.ContainsFunc(group, func(e *event) bool {
		return slices.ContainsFunc(e.runs, func(run *run) bool {
			failed := run.end.IsZero() || run.Error != ""
			return run.Seat == r.seat && failed && run.start.Before(next) && (run.end.IsZero() || run.end.After(r.at))
		})
	})
}

// receives returns the receives of an event, in their order.
func (f *fleet) receives(e *event) (all []receive) {
	for _, n := range f.networks {
		n.mu.Lock()
		for _, r := range n.receives {
			if r.event == e.ID {
				all = append(all, r)
			}
		}
		n.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b receive) int { return a.at.Compare(b.at) })
	return all
}

// history is an event's receives and runs, and what was done to their seats meanwhile, in ms from the end of the faults.
func (f *fleet) history(e *event) string {
	lines, seats, first := []string{}, map[string]bool{}, time.Now()
	ms := func(t time.Time) int64 { return t.Sub(f.bad).Milliseconds() + 1e6 }
	for _, r := range f.receives(e) {
		if seats[r.seat] = true; r.at.Before(first) {
			first = r.at
		}
		lines = append(lines, fmt.Sprintf("%d %s receives %.4s, receive %d, answered %t", ms(r.at), r.seat, r.message, r.count, r.delivered))
	}
	for _, n := range f.networks {
		n.mu.Lock()
		for _, s := range n.sends {
			if s.event == e.ID {
				if seats[s.seat] = true; s.at.Before(first) {
					first = s.at
				}
				lines = append(lines, fmt.Sprintf("%d %s sends it, confirmed %t", ms(s.at), s.seat, s.delivered))
			}
		}
		n.mu.Unlock()
	}
	for _, r := range e.runs {
		lines = append(lines, fmt.Sprintf("%d %s runs receive %d of %.4s, fence %d, effect %d, end %d %s",
			ms(r.start), r.Seat, r.Receive, r.Message, r.Fence, ms(r.effect), ms(r.end), r.Error))
	}
	for _, s := range f.seats {
		s.mu.Lock()
		for _, h := range s.harms {
			if (seats[s.role.Seat] || s.net == f.everywhere) && h.to.After(first) {
				lines = append(lines, fmt.Sprintf("%d %s: %s %+v until %d", ms(h.from), s.role.Seat, h.what, h.trouble, ms(h.to)))
			}
		}
		s.mu.Unlock()
	}
	slices.Sort(lines)
	return "\n  " + strings.Join(lines, "\n  ")
}
