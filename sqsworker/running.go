package sqsworker

import (
	"sync"
	"time"

	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// RunningHandler is a handler that runs, as [Worker.Running] saw it. It holds its message with the body, so don't keep it.
type RunningHandler struct {
	MessageID    string
	Group        string // of the message. Messages of standard queues may have one too
	ReceiveCount int    // of the newest receive of the message
	Since        time.Time
	// Lease is for how long SQS hides the message at least, as far as that is proven. If it is 0 or less, another consumer may
	// have the message.
	Lease time.Duration
	Stuck bool // it did not return within StopGrace after its context was cancelled

	key eventKey
}

// Key returns the key of the event. This is the key that deduplication uses, without the consumer, else the key in the
// message's attributes, else "". Key does not read the body. The key may be personal.
func (h RunningHandler) Key() string {
	if key := settle.KnownKey(h.key.handler); key != "" {
		return key
	}
	raw := sqstypes.Message{MessageId: h.key.raw.MessageId, MessageAttributes: h.key.raw.MessageAttributes}
	key, source, err := decode(&raw, h.key.queueARN).Key()
	if err != nil || source == sqsonce.KeyFromMessageID { // whether it is the event's, only the body says
		return ""
	}
	return key
}

// Running returns the handlers that run, stuck ones included, the oldest first and at most limit, and their total number.
// Handlers that the stop has abandoned are among them until they return, also after Run. You may call it at any time, from
// any goroutine. Its cost depends on limit, not on the number of handlers.
func (w *Worker) Running(limit int) (oldest []RunningHandler, total int) {
	return w.counters.running.list(limit, w.now())
}

// runningHandlers are the deliveries whose handlers run, in the order of their start. It is a list through the deliveries, so
// it doesn't need memory of its own. A reader keeps the loop and the handlers waiting for the first thousand at most.
type runningHandlers struct {
	mu          sync.Mutex
	first, last *delivery
	count       int
}

// runningDelivery is the part of a delivery that runningHandlers has. The lock of that guards it.
type runningDelivery struct {
	before, behind *delivery
	receiveCount   int
	hiddenUntil    time.Time // as the lease proves
	lost, stuck    bool
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
	d.running = runningDelivery{before: r.last}
	d.running.see(d)
	if r.last == nil {
		r.first = d
	} else {
		r.last.running.behind = d
	}
	r.last = d
	r.count++
}

func (r *runningHandlers) remove(d *delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, behind := d.running.before, d.running.behind
	if before == nil {
		r.first = behind
	} else {
		before.running.behind = behind
	}
	if behind == nil {
		r.last = before
	} else {
		behind.running.before = before
	}
	d.running = runningDelivery{}
	r.count--
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

func (r *runningHandlers) list(limit int, now time.Time) (oldest []RunningHandler, total int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	oldest = make([]RunningHandler, 0, min(limit, r.count))
	for d := r.first; d != nil && len(oldest) < limit; d = d.running.behind {
		h := RunningHandler{
			MessageID: d.m.ID, Group: d.m.Group, ReceiveCount: d.running.receiveCount, Since: d.began,
			Lease: -elapsed(now, d.running.hiddenUntil), Stuck: d.running.stuck, key: d.key,
		}
		if d.running.lost {
			h.Lease = min(h.Lease, 0)
		}
		oldest = append(oldest, h)
	}
	return oldest, r.count
}
