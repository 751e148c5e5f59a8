package lambda

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// waits is a handler that runs until its context ends.
func waits(ctx context.Context, _ *sqsonce.Message) error {
	<-ctx.Done()
	return ctx.Err()
}

// timesOut is a handler with a timeout of its own.
func timesOut(ctx context.Context, m *sqsonce.Message) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return waits(ctx, m)
}

// share is a handler that takes so many percent of the handlers' time.
func share(percent int) sqsonce.Handler {
	return takes(time.Duration(percent) * 285 * time.Millisecond)
}

const tookTooLong = "lambda: the handler's time ended: "

// TestPoisonedGroups: of a group of ten, through a mapping until the queue is empty, only what fails is in the dead-letter
// queue, with its reason. The others succeed, each in one run.
func TestPoisonedGroups(t *testing.T) {
	const canceled, deadline = tookTooLong + "context canceled", tookTooLong + "context deadline exceeded"
	for _, tt := range []struct {
		name string
		bad  handlers
		dead string
		two  string   // the same with two receives, where it differs
		runs []string // of the bad ones, with 2, 3 and 5 receives, and without a redrive policy
	}{
		{"error", handlers{"a0": fails(errTest)}, "a0: it failed", "", []string{"a0:2", "a0:2", "a0:4"}},
		{"panic", handlers{"a0": panics("boom")}, "a0: sqsonce: handler panicked: boom", "", []string{"a0:2", "a0:2", "a0:4"}},
		{"Goexit", handlers{"a0": exits}, "a0: sqsonce: handler called runtime.Goexit", "", []string{"a0:2", "a0:2", "a0:4"}},
		{"its own timeout", handlers{"a0": timesOut}, "a0: context deadline exceeded", "", []string{"a0:2", "a0:2", "a0:4"}},
		{"the margin", handlers{"a0": waits}, "a0: " + deadline, "a0: " + canceled, []string{"a0:2", "a0:2", "a0:4"}},
		{"two at the margin", handlers{"a0": waits, "a1": waits}, "a0: " + deadline + ", a1: " + canceled,
			"a0: " + canceled + ", a1: " + canceled, []string{"a0:2 a1:1", "a0:2 a1:1", "a0:4 a1:1"}},
		{"the margin behind an error", handlers{"a0": fails(errTest), "a1": waits}, "a0: it failed, a1: " + canceled, "",
			[]string{"a0:2 a1:1", "a0:2 a1:2", "a0:4 a1:2"}},
		{"the margin, in the middle and at the end", handlers{"a2": waits, "a9": waits}, "a2: " + deadline + ", a9: " + deadline,
			"a2: " + canceled + ", a9: " + deadline, []string{"a2:2 a9:1", "a2:2 a9:1", "a2:4 a9:1"}},
		{"slow", handlers{"a0": share(60)}, "", "", []string{"a0:1", "a0:1", "a0:1", "a0:1"}},
	} {
		for i, receives := range []int{2, 3, 5, 0}[:len(tt.runs)] {
			for _, how := range []string{"one process", "new processes", "refused"} {
				var faults []fault.Rule
				if how == "refused" {
					faults = []fault.Rule{{Op: opSend, Nth: 11, Times: 1000, Do: fault.Error, Code: "AccessDenied"}}
				}
				runWithQueue(t, fmt.Sprintf("%s/%d receives/%s", tt.name, receives, how), true, faults, func(x *fixture) {
					if receives > 0 {
						x.redrive(receives)
					}
					want := map[string]int{}
					for _, r := range strings.Fields(tt.runs[i]) {
						want[r[:2]] = int(r[3] - '0')
					}
					for n := range 10 {
						body := fmt.Sprintf("a%d", n)
						x.send(body)
						if tt.bad[body] == nil {
							want[body] = 1
						}
					}
					ran := map[string]int{}
					h := bodies(ran, byBody(tt.bad))
					f := x.wrap(h)
					if how == "new processes" {
						f = func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
							return x.wrap(h)(ctx, e)
						}
					}
					x.mapping(f, 2*time.Hour)
					dead := tt.dead
					if tt.two != "" && receives == 2 {
						dead = tt.two
					}
					if how == "refused" { // SQS moves them, after their last receive
						dead = reasons.ReplaceAllString(dead, ": $1")
						maps.DeleteFunc(ran, func(body string, _ int) bool { return tt.bad[body] != nil })
						maps.DeleteFunc(want, func(body string, _ int) bool { return tt.bad[body] != nil })
					}
					if got := x.dead(); got != dead {
						x.Errorf("in the dead-letter queue: %q, want %q", got, dead)
					}
					if fmt.Sprint(ran) != fmt.Sprint(want) {
						x.Errorf("runs: %v, want %v", ran, want)
					}
					if left := x.srv.Messages(x.url); len(left) > 0 {
						x.Errorf("%d messages in the queue", len(left))
					}
				})
			}
		}
	}
}

