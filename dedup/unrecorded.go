package dedup

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"
)

const (
	// mostUnrecorded is how many bytes the successes may have that a Once keeps: more than 10,000 without results. Beyond it the
	// oldest ones are forgotten.
	mostUnrecorded = 16 << 20
	// unrecordedFor is how long they are kept: SQS hides no message for longer.
	unrecordedFor = 12 * time.Hour
)

// success is a handler's success, and the record that is to be completed with it.
type success struct {
	lease   Lease
	result  Result
	since   time.Time
	message string // its ID, for log lines

	failed   error // the last complete's, which is to be sent again
	refusals int   // completes that failed in a row, each with a renewal that passed after it
	stripped bool  // of its hash and result
}

// refused reports whether the store refuses the complete without hash and result too, and answers otherwise.
func (s *success) refused() bool { return s.stripped && s.refusals >= mostRefusals }

// size is about what the success occupies, in bytes.
func (s *success) size() int { return 1024 + len(s.lease.Key) + len(s.result.Data) }

// isBare reports whether the success has nothing that a store could refuse to keep.
func (s *success) isBare() bool { return reflect.DeepEqual(s.result, s.result.bare()) }

// bare is the result without what a store could refuse to keep.
func (r Result) bare() Result {
	r.Data, r.Validation, r.Skipped = nil, "", nil
	return r
}

// unrecorded are the successes whose records the store did not complete while their hosts had the messages. The process goes
// on to complete them, one call after the other, and a redelivery of such an event does so before anything else. The store
// refuses the complete if another owner took the record over meanwhile. A timer waits for the next call, and not a goroutine,
// because a Once does not need a Close.
type unrecorded struct {
	mu      sync.Mutex
	byKey   map[string]success
	size    int      // of all of them, in bytes
	queue   []string // keys, the next one to try first; one that is not in byKey is passed over
	pending bool     // a timer is set, or a call is under way
}

// keep keeps a success whose delivery goes on to complete its record by itself.
func (u *unrecorded) keep(s success) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byKey == nil {
		u.byKey = make(map[string]success)
	}
	u.drop(s.lease.Key)
	u.byKey[s.lease.Key] = s
	u.size += s.size()
}

// add keeps a success. work is called with one after the other, with a pause after each that returns false.
func (u *unrecorded) add(s success, work func(*success) (done bool)) {
	u.keep(s)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.queue = append(u.queue, s.lease.Key)
	for ; u.size > mostUnrecorded && len(u.queue) > 0; u.queue = u.queue[1:] {
		u.drop(u.queue[0])
	}
	if !u.pending {
		u.pending = true
		time.AfterFunc(firstBackoff, func() { u.run(work) })
	}
}

// run attempts one after the other while they succeed. Each that fails goes to the end: a record that cannot be completed
// holds up no other.
func (u *unrecorded) run(work func(*success) bool) {
	for {
		s, ok := u.next()
		if !ok {
			return
		}
		if !work(&s) {
			u.update(s)
			time.AfterFunc(max(firstBackoff, min(30*time.Second, time.Since(s.since)/60)), func() { u.run(work) })
			return
		}
		u.remove(s)
	}
}

// next returns the first success of the queue, which goes to its end. Without one nothing is pending.
func (u *unrecorded) next() (success, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for len(u.queue) > 0 {
		key := u.queue[0]
		u.queue = u.queue[1:]
		s, ok := u.byKey[key]
		if !ok {
			continue
		}
		if time.Since(s.since) < unrecordedFor {
			u.queue = append(u.queue, key)
			return s, true
		}
		u.drop(key)
	}
	u.pending = false
	return success{}, false
}

func (u *unrecorded) get(key string) (success, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s, ok := u.byKey[key]
	return s, ok
}

// update notes what an attempt has changed, unless a later success of the event is kept.
func (u *unrecorded) update(s success) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if old := u.byKey[s.lease.Key]; old.lease.Owner == s.lease.Owner {
		u.byKey[s.lease.Key] = s
		u.size += s.size() - old.size()
	}
}

// remove forgets a success, unless a later one of its event is kept.
func (u *unrecorded) remove(s success) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byKey[s.lease.Key].lease.Owner == s.lease.Owner {
		u.drop(s.lease.Key)
	}
}

func (u *unrecorded) drop(key string) {
	if s, ok := u.byKey[key]; ok {
		u.size -= s.size()
		delete(u.byKey, key)
	}
}

// recordLater completes a record in the background, and reports whether the store has answered.
func (o *Once) recordLater(s *success) (done bool) {
	err := o.attempt(context.Background(), s)
	if retryable(err) {
		return false
	}
	o.recorded(*s, err)
	return true
}

// recorded notes the store's answer to a late complete.
func (o *Once) recorded(s success, err error) {
	if err == nil {
		o.cache.add(s.lease.Key, s.result.Validation)
		o.o.Logger.InfoContext(context.Background(), "dedup: record of an earlier success completed", named(s.message, s.lease.Key, "after", time.Since(s.since).Round(time.Millisecond))...)
		return
	}
	o.o.Logger.WarnContext(context.Background(), "dedup: record of an earlier success not completed: its event may run again", named(s.message, s.lease.Key, "error", err)...)
}

// completeEarlier decides a delivery of an event that succeeded here, and whose record is not completed yet. known is false without
// such a success, and where the store refuses it: another owner has the record.
func (o *Once) completeEarlier(ctx context.Context, t *task) (known bool, err error) {
	s, ok := o.unrecorded.get(t.key)
	if !ok {
		return false, nil
	}
	err = o.callComplete(context.WithoutCancel(ctx), &s)
	switch {
	case retryable(err) && o.o.OnCompleteFailed == OnCompleteFailedAcknowledge:
		return true, o.duplicate(ctx, t, s.result, true)
	case retryable(err):
		err = o.notYet(&s, fmt.Errorf("dedup: handler succeeded in an earlier delivery, record not completed yet, handler not called %s: %w", o.record(t.key), err))
		o.decided(ctx, t, Decision{Outcome: DecidedStoreError, Err: err})
		return true, err
	}
	o.unrecorded.remove(s)
	o.recorded(s, err)
	if err != nil {
		return false, nil
	}
	return true, o.duplicate(ctx, t, s.result, true)
}
