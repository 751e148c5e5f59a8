package sqsworker

import (
	"slices"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// standTest adds a message that its handler has just postponed, which stands while stands is true.
func (l *loop) standTest(id string, count int, stands *bool) *delivery {
	d := l.addTest(id, count)
	d.received = l.now()
	l.handlerBegins(d)
	d.keeps = !l.mayPutOff(d)
	err := settle.WithTurn(sqsonce.Postpone(time.Hour, nil), settle.Turn{Ready: make(chan struct{}), Stands: func() bool { return *stands }})
	d.result = l.newResult(d, err, 1)
	l.handlerReturned(handlerReturned{d})
	return d
}

// While messages stand the worker looks for others less and less often, one at a time. Any other outcome ends that.
func TestStandingProbes(t *testing.T) {
	t.Parallel()
	for _, none := range []bool{false, true} {
		l := newTestLoop(t, func(o *Options) { o.MaxHeld, o.Delayed = 40, 40 })
		now, stands := time.Now(), true
		l.now = func() time.Time { return now }
		d := l.standTest("a", 1, &stands)
		if none { // it was given back
			l.remove(d)
		}
		l.behind.probed = now
		var pauses []time.Duration
		for range 200 {
			now = now.Add(time.Second)
			if n := l.wantedBehind(10); n > 0 {
				pauses = append(pauses, now.Sub(l.behind.probed))
				l.probedStanding()
				l.behind.probed = now
				if n != 1 {
					t.Errorf("asks for %d", n)
				}
			}
		}
		want := []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, time.Minute, time.Minute}
		if !slices.Equal(pauses, want) {
			t.Errorf("held: %t: receives after %s, want %s", !none, pauses, want)
		}
		l.postponeTest("other", "line", 1)
		if n := l.wantedBehind(10); n < 2 || l.standing.probes != 0 {
			t.Errorf("another message was postponed for itself: asks for %d", n)
		}
	}
}

// A message that has stood for a minute goes to other workers, if it keeps three receives and no receive would get it again.
func TestStandingIsHandedOver(t *testing.T) {
	t.Parallel()
	l := newTestLoop(t)
	l.queue.maxReceives = 5
	now, stands, runs := time.Now(), true, false
	l.now = func() time.Time { return now }
	early, late, other := l.standTest("early", 2, &stands), l.standTest("late", 3, &stands), l.standTest("other", 1, &runs)
	check := func(when string, want state) {
		l.handOverStanding()
		if early.state != want || late.state != held || other.state != held {
			t.Errorf("%s: states %d, %d and %d", when, early.state, late.state, other.state)
		}
	}
	now = now.Add(handOver - time.Second)
	check("before a minute", held)
	now, l.polling.active = now.Add(time.Second), 1
	check("beside a receive", held)
	l.polling.active = 0
	check("after a minute", releasing)
	if early.delay != leastPostponed {
		t.Errorf("hidden for %s", early.delay)
	}
}
