package sqsworker

import (
	"cmp"
	"time"
)

// lease is the right to a message: its newest receipt handle, for as long as SQS is proven to hide the message from
// others.
type lease struct {
	handle   string
	count    int       // receive count of the handle's receive
	order    order     // messages of one receive stay together in one extension
	received time.Time // no later than SQS handed it out; its 12 h count from here

	// The proof: SQS hides the message until at least span after anchor.
	anchor time.Time
	span   time.Duration

	due       time.Time // of the next extension
	failures  int       // of extensions since the last success
	warned    bool      // a failed extension was logged
	extending bool      // a call is under way
	final     bool      // the cap is reached: no more extensions
	refused   bool      // by an extension beside a delete, whose answer decides
	lost      bool
}

// newLease starts at a receive's answer. SQS started the timeout when it made that answer, which is earlier by the
// time the answer took: guard is what we allow for it.
func newLease(handle string, count int, at order, arrival time.Time, visibility time.Duration, early float64) lease {
	received := arrival.Add(-guard(visibility))
	return lease{
		handle: handle, count: count, order: at,
		received: received, anchor: received, span: visibility,
		due: arrival.Add(beat(visibility, early)),
	}
}

// order is the place of a message among all that the worker has received.
type order struct {
	receive  uint64
	position int
}

func (a order) compare(b order) int {
	return cmp.Or(cmp.Compare(a.receive, b.receive), cmp.Compare(a.position, b.position))
}

func guard(visibility time.Duration) time.Duration { return min(time.Second, visibility/10) }

// beat is when to extend: at half the visibility timeout, at a third of short ones, where a failed call needs the time
// for another. early (0 to 1) takes off up to a tenth, so that workers that started together do not extend together.
func beat(visibility time.Duration, early float64) time.Duration {
	d := visibility / 2
	if visibility < 10*time.Second {
		d = visibility / 3
	}
	return d - time.Duration(early*float64(d)/10)
}

// left is how long the message is proven to be hidden; 0 or less when it is not, or the lease is lost.
func (le *lease) left(now time.Time) time.Duration {
	if le.lost {
		return 0
	}
	return le.span - elapsed(now, le.anchor)
}

func (le *lease) live(now time.Time) bool { return le.left(now) > 0 }

// extension is how many seconds to ask for, never beyond limit after the receipt nor SQS's own 12 h, which it does not
// clamp but refuses. At the limit it returns 0.
func (le *lease) extension(now time.Time, visibility, limit time.Duration) (d time.Duration, last bool) {
	limit = min(limit, maxVisibility-time.Second)
	rest := (limit - elapsed(now, le.received)).Truncate(time.Second)
	if rest > visibility {
		return visibility, false
	}
	return max(rest, 0), true
}

// extended records a success. The proof counts from before the call: SQS cannot have acted earlier.
func (le *lease) extended(start, now time.Time, d, visibility time.Duration, last bool, early float64) {
	le.failures, le.final = 0, last
	le.anchor, le.span = start, d
	le.due = now.Add(beat(visibility, early))
}

// elapsed is the larger of what the monotonic and the wall clock say: the monotonic one stands still while a machine is
// suspended, the wall clock may be set back.
func elapsed(now, since time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}
