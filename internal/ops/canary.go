package ops

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
)

const (
	canaryPause   = time.Second // between two looks
	watchEvery    = 50          // messages
	watchPause    = time.Second
	mostWatched   = 20 // at once
	mostFailures  = 3
	defaultCanary = 1
	mostTexts     = 10 // have canaries: other ones of their classes have those of the class
	canaryTimeout = 2 * time.Minute
)

// sendCanaries sends the first messages of each class and reason, each when the event of the one before is completed, and returns the others.
// On FIFO those that stand before a canary in its group are sent before it.
func (r *run) sendCanaries(ctx context.Context, batch []*Message) (others, waiting []*Message) {
	for i, m := range batch {
		if !r.wantsCanary(m) {
			waiting = append(waiting, m)
			continue
		}
		if r.d.fifo && slices.ContainsFunc(waiting, func(w *Message) bool { return w.Group == m.Group }) {
			r.sendInLines(ctx, waiting)
			others, waiting = append(others, waiting...), nil
		}
		res := r.results[m.ID]
		decided := res.Action != ""
		if r.one(ctx, m, res); decided || res.Action != ActionUndeleted || res.Err != nil {
			continue
		}
		r.countCanary(m)
		res.Canary = r.o.CanaryTimeout + r.d.delayOf(ctx, res.Destination)
		err := r.delete(ctx, []*Result{res})
		r.tell([]*Result{res})
		if err == nil {
			err = r.awaitCompleted(ctx, m, res)
			r.tell([]*Result{res})
			r.d.join(ctx, slices.Concat(waiting, batch[i+1:])) // they have waited
		}
		if err != nil {
			r.fail(err) // for which the rest is left
		}
	}
	return others, waiting
}

// wantsCanary reports whether a message is to be sent as a canary: of its text, or of its class where too many texts have some.
func (r *run) wantsCanary(m *Message) bool {
	sent, known := r.canaryTexts[textOf(m)]
	if !known && len(r.canaryTexts) >= mostTexts {
		sent = r.canaries[m.Class.ID]
	}
	return sent < r.o.Canary
}

func (r *run) countCanary(m *Message) {
	r.canaries[m.Class.ID]++
	if _, known := r.canaryTexts[textOf(m)]; known || len(r.canaryTexts) < mostTexts {
		r.canaryTexts[textOf(m)]++
	}
}

// canaryText is a reason of a class: two that a class does not tell apart may have two causes.
type canaryText struct{ class, reason string }

func textOf(m *Message) canaryText { return canaryText{m.Class.ID, m.Reason} }

// awaitCompleted waits until a redriven event is completed, and returns ErrCanary where it is not.
func (r *run) awaitCompleted(ctx context.Context, m *Message, res *Result) (err error) {
	if res.After, err = r.d.awaitEnd(ctx, m, res.Canary, nil); err != nil {
		do := "Fix the cause"
		switch {
		case res.After == dedup.StateCrashed && !m.crashedBefore():
			do = CrashedWith(m.RecordKey)
		case res.After == dedup.StateCrashed:
			do = m.RecordKey + " probably kills its process: fix that before you free it"
		case res.After == StateUnknown && m.State == dedup.StateCrashed:
			do = "Under dedup.OnCrashBlock a consumer refuses it until its record is freed. Else --canary-timeout waits longer"
		case res.After == StateUnknown:
			do = "--canary-timeout waits longer, --canary 0 sends the others without one"
		}
		return fmt.Errorf("%w: %w. %s", ErrCanary, err, do)
	}
	return nil
}

// crashedBefore reports whether the event had crashed before it was sent, also where an operator has freed it since.
func (m *Message) crashedBefore() bool {
	return m.State == dedup.StateCrashed || m.Class.Crashed() || m.Record != nil && freedClass(m.Record.Note).Crashed()
}

