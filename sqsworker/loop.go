package sqsworker

import (
	"container/heap"
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// loop owns everything a running worker knows: deliveries, leases, groups, room. One goroutine, that of Run, reads and
// changes it, so that nothing here is locked and every decision sees one consistent state. Calls to SQS and handlers run
// on goroutines of their own and hand back what to do with their result as an event.
type loop struct {
	*Worker
	queue queue

	events chan event
	ended  chan struct{}  // closed: nobody reads events any more
	calls  sync.WaitGroup // to SQS; not handlers, which may never return
	stop   <-chan struct{}

	// None of these is cancelled when Run's context ends.
	callCtx    context.Context
	endCalls   context.CancelFunc
	pollCtx    context.Context
	endPolls   context.CancelFunc
	handlerCtx context.Context
	endHandler context.CancelCauseFunc
	holdingCtx context.Context // of handlers too: the message can be held

	schedule schedule
	room     room
	kept     reservation // room of what is held
	slots    int         // handlers that may still start
	table    map[string]*delivery
	counts   [gone + 1]int // deliveries by state
	ready    []*delivery   // to start, in order
	groups   map[string]*group
	orphans  map[string]*delivery // handlers that run on after their lease was lost
	finished memory               // done: not to be run again

	polling  polling
	beating  *alarm
	slow     bool // the last extension's answer took long, or did not come
	deletes  batchQueue
	releases batchQueue
	stopping stopping
	noDLQ    sync.Once // logs a missing dead-letter queue
}

func newLoop(ctx context.Context, w *Worker, q queue) *loop {
	l := &loop{
		Worker: w, queue: q, stop: ctx.Done(),
		events: make(chan event, min(w.opts.InFlight, 1024)), ended: make(chan struct{}),
		room: newRoom(w.opts.InFlight, w.opts.Bytes), slots: w.opts.Concurrency,
		table: map[string]*delivery{}, groups: map[string]*group{}, orphans: map[string]*delivery{},
		polling: polling{target: 1},
	}
	base := context.WithoutCancel(ctx)
	l.callCtx, l.endCalls = context.WithCancel(base)
	l.pollCtx, l.endPolls = context.WithCancel(base)
	l.handlerCtx, l.endHandler = context.WithCancelCause(base)
	l.holdingCtx = settle.WithHolding(l.handlerCtx)
	l.deletes.send, l.releases.send = l.sendDeletes, l.sendReleases
	l.deletes.limit = max(leastDeleters, w.opts.Receivers)
	return l
}

// idleTurn is the longest the loop sleeps, so that Health can tell a stuck loop from an idle one.
const idleTurn = 10 * time.Second

func (l *loop) run() error {
	defer l.close()
	timer := time.NewTimer(idleTurn)
	defer timer.Stop()
	l.state.Store(stateRunning)
	hurry := l.hurry
	for {
		l.turn()
		if l.over() {
			return l.report()
		}
		timer.Reset(l.sleep())
		select {
		case e := <-l.events:
			l.handle(e)
			runtime.Gosched() // goroutines that are ready to run may have events too: one turn for all of them
			for len(l.events) > 0 {
				l.handle(<-l.events)
			}
		case <-timer.C:
		case <-l.stop:
			l.stop = nil
			l.beginStop(nil)
		case <-hurry:
			hurry = nil
			l.beginStop(nil)
			l.cancelHandlers()
		}
	}
}

// turn does what has become possible or due.
func (l *loop) turn() {
	now := l.now()
	l.lastTurn.Store(now.UnixNano())
	l.schedule.run(now)
	l.startReady()
	l.flush(&l.deletes, false)
	l.flush(&l.releases, false)
	l.ask()
}

func (l *loop) sleep() time.Duration {
	if at, ok := l.schedule.next(); ok {
		return max(0, min(idleTurn, at.Sub(l.now())))
	}
	return idleTurn
}

// event is what happened beside the loop: one of the types in handle.
type event any

// handle has the loop act on an event.
func (l *loop) handle(e event) {
	switch e := e.(type) {
	case received:
		l.received(e)
	case receiveFailed:
		l.receiveFailed(e)
	case handlerReturned:
		l.handlerReturned(e)
	case deletesAnswered:
		l.deletesAnswered(e)
	case visibilityChanged:
		l.visibilityChanged(e)
	case deadLettered:
		l.deadLettered(e)
	case holderEnded:
		l.holderEnded(e)
	}
}

// put hands an event to the loop, from any other goroutine. When the loop has ended the event is dropped: a stuck handler
// that returns then has nobody to tell.
func (l *loop) put(e event) {
	select {
	case l.events <- e:
	case <-l.ended:
	}
}

// call runs f, which calls SQS, beside the loop. The loop gets the event that f returns, if any.
func (l *loop) call(f func() event) {
	l.calls.Go(func() {
		if e := f(); e != nil {
			l.put(e)
		}
	})
}

// later runs f on the loop.
func (l *loop) later(d time.Duration, f func()) *alarm { return l.schedule.add(l.now().Add(d), f) }

// close ends what is left; nothing is unless the stop's time was over.
func (l *loop) close() {
	close(l.ended)
	l.endPolls()
	l.endCalls()
	l.endHandler(sqsonce.ErrShutdown)
	l.calls.Wait()
}

// schedule is what the loop does later: one heap of alarms and, in the loop, one timer for the first of them.
type schedule struct{ alarms alarmHeap }

type alarm struct {
	at    time.Time
	ring  func()
	index int // in the heap; -1: rung or cancelled
}

func (s *schedule) add(at time.Time, ring func()) *alarm {
	a := &alarm{at: at, ring: ring}
	heap.Push(&s.alarms, a)
	return a
}

// cancel of an alarm that has rung, or of nil, does nothing.
func (s *schedule) cancel(a *alarm) {
	if a != nil && a.index >= 0 {
		heap.Remove(&s.alarms, a.index)
	}
}

// next returns when the first alarm rings.
func (s *schedule) next() (at time.Time, ok bool) {
	if len(s.alarms) == 0 {
		return time.Time{}, false
	}
	return s.alarms[0].at, true
}

// run rings what is due. An alarm set meanwhile for now or earlier rings too.
func (s *schedule) run(now time.Time) {
	for len(s.alarms) > 0 && !s.alarms[0].at.After(now) {
		heap.Pop(&s.alarms).(*alarm).ring()
	}
}

type alarmHeap []*alarm

func (h alarmHeap) Len() int           { return len(h) }
func (h alarmHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *alarmHeap) Push(x any) {
	a := x.(*alarm)
	a.index = len(*h)
	*h = append(*h, a)
}
func (h *alarmHeap) Pop() any {
	old := *h
	a := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	a.index = -1
	return a
}
