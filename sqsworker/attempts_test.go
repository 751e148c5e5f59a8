package sqsworker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// poison records the runs of messages, and fails those whose name ends with "bad".
type poison struct {
	mu   sync.Mutex
	runs map[string][]time.Time
	done []string
	took time.Duration
}

func (p *poison) handle(_ context.Context, m *sqsonce.Message) error {
	p.mu.Lock()
	if p.runs == nil {
		p.runs = map[string][]time.Time{}
	}
	p.runs[m.Body] = append(p.runs[m.Body], time.Now())
	p.mu.Unlock()
	time.Sleep(p.took)
	if strings.HasSuffix(m.Body, "bad") {
		return errTest
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = append(p.done, m.Body)
	return nil
}

func (p *poison) count(body string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.runs[body])
}

func (p *poison) handled() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.done)
}

// checkOrder checks that the messages of each group that were done, were so once and in the order of their numbers.
func (p *poison) checkOrder(t *testing.T) {
	t.Helper()
	last := map[string]string{}
	for _, body := range p.handled() {
		group, name, _ := strings.Cut(body, ":")
		if name <= last[group] {
			t.Errorf("%s done after %s of its group", name, last[group])
		}
		last[group] = name
	}
}

// A poisoned head is run MaxAttempts times, Backoff apart, and then dead-lettered with its error. Its group waits outside MaxInFlight,
// at no cost of receives, and then goes on. hosttest.TestBoundPoison has the throughput of other groups.
func TestPoisonedGroups(t *testing.T) {
	t.Parallel()
	for _, groups := range []int{20, 100} { // of 100 not all have room in Held, and those whose heads go back begin anew
		bubble(t, setup{fifo: true, maxReceives: 5}, func(x *fixture) {
			for g := range groups {
				x.send(fmt.Sprintf("g%d:bad", g), fmt.Sprintf("g%d:ok", g))
			}
			p := &poison{took: 200 * time.Millisecond}
			j := x.start(p.handle, func(o *Options) { o.MaxInFlight = 10 })
			time.Sleep(5 * time.Second)
			x.send("h:0")
			time.Sleep(time.Second)
			if got := p.handled(); !slices.Equal(got, []string{"h:0"}) {
				t.Errorf("done while %d groups wait: %v, want the message of another group", groups, got)
			}
			j.stopEmptyAfter(time.Hour)
			p.checkOrder(t)
			for _, m := range x.dead() {
				if n := p.count(m.Body); !strings.HasSuffix(m.Body, "bad") || n < 5 || n > 5 && groups == 20 || m.Attributes[sqsonce.AttrRejectReason] != errTest.Error() {
					t.Errorf("%s is in the dead-letter queue after %d runs, reason %q", m.Body, n, m.Attributes[sqsonce.AttrRejectReason])
				}
			}
			if n := len(x.dead()); n != groups || len(p.handled()) != groups+1 || groups == 20 && j.Stats().Received != 2*20+1 {
				t.Errorf("%d dead-lettered, %d done; want %d, %d; %+v", n, len(p.handled()), groups, groups+1, j.Stats())
			}
			if groups == 100 {
				return
			}
			at := p.runs["g0:bad"]
			for i, want := range []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute, 5 * time.Minute} {
				if got := at[i+1].Sub(at[i]); got < want || got > want*5/4+2*time.Second {
					t.Errorf("attempt %d came %s after the one before, want %s and up to a quarter more", i+2, got, want)
				}
			}
		})
	}
}

// A dead-letter queue that refuses every message is asked once in 30 s. A head whose attempts are spent goes back with its
// group, and at its last receive alone: SQS moves it, and the messages behind it run.
func TestRefusingDeadLetterQueue(t *testing.T) {
	t.Parallel()
	bubble(t, setup{fifo: true, maxReceives: 20}, func(x *fixture) {
		for g := range 5 {
			x.send(fmt.Sprintf("g%d:bad", g), fmt.Sprintf("g%d:ok", g))
		}
		x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: opSend, Prob: 1, Do: fault.Error, Code: "AccessDenied"}}})
		p := &poison{}
		j := x.start(p.handle, func(o *Options) {
			o.MaxAttempts = 1
			o.Backoff = func(int) time.Duration { return 10 * time.Second }
		})
		time.Sleep(5 * time.Second)
		first := x.log.count("not sent to the dead-letter queue") // several were sent before the first answer
		time.Sleep(200 * time.Second)
		if asked := x.log.count("not sent to the dead-letter queue") - first; asked < 5 || asked > 7 {
			t.Errorf("asked %d times in 200 s, want once in 30 s", asked)
		}
		j.stopEmptyAfter(5 * time.Minute)
		p.checkOrder(t)
		if len(x.dead()) != 5 || len(p.handled()) != 5 {
			t.Errorf("%d dead-lettered, %d done; want 5 each", len(x.dead()), len(p.handled()))
		}
		for _, m := range x.dead() {
			if n := p.count(m.Body); !strings.HasSuffix(m.Body, "bad") || n < 20 {
				t.Errorf("%s is in the dead-letter queue after %d runs", m.Body, n)
			}
		}
	})
}