// awaitEnd waits until the delivery of a copy has ended, and returns what after does, with no error for a completed event, and
// when ctx has ended. Where the delivery has not ended within the timeout, the state is unknown. tick is called before each wait, and
// ends it by an error.
func (d *DLQ) awaitEnd(ctx context.Context, m *Message, timeout time.Duration, tick func(left time.Duration) error) (dedup.RecordState, error) {
	for end := time.Now().Add(timeout); ; {
		state, why := d.after(ctx, m)
		left := time.Until(end)
		switch {
		case state == dedup.StateCompleted || ctx.Err() != nil:
			return state, nil
		case state != "":
			return state, why
		case left <= 0:
			return StateUnknown, fmt.Errorf("unknown within %s whether its event is completed: %w", timeout, why)
		}
		if tick != nil {
			if err := tick(left); err != nil {
				return "", err
			}
		}
		host.Wait(ctx, canaryPause)
	}
}

// mostDelay is the longest delay of a queue.
const mostDelay = 15 * time.Minute

// delayOf is how long a queue keeps a new message from its consumers, or mostDelay where SQS does not say. It is read once.
func (d *DLQ) delayOf(ctx context.Context, url string) time.Duration {
	if known, ok := d.delays.Load(url); ok {
		return known.(time.Duration)
	}
	name := sqstypes.QueueAttributeNameDelaySeconds
	attrs, err := d.attributes(ctx, url, name)
	if err != nil {
		return mostDelay
	}
	seconds, err := strconv.Atoi(attrs[string(name)])
	if err != nil {
		return mostDelay
	}
	delay := time.Duration(seconds) * time.Second
	d.delays.Store(url, delay)
	return delay
}

// after returns the state in which the delivery of a copy has left its event's record; "" as long as it has not ended, or where the
// record cannot be read. The error says how it is. m is the message as it was when the copy was sent.
func (d *DLQ) after(ctx context.Context, m *Message) (dedup.RecordState, error) {
	now := Message{Message: m.Message, RecordKey: m.RecordKey}
	switch err := d.inspect(ctx, &now); {
	case err != nil:
		return "", fmt.Errorf("record %s not read: %w", m.RecordKey, err)
	case now.Record == nil:
		return "", fmt.Errorf("%w. See that a consumer runs, and read its records by your own program with cli/, or by sqsonce-full --store", now.Problem)
	}
	delivered := m.Record == nil || now.Record.Fence > m.Record.Fence
	switch {
	case now.State == dedup.StateCompleted || delivered && now.State == dedup.StateReleased:
		return now.State, fmt.Errorf("record %s is %s: %s", m.RecordKey, now.State, now.Record.LastError)
	case delivered && now.State == dedup.StateCrashed: // its last error is of an earlier run
		return now.State, fmt.Errorf("record %s is %s", m.RecordKey, now.State)
	case !delivered:
		return "", fmt.Errorf("record %s is %s as before: see that a consumer runs", m.RecordKey, now.State)
	}
	return "", fmt.Errorf("record %s is %s", m.RecordKey, now.State)
}

// watched is a message that was sent, and whose event has not ended.
type watched struct {
	m   *Message
	res *Result
}

// watch adds every 50th of the messages that were sent.
func (r *run) watch(batch []*Message) {
	for _, m := range batch {
		if res := r.results[m.ID]; res.Action == ActionRedriven || res.Action == ActionUndeleted {
			if r.sent++; r.sent%watchEvery == 0 && r.d.opts.Store != nil && len(r.watched) < mostWatched {
				r.watched = append(r.watched, watched{m, res})
			}
		}
	}
}

// lookAtWatched looks what became of the watched events. The third that has failed again ends the run.
func (r *run) lookAtWatched(ctx context.Context) {
	if time.Since(r.looked) < watchPause {
		return
	}
	r.looked = time.Now()
	var waiting []watched
	for _, w := range r.watched {
		var why error
		w.res.After, why = r.d.after(ctx, w.m)
		r.tell([]*Result{w.res})
		switch w.res.After {
		case "":
			waiting = append(waiting, w)
		case dedup.StateReleased, dedup.StateCrashed:
			if r.failures++; r.failures == mostFailures {
				r.fail(fmt.Errorf("%w: %w", errFailsYet, why))
			}
		}
	}
	r.watched = waiting
}
