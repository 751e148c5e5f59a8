package sqsworker

import (
	"container/heap"
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/settle"
	"github.com/sqsonce/sqsonce/internal/stack"
)

// loop is the state of a running worker. One goroutine, that of Run, reads and changes it. So it needs no locks, and every
// decision sees one consistent state. Handlers and calls of SQS run on goroutines of their own, and post their results as
// events.
type loop struct {
	*Worker
	queue queue
	opts  Options // SetConcurrency changes it
	receiving
	handling
	postponing
	settling
	life
}

// receiving is the loop's knowledge of receives.
type receiving struct {
	polling  polling
	permits  permits
	clock    serverClock
	capacity capacity
	needs    needs
	suspects suspects
}

// handling is the messages that are here, and their handlers.
type handling struct {
	deliveries  map[string]*delivery // by message ID
	orphans     map[string]*delivery // by message ID: their handlers still run after the lease was lost
	groups      map[string]*group
	counts      [gone + 1]int // deliveries by state
	heldAs      map[*reason]int64
	ready       []*delivery // to start, in this order; those that have another state by now are passed over
	slots       slots
	startAfter  time.Time // the end of an outage: see letOthersComplete
	maxAttempts int       // of the head of a FIFO group
	pace        pace
	parked      amount // of messages that wait outside MaxInFlight
	parkedAs    [kinds]amount
	again       again
}

// settling is the calls that tell SQS about messages.
type settling struct {
	heartbeat     *timer // for the next look at the leases
	extensions    slowdown
	extensionTook time.Duration // by the last extension that was answered
	extensionAt   time.Time     // when it was
	extendAgain   time.Time     // when entries whose extension failed are extended again
	deletes       batchQueue
	releases      batchQueue
	finished      finished
	deadLetters   deadLetters
	reads         reads
	signatures    signatures
}

// life is the loop's goroutines, contexts and timers, from its start to its stop.
type life struct {
	schedule schedule
	stopping stopping

	events        chan event
	idle          chan func() event // to goroutines that wait for a call to make
	closed        chan struct{}     // closed when nobody reads events any more
	calls         sync.WaitGroup    // of SQS, and watches of peers; not handlers, which may never return
	stop          <-chan struct{}   // closed when the stop is to begin; nil: noticed
	shutdownAsked <-chan struct{}   // closed by Shutdown; nil: noticed

	// None of these is cancelled when Run's context is.
	callCtx          context.Context
	cancelCallCtx    context.CancelFunc
	deleteEnds       host.Ends // from callCtx
	pollCtx          context.Context
	cancelPollCtx    context.CancelFunc
	pollEnds         host.Ends // from pollCtx
	handlerCtx       context.Context
	cancelHandlerCtx context.CancelCauseFunc
}

func newLoop(ctx context.Context, w *Worker, q queue) *loop {
	l := &loop{
		Worker: w, queue: q, opts: w.opts,
		receiving: receiving{polling: polling{target: 1, long: longPoll{wait: w.opts.WaitTime}}, capacity: newCapacity(w.opts.MaxInFlight, w.opts.MaxBytes), needs: newNeeds(w.warm)},
		handling: handling{
			deliveries: map[string]*delivery{}, orphans: map[string]*delivery{}, groups: map[string]*group{}, heldAs: map[*reason]int64{},
			maxAttempts: q.maxAttempts(w.opts.MaxAttempts), pace: pace{running: chain{which: chainPace}},
		},
		life: life{
			events: make(chan event, min(w.opts.MaxInFlight, 1024)), idle: make(chan func() event), closed: make(chan struct{}),
			stop: ctx.Done(), shutdownAsked: w.shutdownCtx.Done(),
		},
	}
	l.line.taken = map[string]int{}
	l.line.limit(&l.opts, amount{})
	base := context.WithoutCancel(ctx)
	l.callCtx, l.cancelCallCtx = context.WithCancel(base)
	l.pollCtx, l.cancelPollCtx = context.WithCancel(base)
	l.handlerCtx, l.cancelHandlerCtx = context.WithCancelCause(settle.WithHolding(settle.WithLongestReturn(base, q.longestReturn)))
	l.deletes.send, l.releases.send = l.sendDeletes, l.sendReleases
	l.deletes.maxCalls = max(minDeletes, w.opts.MaxReceivers)
	return l
}

// maxSleep is the longest that the loop sleeps, so that Health can tell a blocked loop from an idle one.
const maxSleep = 10 * time.Second

func (l *loop) run() error {
	defer l.close()
	wake := time.NewTimer(maxSleep)
	defer wake.Stop()
	l.state.Store(stateRunning)
	l.adoptConcurrency()
	l.reads.began, l.reads.deniedLogged = l.now(), l.queue.denied
	l.readAgainIn(l.nextRead(nil))
	for {
		l.noticeStop()
		l.step()
		if l.stopFinished() {
			return l.report()
		}
		wake.Reset(l.sleep())
		select {
		case e := <-l.events:
			e.arrive(l)
			runtime.Gosched()
			for len(l.events) > 0 {
				(<-l.events).arrive(l)
			}
		case <-wake.C:
		case <-l.control.changed:
			l.adoptConcurrency()
		case <-l.stop:
		case <-l.shutdownAsked:
		}
	}
}

