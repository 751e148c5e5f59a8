package lambda

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// invocation is the handling of one event.
type invocation struct {
	*adapter
	records []record
	slots   []slot
	chains  [][]int
	times   times
	begun   time.Time
	killAt  time.Time
	// remaining is the time from begun to the deadline in whole seconds, rounded up; 0: there is no deadline.
	remaining time.Duration

	ctx         context.Context // of the handlers
	cancel      context.CancelFunc
	sendCtx     context.Context // of sends to the dead-letter queue; ends when the results are closed
	cancelSends context.CancelFunc

	queue atomic.Pointer[queueRead] // nil: not read

	handlers   pool[[]int]   // chains, each from the record that is to run
	alone      pool[[]int]   // chains of suspects, one at a time
	sends      pool[failure] // failures that the dead-letter queue may get; they take no handler's slot
	overdue    atomic.Bool   // the dead-letter queue did not answer a send in time
	anyStarted atomic.Bool   // a message: see mayStart
	down       atomic.Bool   // a question fails
	suspects   suspects
	open       atomic.Int64  // chains that have not ended
	ended      chan struct{} // closed: open is 0
}

// newInvocation returns the invocation of an event. Nothing of it runs before start.
func (a *adapter) newInvocation(ctx context.Context, records []record) *invocation {
	v := &invocation{
		adapter: a, records: records, begun: time.Now(), slots: make([]slot, len(records)),
		chains: newChains(records, host.IsFIFO(records[0].QueueARN)),
		ended:  make(chan struct{}),
	}
	for _, chain := range v.chains {
		v.slots[chain[0]].head = true
	}
	v.open.Store(int64(len(v.chains)))
	v.handlers.limit, v.handlers.run = a.opts.Concurrency, v.runChain
	v.sends.limit, v.sends.run = a.opts.Concurrency, func(f failure, _ *worker) { v.settle(f) }
	v.times = newTimes(ctx, a.opts.Margin, v.begun)
	if v.times.limited() {
		v.remaining = (v.times.deadline.Sub(v.begun) + time.Second - 1).Truncate(time.Second)
		if a.oneInvocation {
			v.killAt = v.times.deadline
		}
	}
	return v
}

// start makes the contexts of the handlers and the sends from that of the Begin hooks.
func (v *invocation) start(ctx context.Context) {
	if v.times.limited() {
		v.ctx, v.cancel = context.WithDeadlineCause(ctx, v.times.at(handlersStop), sqsonce.ErrShutdown)
		if remaining := time.Until(v.times.deadline); remaining <= v.times.margin {
			v.log.ErrorContext(ctx, "lambda: no message started: only the margin remains before the deadline", "remaining", remaining)
		}
	} else {
		v.ctx, v.cancel = context.WithCancel(ctx)
	}
	v.sendCtx, v.cancelSends = context.WithCancel(context.WithoutCancel(ctx))
}

// newChains returns the indexes of the records in chains. The records of a chain run one after the other; chains run in
// parallel. On a FIFO queue a group is a chain, on a standard queue each record.
func newChains(records []record, fifo bool) [][]int {
	chains := make([][]int, 0, len(records))
	if !fifo {
		indexes := make([]int, len(records))
		for i := range indexes {
			indexes[i] = i
			chains = append(chains, indexes[i:i+1])
		}
		return chains
	}
	chainOf := map[string]int{} // by group
	for i := range records {
		// SQS accepts no message without a group ID; all records without one are a chain.
		group := records[i].Attributes.Group
		c, known := chainOf[group]
		if !known {
			c = len(chains)
			chainOf[group] = c
			chains = append(chains, nil)
		}
		chains[c] = append(chains[c], i)
	}
	return chains
}

// filled returns a closed channel with the items, for several goroutines to range over.
func filled[T any](items []T) <-chan T {
	c := make(chan T, len(items))
	for _, item := range items {
		c <- item
	}
	close(c)
	return c
}

// runChain runs the records of a chain one after the other, until one does not succeed, the handlers' context ends, too
// little time remains, or what they need is down. The others stay unstarted, so that no message of a group is deleted before an earlier one.
func (v *invocation) runChain(chain []int, w *worker) {
	for ; len(chain) > 0; chain = chain[1:] {
		if v.ctx.Err() != nil || v.down.Load() || !v.mayStart(chain[0]) {
			break
		}
		if !v.handle(chain, w) {
			return
		}
	}
	v.endChain(chain)
}

// endChain is called once for each chain, when none of its records runs or will run, or the one that runs is abandoned. The chain stays
// open while some of those that were not started are sent to the dead-letter queue.
func (v *invocation) endChain(unstarted []int) (sending bool) {
	if len(unstarted) > 0 && !v.slots[unstarted[0]].head && slices.ContainsFunc(unstarted, v.mayExpireBehind) {
		v.sends.add(failure{chain: unstarted, unstarted: true})
		return true
	}
	v.closeChain()
	return false
}

func (v *invocation) closeChain() {
	if v.open.Add(-1) == 0 {
		close(v.ended)
		return
	}
	v.suspects.mu.Lock()
	defer v.suspects.mu.Unlock()
	v.mayRunSuspects()
}

// wait returns when the chains have ended, or when the grace of the handlers is over.
func (v *invocation) wait() {
	select {
	case <-v.ended:
		return
	case <-v.ctx.Done():
	}
	grace := time.NewTimer(v.grace())
	defer grace.Stop()
	select {
	case <-v.ended:
	case <-grace.C:
	}
}

// closeHandlers ends the slots of handlers that have not returned, with their chains, and of records that were not started.
// It reports whether sends to the dead-letter queue are left: a handler may have returned just before, or not at all.
func (v *invocation) closeHandlers() (sending bool) {
	for i := range v.slots {
		s := &v.slots[i]
		switch {
		case s.change(unstarted, notStarted), s.is(notStarted):
			sending = v.mayExpireBehind(i) || sending
		case s.change(running, abandoned):
			v.replaceWorker(i)
			sending = v.abandon(v.chainFrom(i)) || sending
		case s.is(settling):
			sending = true
		}
	}
	return sending
}

// chainFrom returns the chain of a record, from it on.
func (v *invocation) chainFrom(record int) []int {
	for _, chain := range v.chains {
		if at := slices.Index(chain, record); at >= 0 {
			return chain[at:]
		}
	}
	return nil // each record is in a chain
}

// waitForSends gives the sends to the dead-letter queue their part of the margin.
func (v *invocation) waitForSends() {
	end := time.NewTimer(v.times.between(handlersClosed, sendsClosed))
	defer end.Stop()
	select {
	case <-v.ended:
	case <-end.C:
	}
}

// results are the final states of the records.
type results struct {
	states []state
	counts [expired + 1]int
}

// closeResults ends every slot. After it, nothing changes the results any more, not a send that is confirmed either.
func (v *invocation) closeResults() results {
	r := results{states: make([]state, len(v.slots))}
	for i := range v.slots {
		s := v.slots[i].close()
		r.states[i] = s
		r.counts[s]++
	}
	v.cancelSends()
	return r
}

func (v *invocation) logAbandoned(i int) {
	n := v.abandoned.Add(1)
	r := &v.records[i]
	v.log.ErrorContext(v.contextOf(&v.slots[i]), "lambda: handler abandoned: it did not return after the end of its context",
		keyMessage, r.ID, keyGroup, r.Attributes.Group, "abandoned_running", n)
}