// Where the redrive policy is not known, a head that the dead-letter queue refuses does not go back alone: SQS may hand it
// out again, after the messages behind it.
func TestRefusingDeadLetterQueueWithoutAPolicy(t *testing.T) {
	t.Parallel()
	bubble(t, setup{fifo: true}, func(x *fixture) {
		x.send("g:0bad", "g:1")
		x.srv.Set(fault.Plan{Rules: []fault.Rule{
			{Op: opSend, Prob: 1, Do: fault.Error, Code: "AccessDenied"},
			{Op: "GetQueueAttributes", Prob: 1, Do: fault.Error, Code: "AccessDenied"},
		}})
		p := &poison{}
		j := x.start(p.handle, func(o *Options) { o.DeadLetterQueue = x.dlq })
		time.Sleep(2 * time.Hour)
		j.stopClean()
		if n := p.count("g:0bad"); len(p.handled()) > 0 || n < 20 {
			t.Errorf("done: %v, %d runs of the head; want none, since the head is not in the dead-letter queue", p.handled(), n)
		}
	})
}

// A delay beyond MaxExtension cannot be waited for under the lease.
func TestDelayBeyondMaxExtension(t *testing.T) {
	t.Parallel()
	bubble(t, setup{fifo: true, maxReceives: 5}, func(x *fixture) {
		x.send("g:0", "g:1")
		p := &poison{}
		j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
			if m.ReceiveCount == 1 {
				return sqsonce.RetryAfter(10*time.Minute, errTest)
			}
			return p.handle(ctx, m)
		}, func(o *Options) { o.MaxExtension = 2 * time.Minute })
		j.stopEmptyAfter(11 * time.Minute)
		if s := j.Stats(); s.LeasesLost != 0 || len(p.handled()) != 2 {
			t.Errorf("%v; %+v", p.handled(), s)
		}
	})
}

// Beyond Options.MaxHeld followers go back, those of the group whose next attempt is farthest first, and the last of a group first.
// Their heads stay, and so does what is at its last receive.
func TestHeldGroupsAreTrimmed(t *testing.T) {
	t.Parallel()
	for _, maxReceives := range []int{1, 5} {
		runParallel(t, fmt.Sprint(maxReceives), setup{fifo: true, maxReceives: maxReceives}, func(x *fixture) {
			for g := range 8 {
				x.send(fmt.Sprintf("g%d:0bad", g), fmt.Sprintf("g%d:1", g), fmt.Sprintf("g%d:2", g))
			}
			p := &poison{}
			j := x.start(p.handle, func(o *Options) {
				o.MaxHeld, o.MaxAttempts = 10, 5
				o.Backoff = func(attempt int) time.Duration { return 2 * time.Minute }
			})
			time.Sleep(time.Minute)
			inFlight := x.inFlight()
			least, most := 10, 10
			if maxReceives == 1 {
				least, most = 20, 24 // nothing may go back: beyond twice Held nothing is received
			}
			if inFlight < least || inFlight > most {
				x.Errorf("%d in flight while all wait, want %d to %d", inFlight, least, most)
			}
			x.send("h:0")
			time.Sleep(30 * time.Second)
			if got := p.count("h:0"); got == 1 == (maxReceives == 1) {
				x.Errorf("%d runs of another group's message", got)
			}
			j.stopEmptyAfter(time.Hour)
			p.checkOrder(x.T)
			if len(p.handled()) != 17 || len(x.dead()) != 8 {
				x.Errorf("%d done, %d dead-lettered; want 17, 8", len(p.handled()), len(x.dead()))
			}
		})
	}
}

// A worker starts with one message, until it has seen that messages can be handled, or that a handler runs for 8 s. Where a question
// fails it receives another one after half a minute.
func TestSlowStart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name           string
		takes          time.Duration
		err            error
		within, beyond time.Duration // one message only; more
		more           int64
	}{
		{"done", 2 * time.Second, nil, time.Second, 3 * time.Second, 10},
		{"failed", 2 * time.Second, errTest, time.Second, 3 * time.Second, 10},
		{"long", time.Minute, nil, 7 * time.Second, 9 * time.Second, 10},
		{"unavailable", time.Second, sqsonce.UnavailableUntil(errTest, func(context.Context) error { return errTest }), 30 * time.Second, 50 * time.Second, 2},
	} {
		runParallel(t, tt.name, setup{maxReceives: 5}, func(x *fixture) {
			x.slowStart = true
			x.sendMany(10)
			j := x.start(func(context.Context, *sqsonce.Message) error {
				time.Sleep(tt.takes)
				return tt.err
			})
			time.Sleep(tt.within)
			if n := j.Stats().Received; n != 1 {
				x.Errorf("%d received after %s, want one", n, tt.within)
			}
			time.Sleep(tt.beyond - tt.within)
			if n := j.Stats().Received; n != tt.more {
				x.Errorf("%d received after %s, want %d", n, tt.beyond, tt.more)
			}
			_ = j.stop()
			time.Sleep(time.Minute) // handlers that ignored the stop
		})
	}
}