// step does what has become possible or due.
func (l *loop) step() {
	now := l.now()
	l.lastStep.Store(now.UnixNano())
	l.schedule.run(now)
	l.chooseTrial()
	l.runSuspects()
	l.runDue()
	l.startReady()
	l.flush(&l.deletes, false)
	l.flush(&l.releases, false)
	l.startReceives()
	l.noteTurn()
}

func (l *loop) sleep() time.Duration {
	if at, ok := l.schedule.next(); ok {
		return max(0, min(maxSleep, at.Sub(l.now())))
	}
	return maxSleep
}

// event is a result from another goroutine.
type event interface{ arrive(l *loop) }

func (e received) arrive(l *loop)          { l.received(e) }
func (e receiveFailed) arrive(l *loop)     { l.receiveFailed(e) }
func (e pollAsked) arrive(l *loop)         { l.pollAsked(e) }
func (e intakeAnswered) arrive(l *loop)    { l.intakeAnswered(e) }
func (e timeoutBegan) arrive(l *loop)      { l.markStuckAfter(e.d, e.timeout) }
func (e handlerReturned) arrive(l *loop)   { l.handlerReturned(e) }
func (e questionAnswered) arrive(l *loop)  { l.questionAnswered(e) }
func (e peerEnded) arrive(l *loop)         { l.peerEnded(e) }
func (e deletesAnswered) arrive(l *loop)   { l.deletesAnswered(e) }
func (e visibilityChanged) arrive(l *loop) { l.visibilityChanged(e) }
func (e deadLettered) arrive(l *loop)      { l.deadLettered(e) }
func (e queueRead) arrive(l *loop)         { l.queueRead(e) }

// post hands an event to the loop, from any other goroutine. It drops the event when the loop has ended, as when a stuck
// handler returns after Run.
func (l *loop) post(e event) {
	select {
	case l.events <- e:
	case <-l.closed:
	}
}

// call runs f, which calls SQS, on another goroutine, and posts the event that it returns. The goroutine then makes the next
// call, if there is one soon: a call of the SDK takes 30 KB of stack, and a tenth of a busy worker's CPU time would go into
// growing it anew for each.
func (l *loop) call(f func() event) {
	select {
	case l.idle <- f:
	default:
		l.calls.Go(func() { l.makeCalls(f) })
	}
}

func (l *loop) makeCalls(f func() event) {
	idle := time.NewTimer(time.Second)
	defer idle.Stop()
	for {
		stack.Grow() // also again: the garbage collector has made an idle one smaller
		l.post(f())
		idle.Reset(time.Second)
		select {
		case f = <-l.idle:
		case <-idle.C:
			return
		case <-l.closed:
			return
		}
	}
}

// after runs f on the loop when d is over.
func (l *loop) after(d time.Duration, f func()) *timer { return l.schedule.add(l.now().Add(d), f) }

// wakeAfter has the loop make a step when d is over.
func (l *loop) wakeAfter(d time.Duration) { l.after(d, func() {}) }

// closeTimeout is how long the end of Run waits for the user's code that settles messages, see settle.
const closeTimeout = time.Second

// close cancels what is still under way. After a clean stop nothing is.
func (l *loop) close() {
	close(l.closed)
	l.cancelPollCtx()
	l.cancelCallCtx()
	l.cancelHandlerCtx(sqsonce.ErrShutdown)
	ended := make(chan struct{})
	go func() {
		l.calls.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(closeTimeout):
	}
}

// schedule has the loop's later work. The loop sleeps until the first of its timers is due.
type schedule struct{ timers timerHeap }

type timer struct {
	at    time.Time
	run   func()
	index int // in the heap; -1: has run, or was cancelled
}

func (s *schedule) add(at time.Time, run func()) *timer {
	t := &timer{at: at, run: run}
	heap.Push(&s.timers, t)
	return t
}

// cancel does nothing if t has run, or is nil.
func (s *schedule) cancel(t *timer) {
	if t.pending() {
		heap.Remove(&s.timers, t.index)
	}
}

func (t *timer) pending() bool { return t != nil && t.index >= 0 }

// next returns when the first timer is due.
func (s *schedule) next() (at time.Time, ok bool) {
	if len(s.timers) == 0 {
		return time.Time{}, false
	}
	return s.timers[0].at, true
}

// run runs what is due, also what is added meanwhile for now or earlier.
func (s *schedule) run(now time.Time) {
	for len(s.timers) > 0 && !s.timers[0].at.After(now) {
		heap.Pop(&s.timers).(*timer).run()
	}
}

// timerHeap implements heap.Interface, the earliest timer first.
type timerHeap []*timer

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timerHeap) Push(x any) {
	t := x.(*timer)
	t.index = len(*h)
	*h = append(*h, t)
}
func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.index = -1
	return t
}
