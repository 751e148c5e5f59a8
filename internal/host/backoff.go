package host

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff is the delay after the first, the second and every later try. Five receives outlast eleven minutes of failures,
// and no message waits more than 6.5 min after them.
var backoff = [...]time.Duration{10 * time.Second, time.Minute, 5 * time.Minute}

// DefaultBackoff returns the delay after a try that failed, 1 for the first one: 10 s, 1 min, then 5 min, and a random part of
// up to a quarter more, so that messages that failed together do not come back together.
func DefaultBackoff(try int) time.Duration {
	d := backoff[min(max(try, 1), len(backoff))-1]
	return d + rand.N(d/4+1)
}

// firstUnavailable and mostUnavailable are the delays while a dependency of every message is down.
const (
	firstUnavailable = time.Minute
	mostUnavailable  = time.Hour
)

// UnavailableDelay is how long a message is hidden that is unavailable, or was not started because of an outage, by its receives and the
// time of the first of them: 1, 4, 16 and 60 min, so that five receives last 81 min. SQS counts receives by others too, such as those of
// a process that was killed. So a receive counts only where the delays before it have had the time to pass.
func UnavailableDelay(receives int, first time.Time) time.Duration {
	d, lasted := firstUnavailable, time.Since(first)                           // the zero time was long ago
	for ; receives > 1 && d < mostUnavailable && lasted >= d-d/8; receives-- { // an eighth is for the clocks
		lasted -= d
		d = min(4*d, mostUnavailable)
	}
	return d
}

// Jitter returns a random part of d, doubled with each try after the first up to most.
func Jitter(d, most time.Duration, try int) time.Duration { return 1 + rand.N(Double(d, most, try)) }

// Double returns d, doubled with each try after the first, and never more than most. A negative d counts as 0.
func Double(d, most time.Duration, try int) time.Duration {
	if d <= 0 {
		return 0
	}
	shift := max(try, 1) - 1
	if shift >= 63 || d > most>>shift {
		return most
	}
	return d << shift
}

// Wait waits for d. It reports false where ctx has ended by then.
func Wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// Seconds rounds a delay up to the whole seconds that SQS takes, inside 0 and most.
func Seconds(d, most time.Duration) int32 {
	d = max(0, min(d, most))
	return int32((d + time.Second - 1) / time.Second)
}
