package sqsworker

import (
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// listRunning returns the oldest handlers that run, and their number. Handlers that the stop has abandoned are among them until they
// return, also after Run.
func (w *Worker) listRunning(limit int) (oldest []host.RunningHandler, total int) {
	return w.counters.running.list(limit, w.now())
}

// runningHandlers are the deliveries whose handlers run, in the order of their start. A reader keeps the loop and the handlers waiting for the first thousand at most.
type runningHandlers struct {
	mu sync.Mutex
	chain
}

// runningDelivery is the part of a delivery that runningHandlers has. The lock of that guards it.
type runningDelivery struct {
	receiveCount int
	hiddenUntil  time.Time // as the lease proves
	lost, stuck  bool
}

// see takes over what the loop knows of the delivery.
func (r *runningDelivery) see(d *delivery) {
	r.receiveCount, r.hiddenUntil = d.lease.count, d.lease.anchor.Add(d.lease.span)
	r.lost, r.stuck = d.lease.lost, d.stuck
}

// add is called by the loop, and remove when the handler has returned. A delivery has one handler at a time.
func (r *runningHandlers) add(d *delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d.running.see(d)
	r.push(d)
}

func (r *runningHandlers) remove(d *delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.chain.remove(d)
}

// changed is called by the loop after a change of the lease or of stuck, for a delivery that may have no handler.
func (r *runningHandlers) changed(d *delivery) {
	if d.state != running {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	d.running.see(d)
}

// oldest returns how long the oldest has run; 0: none does.
func (r *runningHandlers) oldest(now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.first == nil {
		return 0
	}
	return now.Sub(r.first.began)
}

func (r *runningHandlers) list(limit int, now time.Time) (oldest []host.RunningHandler, total int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	oldest = make([]host.RunningHandler, 0, min(limit, r.count))
	for d := r.first; d != nil && len(oldest) < limit; d = r.next(d) {
		h := host.RunningHandler{
			MessageID: d.m.ID, Group: d.m.Group, ReceiveCount: d.running.receiveCount, Since: d.began,
			Lease: -elapsed(now, d.running.hiddenUntil), Stuck: d.running.stuck, Key: d.key.String,
		}
		if d.running.lost {
			h.Lease = min(h.Lease, 0)
		}
		oldest = append(oldest, h)
	}
	return oldest, r.count
}
