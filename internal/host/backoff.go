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
