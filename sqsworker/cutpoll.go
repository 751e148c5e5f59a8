package sqsworker

import "time"

// longPoll is the wait of receives. An HTTP timeout of the client, or a proxy, that cuts long polls hides unread messages in each
// of them. Protocol, 17.15.
type longPoll struct {
	wait time.Duration
	age  time.Duration // of the last receive, if it was cut
	cut  time.Time     // when one was cut last, or the wait was doubled
}

const (
	// leastCut is the least age of a receive that was cut: the shortest wait.
	leastCut = time.Second
	// cutAgain is how long after a cut the wait is doubled.
	cutAgain = 10 * time.Minute
)

// unanswered takes note of an unanswered receive, and reports whether the wait is shorter now: the second one in a row that ended
// at the same age, a tenth more or less, before its wait was over.
func (p *longPoll) unanswered(wait, age time.Duration, now time.Time) (shorter bool) {
	if age < leastCut || age >= wait {
		p.age = 0
		return false
	}
	if before := p.age; before == 0 || max(age, before)-min(age, before) > before/10 {
		p.age = age
		return false
	}
	p.age, p.cut, p.wait = 0, now, max(time.Second, min(p.wait, age/2).Truncate(time.Second))
	return true
}

// answered takes note of a receive that got an answer.
func (p *longPoll) answered(longest time.Duration, now time.Time) {
	if p.age = 0; p.wait < longest && elapsed(now, p.cut) >= cutAgain {
		p.wait, p.cut = min(2*p.wait, longest), now
	}
}

// warnLacking says, once in ten minutes, that an endpoint leaves out system attributes, which SQS sends where they are asked for.
func (l *loop) warnLacking(e received) {
	if e.lacking == 0 || !isDue(&l.polling.lacking, e.arrival, warnUselessAgain) {
		return
	}
	l.log.Warn("sqsworker: messages came without a receive count or a group: the worker takes them for first receives: ask its operator",
		"messages", e.lacking)
}
