package sqsworker

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// postponeTest adds a message of a line that its handler has just postponed.
func (l *loop) postponeTest(id, line string, count int) *delivery {
	d := l.addTest(id, count)
	d.m.Group = line
	l.handlerBegins(d)
	d.keeps = !l.mayPutOff(d)
	d.result = l.newResult(d, sqsonce.Postpone(time.Hour, nil), 1)
	l.handlerReturned(handlerReturned{d})
	return d
}

func (l *loop) heldIn(line string) (n int) {
	for _, d := range l.deliveries {
		if d.state == held && d.m.Group == line {
			n++
		}
	}
	return n
}

// Each line has an equal part of MaxHeld, at most a quarter and at least two. What may not be given back is held beyond
// it.
func TestPartOfHeld(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ held, lines, want int }{{120, 1, 30}, {120, 4, 30}, {120, 6, 20}, {120, 60, 2}, {8, 2, 2}} {
		l := newTestLoop(t, func(o *Options) { o.MaxHeld = tc.held })
		for i := range tc.held + 10 {
			for line := range tc.lines {
				l.postponeTest(fmt.Sprint(line, ".", i), fmt.Sprint(line), 1)
			}
		}
		for line := range tc.lines {
			if n := l.heldIn(fmt.Sprint(line)); n != tc.want {
				t.Errorf("%d lines of %d: line %d holds %d messages, want %d", tc.lines, tc.held, line, n, tc.want)
			}
		}
		if s := l.Stats(); l.counts[held] > tc.held || s.Failed > 0 {
			t.Errorf("%d lines of %d: %d held; %+v", tc.lines, tc.held, l.counts[held], s)
		}
		l.queue.maxReceives = 5
		for i := range 2 * tc.held {
			if d := l.postponeTest(fmt.Sprint("late", i), "0", 3); d.state != held {
				t.Errorf("%d lines of %d: a message without three receives left was given back", tc.lines, tc.held)
			}
		}
		if l.capacity.used = (amount{}); !l.mayReceive() {
			t.Errorf("%d lines of %d: postponed messages close the intake", tc.lines, tc.held)
		}
	}
}

// A line that needs its part gets it from the longest one, whose message with the fewest receives goes, of these the
// last one. It stays hidden until its turn, and its turn goes to others.
func TestLongestLineGivesBack(t *testing.T) {
	t.Parallel()
	l := newTestLoop(t, func(o *Options) { o.MaxHeld = 16 })
	l.queue.maxReceives = 8
	for line := range 4 {
		for i := range 4 {
			count := 2
			if line == 1 && i == 1 {
				count = 1
			}
			d := l.postponeTest(fmt.Sprint(line, ".", i), fmt.Sprint(line), count)
			d.lease.order = receiveOrder{uint64(i), line}
		}
	}
	left := 0
	l.deliveries["1.1"].turn = settle.Turn{Left: func() { left++ }}
	l.postponeTest("new", "4", 1)
	if d := l.deliveries["1.1"]; d.state != releasing || d.delay < 59*time.Minute || left != 1 || l.behind.delayed != 1 {
		t.Errorf("state %d for %s, turn given up %d times, %d delayed", d.state, d.delay, left, l.behind.delayed)
	}
	for range 2 {
		l.postponeTest("newer"+fmt.Sprint(l.counts[releasing]), "4", 1)
	}
	gone := 0
	for _, d := range l.deliveries {
		if d.state == releasing && d.m.ID != "1.1" {
			gone++
			if !strings.HasSuffix(d.m.ID, ".3") {
				t.Errorf("%s was given back, want the last one of its line", d.m.ID)
			}
		}
	}
	if gone != 2 || l.counts[held] != 16 || l.heldIn("4") != 3 {
		t.Errorf("%d others given back, %d held, %d of the new line", gone, l.counts[held], l.heldIn("4"))
	}
}

// A message is given back only with three receives left: each costs one, a crash another, and its run the last one.
func TestDelayedNeedsThreeReceives(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		most, count int
		want        bool
	}{{0, 100, true}, {5, 2, true}, {5, 3, false}, {4, 1, true}, {4, 2, false}, {3, 1, true}, {3, 2, false}, {2, 1, true}, {1, 1, false}} {
		l := newTestLoop(t)
		l.queue.maxReceives = tc.most
		if got := l.mayPutOff(l.addTest("a", tc.count)); got != tc.want {
			t.Errorf("receive %d of %d: may be given back: %t, want %t", tc.count, tc.most, got, tc.want)
		}
	}
	l, ds := newGroup(t, 2)
	l.queue.maxReceives = 5
	if ds[1].lease.count = 4; l.mayPutOff(ds[0]) {
		t.Error("a group is given back whose second message has one receive left")
	}
}

