package sqsworker

import (
	"context"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce"
)

// loop owns everything a running worker knows: deliveries, leases, groups, room. One goroutine, that of Run, reads and
// changes it, so that nothing here is locked and every decision sees one consistent state. Calls to SQS and handlers run
// on goroutines of their own and hand back what to do with their result as an event.
type loop struct {
	*Worker
	queue queue

	events chan func()
	done   chan struct{}  // closed when nobody reads events any more
	calls  sync.WaitGroup // goroutines of calls, not of handlers: those may never return
	stop   <-chan struct{}

	// None of these is cancelled when Run's context ends.
	callCtx    context.Context
	endCalls   context.CancelFunc
	pollCtx    context.Context
	endPolls   context.CancelFunc
	handlerCtx context.Context
	endHandler context.CancelCauseFunc

	schedule schedule
	room     room
	slots    int // handlers that may still start
	table    map[string]*delivery
	counts   [gone + 1]int // deliveries by state
	ready    []*delivery   // to start, in order
	groups   map[string]*group
	orphans  map[string]*delivery // handlers that run on after their lease was lost
	finished memory               // done: not to be run again

	polling  polling
	beating  *alarm
	deletes  outbox
	releases outbox
	stopping stopping
	noDLQ    sync.Once // logs a missing dead-letter queue
}

func newLoop(ctx context.Context, w *Worker, q queue) *loop {
	l := &loop{
		Worker: w, queue: q, stop: ctx.Done(),
		events: make(chan func(), 64), done: make(chan struct{}),
		room: newRoom(w.opts.InFlight, w.opts.Bytes), slots: w.opts.Concurrency,
		table: map[string]*delivery{}, groups: map[string]*group{}, orphans: map[string]*delivery{},
		polling: polling{target: 1},
	}
	base := context.WithoutCancel(ctx)
	l.callCtx, l.endCalls = context.WithCancel(base)
	l.pollCtx, l.endPolls = context.WithCancel(base)
	l.handlerCtx, l.endHandler = context.WithCancelCause(base)
	l.deletes.send, l.releases.send = l.sendDeletes, l.sendReleases
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
		case event := <-l.events:
			event()
			l.drain()
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
	l.flushOutbox(&l.deletes, false)
	l.flushOutbox(&l.releases, false)
	l.ask()
}

// drain takes the events that are already there, so that one turn answers for all of them: fuller batches.
func (l *loop) drain() {
	for range cap(l.events) {
		select {
		case event := <-l.events:
			event()
		default:
			return
		}
	}
}

func (l *loop) sleep() time.Duration {
	if at, ok := l.schedule.next(); ok {
		return max(0, min(idleTurn, at.Sub(l.now())))
	}
	return idleTurn
}

// call runs f beside the loop; what it returns runs on the loop.
func (l *loop) call(f func() (event func())) {
	l.calls.Go(func() { l.post(f()) })
}

// post hands an event to the loop. After the loop's end it is dropped: a stuck handler that returns then has nobody to
// tell.
func (l *loop) post(event func()) {
	select {
	case l.events <- event:
	case <-l.done:
	}
}

// later runs f on the loop.
func (l *loop) later(d time.Duration, f func()) *alarm { return l.schedule.add(l.now().Add(d), f) }

// close ends what is left; nothing is unless the stop's time was over.
func (l *loop) close() {
	close(l.done)
	l.endPolls()
	l.endCalls()
	l.endHandler(sqsonce.ErrShutdown)
	l.calls.Wait()
}
