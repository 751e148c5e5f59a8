package lambda

import "time"

const (
	leastMargin = 500 * time.Millisecond
	mostMargin  = 5 * time.Second
)

// margin is what is kept before the deadline. It grows with the time there is, since big batches come with long
// timeouts, and has a bound below since small functions have a fraction of a CPU to answer with.
func margin(asked, remaining time.Duration) time.Duration {
	if asked > 0 {
		return asked
	}
	return min(max(remaining/20, leastMargin), mostMargin)
}

// budget is when an invocation does what. Without a deadline only grace is set.
type budget struct {
	stop   time.Time     // handlers are told to end and nothing more is started
	grace  time.Duration // they have to return, counted from the end of their context
	answer time.Time     // visibility changes end
}

func newBudget(asked time.Duration, now, deadline time.Time) budget {
	m := margin(asked, deadline.Sub(now))
	return budget{stop: deadline.Add(-m), grace: m / 2, answer: deadline.Add(-m / 4)}
}
