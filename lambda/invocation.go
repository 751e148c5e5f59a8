package lambda

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// invocation is one event on its way.
type invocation struct {
	*adapter
	records  []events.SQSMessage
	messages []sqsonce.Message // one allocation for all; filled as handlers start
	slots    []slot
	chains   chains
	budget   budget
	begun    time.Time
	killAt   time.Time

	ctx       context.Context // of the handlers
	end       context.CancelFunc
	sends     context.Context // of sends to the dead-letter queue: ends when the results are closed
	stopSends context.CancelFunc

	limit   int64        // of workers
	hired   atomic.Int64 // workers
	cursor  atomic.Int64 // the next chain that no worker has taken
	workers atomic.Int64 // that have not ended
	ended   chan struct{}
}

func (a *adapter) begin(ctx context.Context, records []events.SQSMessage) *invocation {
	v := &invocation{
		adapter: a, records: records, begun: time.Now(),
		messages: make([]sqsonce.Message, len(records)), slots: make([]slot, len(records)),
		chains: newChains(records, host.IsFIFO(records[0].EventSourceARN)),
		budget: budget{grace: leastMargin / 2}, ended: make(chan struct{}),
	}
	if deadline, ok := ctx.Deadline(); ok {
		v.budget = newBudget(a.opts.Margin, v.begun, deadline)
		if a.alone {
			v.killAt = deadline
		}
		v.ctx, v.end = context.WithDeadlineCause(ctx, v.budget.stop, sqsonce.ErrShutdown)
		if !v.begun.Before(v.budget.stop) {
			a.log.ErrorContext(ctx, "lambda: nothing started: no more than the margin remains", "remaining", deadline.Sub(v.begun))
		}
	} else {
		v.ctx, v.end = context.WithCancel(ctx)
	}
	v.sends, v.stopSends = context.WithCancel(context.WithoutCancel(ctx))
	return v
}

// run starts the first worker. The channel is closed when all have ended.
func (v *invocation) run() <-chan struct{} {
	v.limit = int64(min(v.opts.Concurrency, v.chains.count(len(v.records))))
	v.hire()
	return v.ended
}

// hire starts another worker up to the limit. Each is started by the one before it as that one begins its first chain:
// all are there at once where handlers wait for something, and where they return at once the first few do it all.
func (v *invocation) hire() {
	if v.hired.Add(1) > v.limit {
		return
	}
	v.workers.Add(1)
	go v.work(true)
}

// work runs chains until none is left, and hires another worker when it has one. The handlers run on this goroutine, which
// runtime.Goexit in one of them ends: another takes its place, or the chains that are left would never be tried.
func (v *invocation) work(hires bool) {
	left := false
	defer func() {
		if !left {
			go v.work(false)
			return
		}
		if v.workers.Add(-1) == 0 {
			close(v.ended)
		}
	}()
	for n := v.chains.count(len(v.records)); ; {
		i := int(v.cursor.Add(1)) - 1
		if i >= n {
			break
		}
		if hires && i+1 < n {
			hires = false
			v.hire()
		}
		v.runChain(v.chains.head(i))
	}
	left = true
}

// runChain runs the records of a chain one after the other, up to the first that does not succeed or the invocation's
// margin. The rest stays unstarted, so that no message of a group is deleted before an earlier one.
func (v *invocation) runChain(i int) {
	for i >= 0 && v.ctx.Err() == nil && v.handle(i) {
		i = v.chains.after(i)
	}
}

// wait returns when the workers have ended, or when the handlers' grace is over.
func (v *invocation) wait(ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-v.ctx.Done():
	}
	grace := time.NewTimer(v.budget.grace)
	defer grace.Stop()
	select {
	case <-ended:
	case <-grace.C:
	}
}

// results are what became of the records when they were closed. No handler changes them any more.
type results struct {
	states []state
	counts [abandoned + 1]int
}

// close ends every slot. From here on a handler that returns, a send that is confirmed and a worker that is about to
// start come too late.
func (v *invocation) close() results {
	r := results{states: make([]state, len(v.slots))}
	for i := range v.slots {
		s := v.slots[i].close()
		r.states[i] = s
		r.counts[s]++
		if s == abandoned {
			v.abandon(i)
		}
	}
	v.stopSends()
	return r
}

func (v *invocation) abandon(i int) {
	n := v.ghosts.Add(1)
	r := &v.records[i]
	v.log.ErrorContext(v.ctx, "lambda: handler does not return after its context has ended: abandoned",
		keyMessage, r.MessageId, keyGroup, r.Attributes["MessageGroupId"], "abandoned_running", n)
}
