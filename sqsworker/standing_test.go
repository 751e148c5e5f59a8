package sqsworker

import (
	"fmt"
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
	l.standsTest(d, stands)
	return d
}

func (l *loop) standsTest(d *delivery, stands *bool) {
	d.keeps = !l.mayPutOff(d)
	err := settle.WithTurn(sqsonce.Postpone(time.Hour, nil), settle.Turn{Ready: make(chan struct{}), Stands: func() bool { return *stands }})
	d.result = l.newResult(d, err, 1)
	l.handlerReturned(handlerReturned{d})
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

// What shows that messages need not stand ends the slow receives before another outcome: the message of the last one stands no more, or a
// handler that began since then has run for as long as proves its dependencies.
func TestStandingEnds(t *testing.T) {
	t.Parallel()
	const almost = "......." // a second less than provenRun
	for _, tc := range []struct {
		name, steps string
		ends        bool
	}{
		{"the Counter answers", "s.c", true},
		{"but not another one", "s.S.c", false},
		{"another message runs", "s.b." + almost, true},
		{"for less", "s.b" + almost, false},
		{"it began before", "bs." + almost, false},
		{"it began before another outcome", "sb.os" + almost, false},
		{"it stands too", "sbr." + almost, false},
		{"it runs again", "sbr.b" + almost, false},
	} {
		l := newTestLoop(t)
		now, stands, always := time.Now(), true, true
		l.now = func() time.Time { return now }
		other := l.addTest("other", 1)
		for i, step := range tc.steps {
			switch step {
			case '.':
				now = now.Add(time.Second)
				l.schedule.run(now)
			case 's': // a message stands
				l.standTest(fmt.Sprint(i), 1, &stands)
				l.probedStanding()
			case 'S': // for another rule
				l.standTest(fmt.Sprint(i), 1, &always)
			case 'o': // another outcome
				l.postponeTest(fmt.Sprint(i), "line", 1)
			case 'b':
				l.handlerBegins(other)
			case 'r': // and stands
				l.standsTest(other, &stands)
			case 'c':
				stands = false
			}
		}
		l.behind.probed = now
		if n := l.wantedBehind(5); (n >= 5) != tc.ends || (l.standing.probes == 0) != tc.ends {
			t.Errorf("%s: asks for %d after %d receives", tc.name, n, l.standing.probes)
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
	stands, now = false, now.Add(5*time.Minute) // in line, before the Counter is down
	early.lease = newLease("handle", 2, receiveOrder{}, now, time.Hour, 0)
	check := func(when string, want state) {
		l.handOverStanding()
		if early.state != want || late.state != held || other.state != held {
			t.Errorf("%s: states %d, %d and %d", when, early.state, late.state, other.state)
		}
	}
	check("in line", held)
	stands = true
	check("at once", held)
	now = now.Add(handOver - time.Second)
	check("before a minute", held)
	stands = false
	check("it stands no more", held)
	stands = true
	check("it stands again", held)
	now = now.Add(handOver - time.Second)
	check("before a minute of that", held)
	now, l.polling.active = now.Add(time.Second), 1
	check("beside a receive", held)
	l.polling.active = 0
	check("after a minute", releasing)
	if early.delay != leastPostponed {
		t.Errorf("hidden for %s", early.delay)
	}
}