// Each kind of held messages keeps a quarter of MaxHeld: others yield to it, and it yields to them beyond.
func TestKindsShareHeld(t *testing.T) {
	t.Parallel()
	l := newTestLoop(t, func(o *Options) { o.MaxHeld = 40 })
	hold := func(id string) *delivery {
		d := l.addTest(id, 1)
		l.setState(d, deciding)
		l.holdOrGiveBack(d, heldElsewhere, time.Hour, time.Hour, nil)
		return d
	}
	count := func() (elsewhere, postponed int64) { return l.heldAs[heldElsewhere], l.heldAs[heldPostponed] }
	for i := range 50 {
		hold(fmt.Sprint("peer", i))
	}
	if e, _ := count(); e != 40 {
		t.Fatalf("%d held, want 40", e)
	}
	for i := range 50 {
		l.postponeTest(fmt.Sprint("p", i), fmt.Sprint("line", i%5), 1)
	}
	if e, p := count(); e != 30 || p != 10 {
		t.Errorf("%d and %d held, want 30 and 10", e, p)
	}
	if d := hold("one more"); d.state != releasing {
		t.Error("a kind takes another one's part")
	}
	l = newTestLoop(t, func(o *Options) { o.MaxHeld = 40 })
	for i := range 200 {
		l.postponeTest(fmt.Sprint("p", i), fmt.Sprint("line", i%8), 1)
	}
	for i := range 50 {
		hold(fmt.Sprint("peer", i))
	}
	if e, p := count(); e != 10 || p != 30 {
		t.Errorf("postponed first: %d and %d held, want 10 and 30", e, p)
	}
}

// A receive asks for as many messages as could run of the last one, twice as many if all could, and for the room of the
// longest line.
func TestReceivesBehindPostponed(t *testing.T) {
	t.Parallel()
	l := newTestLoop(t, func(o *Options) { o.MaxHeld, o.Delayed = 40, -1 })
	now := time.Now()
	l.now = func() time.Time { return now }
	judge := func(ran, postponed int) int {
		var batch []*delivery
		for i := range ran + postponed {
			batch = append(batch, &delivery{state: gone, postponed: i >= ran})
		}
		l.noteBatch(batch)
		return l.wantedBehind(10)
	}
	if n := judge(0, 10); n != 10 {
		t.Errorf("nothing is held: asks for %d, want 10", n)
	}
	for i := range 8 {
		l.postponeTest(fmt.Sprint(i), "line", 1)
	}
	for _, tc := range []struct{ ran, postponed, want int }{{0, 10, 2}, {3, 7, 5}, {5, 0, 8}, {8, 0, 10}, {9, 1, 10}, {0, 0, 10}, {0, 1, 2}} {
		if got := judge(tc.ran, tc.postponed); got != tc.want {
			t.Errorf("%d could run and %d not: asks for %d, want %d", tc.ran, tc.postponed, got, tc.want)
		}
	}
	l.postponeTest("8", "line", 1)
	l.postponeTest("9", "line", 1)
	l.behind.probed = l.now()
	if n := judge(0, 1); n != 0 {
		t.Errorf("no room: asks for %d, want none", n)
	}
	if l.behind.probed = l.now().Add(-probeEvery); l.wantedBehind(10) != 1 {
		t.Errorf("2 s later: asks for %d, want 1", l.wantedBehind(10))
	}
	// Another line has room: SQS may hand out a message of that one.
	other := l.postponeTest("other", "other line", 1)
	for ago, want := range map[time.Duration]int{probeSooner / 2: 0, probeSooner: 1} {
		if l.behind.probed = l.now().Add(-ago); l.wantedBehind(10) != want {
			t.Errorf("another line has room, %s after the last receive: asks for %d, want %d", ago, l.wantedBehind(10), want)
		}
	}
	l.line.leave(other)
	// A receive that is not judged yet is not forgotten for the next one.
	l.noteBatch([]*delivery{{state: running}})
	l.noteBatch([]*delivery{{state: gone}, {state: gone}})
	if n := l.wantedBehind(10); n != 0 {
		t.Errorf("a handler began just now: asks for %d, want none yet", n)
	}
	if l.behind.last[0].at = l.now().Add(-judgeAfter); l.wantedBehind(10) != 4 {
		t.Errorf("50 ms later: asks for %d, want 4", l.wantedBehind(10))
	}
	// To get past them: as many as could not run, where there is a slot at all.
	l.opts.Delayed = 7
	for _, tc := range []struct{ wanted, ran, want int }{{2, 0, 10}, {2, 3, 7}, {2, 9, 2}, {12, 0, 12}, {0, 0, 0}} {
		l.behind.ran, l.behind.last = tc.ran, nil
		if got := l.wantedBehind(tc.wanted); got != tc.want {
			t.Errorf("%d could run, and %d wanted: asks for %d, want %d", tc.ran, tc.wanted, got, tc.want)
		}
	}
	for _, tc := range []struct {
		delayed int
		grouped bool
		want    int
	}{{0, false, 400}, {0, true, 0}, {7, true, 7}, {-1, false, 0}} {
		if l.opts.Delayed, l.behind.grouped = tc.delayed, tc.grouped; l.mayPass() != tc.want {
			t.Errorf("%+v: got %d", tc, l.mayPass())
		}
	}
}