// reasons are those of the texts of dead, up to the next message.
var reasons = regexp.MustCompile(`: .*?(, a\d|$)`)

// hangingStore does not answer acquires up to a receive count before their context has ended.
type hangingStore struct {
	dedup.Store
	until   int
	answers bool // then
}

func (s hangingStore) Acquire(ctx context.Context, c dedup.Claim) (dedup.Grant, error) {
	if c.ReceiveCount <= s.until {
		<-ctx.Done()
		if !s.answers {
			return dedup.Grant{}, ctx.Err()
		}
	}
	return s.Store.Acquire(context.WithoutCancel(ctx), c)
}

// TestOutageDeadLettersNothing: where the store does not answer before the handlers' time is over no message failed. The function
// sends none to the dead-letter queue; SQS moves them when they have no receive left.
func TestOutageDeadLettersNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		until, dead int
		answers     bool
	}{
		"over before the last receive": {until: 4}, "longer": {until: 5, dead: 10},
		"too late, over before the last receive": {until: 4, answers: true}, "too late, longer": {until: 5, dead: 10, answers: true},
	} {
		runWithQueue(t, name, true, nil, func(x *fixture) {
			x.redrive(5)
			once := must.Get(dedup.New(hangingStore{memstore.New(), tt.until, tt.answers}, "test", func(o *dedup.Options) { o.CallTimeout = time.Minute }))(x)
			ran := map[string]int{}
			for n := range 10 {
				x.send(fmt.Sprintf("a%d", n))
			}
			x.mapping(x.wrap(once.Handler(bodies(ran, byBody(handlers{})))), 2*time.Hour)
			dead := x.srv.Messages(x.dlq)
			if len(dead) != tt.dead || len(ran) != 10-tt.dead || x.calls(opSend) != 10 {
				x.Errorf("%d dead-lettered, %d ran, the function sent %d; want %d, %d, 0", len(dead), len(ran), x.calls(opSend)-10, tt.dead, 10-tt.dead)
			}
		})
	}
}

// TestSendAfterTheMargin: the send of a head that was cut off has its part of the margin, here 312 ms with the time that the
// handler leaves of its own.
func TestSendAfterTheMargin(t *testing.T) {
	delayed := func(d time.Duration, ops ...string) (rules []fault.Rule) {
		for _, op := range ops {
			rules = append(rules, fault.Rule{Op: op, Prob: 1, Do: fault.Delay, Delay: d})
		}
		return rules
	}
	for name, tt := range map[string]struct {
		returns time.Duration // after the end of the context
		faults  []fault.Rule
	}{
		"slow calls":        {0, delayed(200*time.Millisecond, opSend, opURL, opAttributes)},
		"a late end of run": {240 * time.Millisecond, delayed(50*time.Millisecond, opSend)},
	} {
		runWithQueue(t, name, true, tt.faults, func(x *fixture) {
			x.redrive(3)
			x.send("a1", "a2")
			for i, want := range []string{"a1 a2", "a2"} {
				f := x.wrap(byBody(handlers{"a1": func(ctx context.Context, m *sqsonce.Message) error {
					defer time.Sleep(tt.returns)
					return waits(ctx, m)
				}}), func(o *Options) { o.DeadLetterQueue = "" }) // another process: it knows nothing of the queues
				if got := x.failed(f, 10*time.Second, x.receive()); got != want {
					x.Errorf("receive %d: failed %q, want %q", i+1, got, want)
				}
				time.Sleep(time.Hour)
			}
		})
	}
}
