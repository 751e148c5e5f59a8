package outbox

import (
	"errors"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/fifokit"
)

// visited is the result of a visit, which publishes one page of a group.
type visited struct {
	more     bool // there is more to publish
	progress bool // something was published, deleted or marked
	trouble  trouble
	err      error
	stays    bool // the group's first event is still there, and the claim with it
}

// trouble is whom a visit's error meets.
type trouble int

const (
	noTrouble trouble = iota
	waits             // the group, until an operator has decided or changed something
	passes            // the group: another relay is at it, or a transaction
	common            // other groups too: the store or the queue does not work
	refuses           // the same, and a person must change something: access, the queue, a key
	final             // the relay: it must not send, or cannot
)

// sight is a visit's view of its group.
type sight struct {
	skipped int
	halted  bool
	oldest  time.Duration // age of the oldest event that is not skipped
	err     error         // why it waits, where no mark of its first event says so
}

func failed(t trouble, err error) visited { return visited{trouble: t, err: err, stays: true} }

var (
	errClaimed = errors.New("outbox: another relay has claimed the group")
	errOwing   = errors.New("outbox: too many published events could not be deleted: publishing waits until the store deletes again")
	errStale   = errors.New("outbox: the process was frozen or the store was slow: the events are read again, because these are too old to send")
)

// restTime is how long a sweep leaves a group alone that has neither events to send nor a new event.
const restTime = time.Minute

// visit publishes one page of a group that it has entered.
func (j *job) visit(g *group, found Group) (v visited) {
	r := j.r
	l, leave := j.lanes.enter()
	defer leave()
	owed, tooMuch := r.owes(g)
	if len(owed) > 0 {
		if err := j.delete(g, owed); err != nil {
			return failed(deleteTrouble(err), err)
		}
		defer func() { v.progress = true }()
	} else if tooMuch {
		return failed(common, errOwing)
	}
	switch free, err := r.store.claim(l.ctx, g.name, r.opts.LeaseDuration); {
	case err != nil:
		return failed(storeTrouble(err), err)
	case !free:
		return visited{trouble: passes, err: errClaimed}
	}
	v = j.publish(l, g, found)
	if v.stays {
		if err := r.store.unclaim(j.late, g.name); err != nil {
			r.opts.Logger.DebugContext(j.ctx, "outbox: a claim was not ended, it ends with its lease", keyGroup, g.name, keyError, err)
		}
	}
	return v
}

func deleteTrouble(err error) trouble {
	if errors.Is(err, ErrDenied) {
		return final
	}
	return common
}

// storeTrouble returns whom an error of the store meets: one that does not pass ends a Drain.
func storeTrouble(err error) trouble {
	_, isField := errors.AsType[*sqsonce.OptionError](err)
	if isField || errors.Is(err, ErrDenied) {
		return refuses
	}
	return common
}

// publish reads a page, sends it and deletes what SQS confirmed.
func (j *job) publish(l *lane, g *group, found Group) visited {
	r := j.r
	read := r.clocks()
	found.Name = g.name
	g.known.Seen = max(g.known.Seen, found.Last)
	es, err := r.store.read(l.ctx, found, g.known, r.opts.Page)
	r.count(func(s *Stats) { s.Reads++ })
	isBroken, isUnsettled, isMany := errors.Is(err, ErrBroken), errors.Is(err, ErrUnsettled), errors.Is(err, ErrManySkipped)
	if isUnsettled {
		r.count(func(s *Stats) { s.Unsettled++ })
	}
	if err != nil && !isBroken && !isUnsettled && !isMany {
		return failed(storeTrouble(err), err)
	}
	if len(es) > 0 {
		g.known.Seen = max(g.known.Seen, es[len(es)-1].Seq)
	}
	page, stop, rest := r.sendable(g, es)

	v := visited{stays: len(es) > 0 || err != nil}
	s := j.send(l, g, page, read)
	if len(s.confirmed) > 0 {
		v.progress, v.stays = true, !s.confirmed[0].same(es[0])
		if err := j.delete(g, s.confirmed); err != nil {
			v.trouble, v.err = deleteTrouble(err), err
			return v
		}
	}
	switch {
	case s.err != nil && errors.Is(s.err, fifo.ErrRefused):
		return j.parkRefused(g, v, s.failed, s.err)
	case s.err != nil:
		v.trouble, v.err = sendTrouble(l, s.err), fmt.Errorf("outbox: %w", s.err)
	case s.stale && !v.progress:
		v.trouble, v.err = passes, errStale
	case s.stale, s.cut:
		v.more = true
	case stop != nil:
		v.trouble, v.err = waits, stop
		r.rest(g, rest, stop)
	case isBroken, isMany:
		v.trouble, v.err = waits, err
		r.rest(g, true, err)
	case isUnsettled && !v.progress:
		v.trouble, v.err = passes, err
	default:
		v.more = isUnsettled || len(page) == r.opts.Page
		r.rest(g, len(page) == 0 && len(es) > 0, nil)
	}
	return v
}

// sendable returns the events of a page that may be sent: those before one that is halted or of another source, without the
// skipped ones. stop is the error of that one. rest says that a sweep which finds the group cannot see that it waits.
func (r *Relay) sendable(g *group, es []Entry) (page []Entry, stop error, rest bool) {
	saw := sight{}
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		g.saw = saw
	}()
	for i, e := range es {
		if e.Parked == OnRefusedSkip {
			saw.skipped++
			continue
		}
		saw.oldest = max(saw.oldest, e.Age)
		switch {
		case e.Parked != 0: // OnRefusedHalt, and what a later version may write
			saw.halted = true
			r.count(func(s *Stats) { s.Halted++ })
			return page, &GroupError{Group: g.name, Seq: e.Seq, EventID: e.ID, Err: fmt.Errorf("%w: %s", ErrHalted, e.Reason)}, i > 0
		case e.Source != fifokit.Namespace(r.publisher):
			r.count(func(s *Stats) { s.WrongSource++ })
			return page, fmt.Errorf("%w: event %.128q (%d) of group %.128q is of %.64q, the publisher's namespace is %.64q",
				ErrWrongSource, e.ID, e.Seq, g.name, e.Source, fifokit.Namespace(r.publisher)), true
		}
		page = append(page, e)
	}
	return page, nil, false
}

// rest has sweeps leave a group alone for a while that has nothing to send. err is why; nil: it has skipped events only.
func (r *Relay) rest(g *group, rest bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g.until = time.Time{}
	if rest {
		g.saw.err = err
		g.until = time.Now().Add(restTime)
	}
}

// rests reports whether a sweep leaves a group alone that it has found, and what the last visit saw of it.
func (r *Relay) rests(found Group) (sight, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.groups[found.Name]
	if g == nil || g.ended != nil || found.Last > g.known.Seen || len(g.owed) > 0 {
		return sight{}, false
	}
	return g.saw, time.Now().Before(g.until)
}
