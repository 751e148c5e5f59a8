package sqsworker

import "time"

// serverClock is the latest that SQS's clock can be, from the Date of one answer and the time since its request was sent.
// It does not depend on how this host's clock is set, but on the time that passes by it. Protocol, section 5: the holder's
// clock.
type serverClock struct {
	date time.Time // zero: no answer had a Date
	sent time.Time
	next time.Time // when an idle worker should have a better answer; zero: at once
}

const (
	// dateResolution is that of the Date header: SQS's clock is in [Date, Date + 1 s) when it writes it.
	dateResolution = time.Second
	// One part in driftPart of the time since the answer is the most that this host's clock, which nothing corrects, may be
	// wrong. A quartz is wrong by 1 in 10,000.
	driftPart = 1000
	// refreshClock is how long an idle worker relies on an answer. Its drift is 1.8 s by then.
	refreshClock = 30 * time.Minute
)

// latest returns an instant that SQS's clock has not passed at now.
func (c *serverClock) latest(now time.Time) time.Time {
	passed := elapsed(now, c.sent)
	return c.date.Add(dateResolution + passed + passed/driftPart)
}

// learn uses an answer if it is a better bound than the one known, or has a Date beyond that: then SQS's clock was set
// forward, or this answer is from another of its servers.
func (c *serverClock) learn(sent, now, date time.Time) {
	if date.IsZero() {
		return
	}
	answer := serverClock{date: date, sent: sent}
	known := c.latest(now)
	if c.date.IsZero() || !answer.latest(now).After(known) || date.After(known) {
		c.date, c.sent = date, sent
	}
}

// refresh says that the next receive should be a short one. While the queue is idle there are no other calls, and a long
// poll says little: SQS wrote the Date of its answer at any time in it.
func (c *serverClock) refresh(now time.Time) bool {
	if now.Before(c.next) || !c.date.IsZero() && elapsed(now, c.sent) < refreshClock {
		return false
	}
	c.next = now.Add(refreshClock)
	return true
}

// handedOut returns an instant of this host's clock that is not later than SQS handed out the messages of a receive. An
// answer may arrive long after that: a slow network, a proxy, a process that was stopped in a long poll. It tells by its
// Date how old it is. The answer has been learnt from. One without a Date counts as new.
//
// A visibility timeout below 5 s is too short for two Dates that are cut to their second and a receive of 1 s: there an
// answer may be 3 s older than it is taken for.
func (c *serverClock) handedOut(sent, arrival, date time.Time, visibility time.Duration) time.Time {
	age := time.Duration(0)
	if !date.IsZero() {
		age = c.latest(arrival).Sub(date)
		if visibility < shortVisibility {
			age = max(0, age-2*dateResolution-shortReceive)
		}
	}
	// Nothing is handed out before it is asked for. A receive that does not wait is proven by that, within milliseconds.
	age = min(age, elapsed(arrival, sent))
	return arrival.Add(-age - answerMargin(visibility))
}

// answerMargin is for the time between SQS hiding a message and the Date of its answer, and for clocks of SQS's servers that
// are apart. It also has a handler cancelled before others can receive its message.
func answerMargin(visibility time.Duration) time.Duration { return min(time.Second, visibility/10) }