// What a message has of its line ends with its lease, and nothing is held from the beginning of a stop on.
func TestPlaceEnds(t *testing.T) {
	t.Parallel()
	l := newTestLoop(t)
	d := l.addTest("a", 1)
	l.handlerBegins(d)
	d.cancel = func(error) {}
	l.loseLease(d, "test", nil)
	if held, holds := d.Room("line"); !held || !holds || l.line.longest != 1 {
		t.Errorf("held %t, holds %t, %d in the longest line", held, holds, l.line.longest)
	}
	left := 0
	err := settle.WithTurn(sqsonce.Postpone(time.Hour, nil), settle.Turn{Left: func() { left++ }})
	d.result = l.newResult(d, err, 1)
	l.handlerReturned(handlerReturned{d})
	if l.line.all != (amount{}) || l.line.longest != 0 || left != 1 {
		t.Errorf("%+v taken, %d in the longest line, turn given up %d times", l.line.all, l.line.longest, left)
	}
	l.loseLease(l.postponeTest("held", "line", 1), "test", nil)
	if l.line.all != (amount{}) {
		t.Errorf("%+v taken after the lease of a held message was lost", l.line.all)
	}
	l.beginStop(nil)
	if held, _ := l.addTest("b", 1).Room("line"); held {
		t.Error("held in a stop")
	}
}

// A slot goes to the group with the fewest running handlers, then to the oldest message. No message waits for more than
// a second longer than those that start before it, however many new groups come.
func TestSlotsByGroup(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		var r runs
		j := x.startPrefetching(r.take(10*time.Second), two)
		for i := range 5 {
			group, body := "noisy", fmt.Sprint("noisy", i)
			if i == 4 {
				group, body = "quiet", "quiet"
			}
			must.Get(x.c.SendMessage(x.Context(), &sqs.SendMessageInput{QueueUrl: &x.url, MessageBody: &body, MessageGroupId: &group}))(x)
		}
		j.Resume()
		time.Sleep(time.Second)
		if got := r.list(); len(got) != 2 || !slices.Contains(got, "quiet") {
			t.Errorf("%v run, want one of each group", got)
		}
		j.stopEmptyAfter(time.Minute)
	})
	l := newTestLoop(t, two)
	now := time.Now()
	l.now = func() time.Time { return now }
	add := func(id, group string) *delivery {
		d := l.addTest(id, 1)
		d.m.Group = group
		l.makeReady(d)
		return d
	}
	running := add("noisy0", "noisy")
	l.handlerBegins(running)
	l.ready = nil
	next := func() string {
		l.bringForward()
		return l.ready[0].m.ID
	}
	add("noisy1", "noisy")
	add("noisy2", "noisy")
	now = now.Add(500 * time.Millisecond)
	add("quiet", "quiet")
	add("alone", "")
	if got := next(); got != "quiet" {
		t.Errorf("next is %s, want the group without a handler", got)
	}
	l.ready = l.ready[1:]
	if got := next(); got != "alone" {
		t.Errorf("next is %s, want the message without a group", got)
	}
	l.ready = l.ready[1:]
	now = now.Add(longerReady)
	add("new", "new")
	if got := next(); got != "noisy1" {
		t.Errorf("next is %s, want the one that has waited a second longer", got)
	}
	l.endSlot(running)
	if len(l.slots.groups) != 0 {
		t.Errorf("%v left", l.slots.groups)
	}
}
