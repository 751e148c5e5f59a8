package host

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

const (
	// silentAfter is how many attempts in a row, of any call, have no answer before a service counts as down. The second attempt
	// often meets another connection that broke at the same time.
	silentAfter = 3
	// downPause is the least time between two attempts of one call while the service is down.
	downPause = time.Second
)

// Silence knows whether a service answers at all. A service that is down gets about one request a second for an event: the
// quick repeats that get past a broken connection would only add to its load.
type Silence struct{ inARow atomic.Int32 }

// Note notes whether an attempt had an answer that does not ask for another attempt.
func (s *Silence) Note(answered bool) {
	if answered {
		s.inARow.Store(0)
	} else {
		s.inARow.Add(1)
	}
}

func (s *Silence) down() bool { return s.inARow.Load() >= silentAfter }

// Attempts are those of one call.
type Attempts struct {
	silence *Silence
	begun   time.Time // the attempt
	last    bool
}

// Call begins a call. While attempts of a service that is down fail at once, the call makes one, since its caller calls again.
// A call that finds out makes one more.
func (s *Silence) Call() Attempts { return Attempts{silence: s, begun: time.Now(), last: s.down()} }

// Again waits for d before the next attempt, or for a second where the service is down and has failed the attempt at once. It
// reports false where ctx has ended, or the call makes no more attempts.
func (a *Attempts) Again(ctx context.Context, d time.Duration) bool {
	if a.silence.down() && time.Since(a.begun) < downPause {
		if a.last {
			return false
		}
		a.last, d = true, downPause+rand.N(downPause/4)
	}
	more := Wait(ctx, d)
	a.begun = time.Now()
	return more
}
