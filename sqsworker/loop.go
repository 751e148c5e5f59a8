package sqsworker

import (
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
