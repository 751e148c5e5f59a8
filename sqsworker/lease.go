package sqsworker

import (
	"cmp"
	"time"
)

// lease is the right to a message: its newest receipt handle, for as long as it is proven that SQS hides the message from
// others. The record of an event in the store has a lease of its own, which package dedup renews.
type lease struct {
	handle   string
	count    int // receive count of the handle's receive
	order    receiveOrder
	received time.Time // not later than SQS handed the message out; its 12 h count from here

	// The proof: SQS hides the message at least from anchor until anchor + span.
	anchor time.Time
	span   time.Duration

	due      time.Time // of the next extension, or of another try while the last one is not answered
	calls    int       // extensions under way
	failures int       // of extensions since the last success
	warned   bool      // a failed extension was logged
	unproven bool      // less than half of the visibility timeout was left at arrival: extended before the handler starts
	final    bool      // MaxExtension is reached: there are no more extensions
	refused  bool      // by an extension beside a delete; the answer to the delete decides
	lost     bool
}

// newLease returns the lease of a message that SQS did not hand out before received, see serverClock.handedOut.
func newLease(handle string, count int, at receiveOrder, received time.Time, visibility time.Duration, jitter float64) lease {
	return lease{
		handle: handle, count: count, order: at,
		received: received, anchor: received, span: visibility,
		due: received.Add(extensionInterval(visibility, jitter)),
	}
}

// receiveOrder is the position of a message among all that the worker has received.
type receiveOrder struct {
	receive  uint64
	position int // in the answer
}

func (a receiveOrder) compare(b receiveOrder) int {
	return cmp.Or(cmp.Compare(a.receive, b.receive), cmp.Compare(a.position, b.position))
}

// extensionInterval is the time from a success to the next extension: half the visibility timeout, or a third of a short
// one, so that a failed call leaves time for another. jitter (0 to 1) takes off up to a tenth, so that workers that started
// together do not extend together.
func extensionInterval(visibility time.Duration, jitter float64) time.Duration {
	d := visibility / 2
	if visibility < 10*time.Second {
		d = visibility / 3
	}
	return d - time.Duration(jitter*float64(d)/10)
}

// remaining is how long the message is proven to be hidden; 0 or less if it is not, or the lease is lost.
func (le *lease) remaining(now time.Time) time.Duration {
	if le.lost {
		return 0
	}
	return le.span - elapsed(now, le.anchor)
}

func (le *lease) live(now time.Time) bool { return le.remaining(now) > 0 }

// extension is the visibility timeout to ask for, never beyond limit after the receipt, nor beyond SQS's own 12 h: SQS
// refuses an extension past them. last says that no extension can follow. At the limit d is 0.
func (le *lease) extension(now time.Time, visibility, limit time.Duration) (d time.Duration, last bool) {
	limit = min(limit, maxVisibility-time.Second)
	rest := (limit - elapsed(now, le.received)).Truncate(time.Second)
	if rest > visibility {
		return visibility, false
	}
	return max(rest, 0), true
}

// extended records a success. The proof counts from before the call: SQS cannot have acted earlier. The next extension is
// due from there too: its answer may take as long as this one. An answer that was overtaken by that of a later call proves
// nothing new.
func (le *lease) extended(start, now time.Time, d, visibility time.Duration, last bool, jitter float64) {
	le.failures, le.unproven = 0, false
	if d-elapsed(now, start) <= le.remaining(now) {
		return
	}
	le.final = last
	le.anchor, le.span = start, d
	le.due = start.Add(extensionInterval(visibility, jitter))
}

// elapsed is the larger of what the monotonic and the wall clock say: the monotonic one stands still while a machine is
// suspended, the wall clock may be set back.
func elapsed(now, since time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// isDue reports whether that much time has passed since last, which is now then. The zero time is long ago.
func isDue(last *time.Time, now time.Time, every time.Duration) bool {
	if elapsed(now, *last) < every {
		return false
	}
	*last = now
	return true
}
