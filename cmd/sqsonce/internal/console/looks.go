package console

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/classes"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/ops"
)

const (
	// keptBodies is how many bytes of bodies, attributes and reasons a look keeps. While it is under way it has all of them, which
	// ops.DLQ.List bounds.
	keptBodies = 64 << 20
	// lookTimeout bounds a look with the reads of records. Of the largest it receives for ten minutes at most.
	lookTimeout = 15 * time.Minute
)

// lookLimits are how many messages a look may read: they can be chosen.
var lookLimits = []int{1000, 10_000, 100_000}

// message is a message as a look has kept it.
type message struct {
	*ops.Message
	BodyBytes   int
	ResultBytes int  // of its record's result, which is not kept
	Cut         bool // its body and attributes are not kept
}

// look is what a dead-letter queue showed when somebody asked for it. It does not change.
type look struct {
	ops.Listing // without Messages: see below
	Read        int
	Messages    []*message
	Classes     []classes.Class
	Processes   []ops.ShownProcess
	AllRead     bool      // as ops.AllRead
	LostAt      time.Time // the first of the messages; zero: not known
	Others      int       // of other queues, and not shown
	Cut         int       // messages whose bodies are not kept
	byID        map[string]*message
}

func newLook(l ops.Listing, budget int) *look {
	k := &look{Listing: l, Read: len(l.Messages), LostAt: classes.LostAt(l.Messages), byID: map[string]*message{}}
	var shown []*ops.Message
	for _, m := range l.Messages {
		if otherSource(m) {
			k.Others++
			continue
		}
		shown = append(shown, m)
		kept := keep(m, &budget)
		if kept.Cut {
			k.Cut++
		}
		k.Messages = append(k.Messages, kept)
		k.byID[m.ID] = kept
	}
	k.Listing.Messages = nil
	k.Classes, k.Processes, k.AllRead = classes.Of(shown), newest(ops.RecordsOf(shown)), ops.AllRead(shown)
	return k
}

func newest(records []ops.Record) []ops.ShownProcess {
	processes, _ := ops.Newest(ops.Processes(records))
	return processes
}

// keep takes from the budget what it keeps, and cuts what is above it. The result of a record is shown by its size only.
func keep(m *ops.Message, budget *int) *message {
	k := &message{Message: m, BodyBytes: len(m.Body)}
	m.ReceiptHandle = "" // of no use after a listing
	size := len(m.Body) + len(m.Reason)
	for name, a := range m.Attributes {
		size += len(name) + len(a.String) + len(a.Binary)
	}
	if m.Record != nil {
		r := *m.Record
		k.ResultBytes = len(r.Result.Data)
		r.Result.Data = nil
		m.Record, size = &r, size+len(r.LastError)
	}
	if *budget -= size; *budget >= 0 {
		return k
	}
	m.Body, m.Attributes, k.Cut = "", nil, true
	m.Reason = strings.Clone(short(m.Reason))
	if m.Record != nil {
		m.Record.LastError = strings.Clone(short(m.Record.LastError))
	}
	return k
}

// of returns the messages of a class; "" as a state: of each state.
func (k *look) of(class string, state dedup.RecordState) (found []*message) {
	for _, m := range k.Messages {
		if m.Class.ID == class && (state == "" || m.State == state) {
			found = append(found, m)
		}
	}
	return found
}

// looks has the newest look at each queue, in memory.
type looks struct {
	mu     sync.Mutex
	queues map[string]*looked // by the source's name
	busy   map[string]busy    // by the URL of the dead-letter queue, which several queues may have
}

// looked is what is known of one queue.
type looked struct {
	Look     *look // nil: nobody has looked
	Failed   error // why the last look has failed, or has ended early
	FailedAt time.Time
	Acted    time.Time // when an act on the queue began last
	Busy     busy
}

// busy is what receives from a queue now; its Since is zero where nothing does.
type busy struct {
	What  string // "a look"
	Since time.Time
}

func (l *looks) at(queue string) *looked {
	if l.queues == nil {
		l.queues, l.busy = map[string]*looked{}, map[string]busy{}
	}
	if l.queues[queue] == nil {
		l.queues[queue] = &looked{}
	}
	return l.queues[queue]
}

func (l *looks) of(q Queue) looked {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := *l.at(q.Name)
	now.Busy = l.busy[q.DLQURL]
	return now
}

// begin keeps others from receiving: of two looks, plans or acts each would hide messages from the other one.
func (l *looks) begin(q Queue, what string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at(q.Name)
	if now := l.busy[q.DLQURL]; !now.Since.IsZero() {
		return &pageError{http.StatusConflict, fmt.Errorf("%s at %s is under way since %s, and hides messages from another one: wait until it has ended", now.What, q.DLQName, clock(now.Since))}
	}
	l.busy[q.DLQURL] = busy{what, time.Now()}
	return nil
}

func (l *looks) end(q Queue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.busy, q.DLQURL)
}

// keep replaces the look before. One that has failed does where there is none only: what it has read is better than nothing.
func (l *looks) keep(q Queue, k *look, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.at(q.Name)
	at.Failed, at.FailedAt = err, time.Now()
	if k != nil && (err == nil || at.Look == nil && k.Read > 0) {
		at.Look = k
	}
}

func (l *looks) acted(q Queue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at(q.Name).Acted = time.Now()
}

// look receives the messages of a queue, and gives them back. It does not end with the request: what has been received is shown to
// whoever comes next.
func (s *Server) look(ctx context.Context, q Queue, limit int) {
	defer s.looks.end(q)
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	var l ops.Listing
	err := host.Contain(func() error {
		d, err := s.opts.Open(ctx, q)
		if err == nil {
			l, err = d.List(ctx, limit)
		}
		return err
	})
	var k *look
	if !l.AsOf.IsZero() {
		k = newLook(l, keptBodies)
	}
	if err != nil {
		s.log.Error("console: a look failed", append([]any{"queue", q.DLQName}, host.ErrorAttrs(err)...)...)
	}
	s.looks.keep(q, k, err)
}

// lookFacts are those of the newest look.
func (s *Server) lookFacts(q Queue) lookFacts {
	k := s.looks.of(q).Look
	if k == nil {
		return lookFacts{}
	}
	return lookFacts{asOf: k.AsOf, complete: k.Complete && k.Hidden == 0, lostAt: k.LostAt}
}
