package lambda

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func passes(context.Context) error { return nil }

// TestHeadOfAGroup: however the head of a group of ten ends each time, and also where the dead-letter queue takes nothing from the
// function, only the head ends in the dead-letter queue. Those behind it succeed, in order and in one run.
func TestHeadOfAGroup(t *testing.T) {
	followers := []string{"a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9"}
	for _, tt := range []struct {
		name   string
		head   sqsonce.Handler
		reason string // a part of it; "": the head succeeds
	}{
		{"error", fails(errTest), "it failed"},
		{"panic", panics("boom"), "boom"},
		{"Goexit", exits, "Goexit"},
		{"rejected", fails(sqsonce.Reject(errTest)), "it failed"},
		{"its own timeout", timesOut, "deadline exceeded"},
		{"the margin", waits, "the handler's time ended"},
		{"hangs", ignores(time.Hour), "did not return"},
		{"hangs, and changes its message", changes, "did not return"},
		{"slow", share(60), ""},
		{"unavailable", fails(sqsonce.Unavailable(errTest)), "it failed"},
		{"its question passes", fails(sqsonce.UnavailableUntil(errTest, passes)), "it failed"},
		{"postpones, and SQS moves it", fails(sqsonce.Postpone(time.Minute, errTest)), "a0: "},
		{"postpones for a moment", fails(sqsonce.Postpone(time.Second, errTest)), "a0: "},
	} {
		for c := range 4 {
			refuses, old := c&1 > 0, c&2 > 0
			t.Run(fmt.Sprintf("%s/refuses=%t/old=%t", tt.name, refuses, old), func(t *testing.T) {
				var faults []fault.Rule
				if refuses {
					faults = append(faults, fault.Rule{Op: opSend, Nth: 21, Times: 1000, Do: fault.Error, Code: "AccessDenied"})
				}
				withQueue(t, true, faults, func(x *fixture) {
					x.redrive(3)
					var ran []string
					newProcess := func(concurrency int) function {
						return x.wrap(func(ctx context.Context, m *sqsonce.Message) error {
							switch {
							case m.Group != "a":
								return takes(20*time.Second)(ctx, m)
							case m.Body == "a0":
								return tt.head(ctx, m)
							}
							ran = append(ran, m.Body)
							return nil
						}, func(o *Options) { o.Concurrency = concurrency })
					}
					f := newProcess(10)
					for n := range 10 { // an old process knows run times that leave no time behind a slow head
						x.send(string(rune('b' + n)))
					}
					e := x.receive()
					x.deleteOthers(e, x.failed(f, 30*time.Second, e))
					x.send(append([]string{"a0"}, followers...)...)
					x.mapping(func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
						if !old {
							f = newProcess(1)
						}
						return f(ctx, e)
					}, time.Hour)
					switch dead := x.dead(); {
					case tt.reason == "" && dead != "", tt.reason != "" && !strings.HasPrefix(dead, "a0: "), strings.Contains(dead, ", "):
						t.Errorf("in the dead-letter queue: %q", dead)
					case !refuses && !strings.Contains(dead, tt.reason):
						t.Errorf("the reason is %q, want %q in it", dead, tt.reason)
					}
					if got, want := strings.Join(ran, " "), strings.Join(followers, " "); got != want {
						t.Errorf("ran %s, want %s\n%s", got, want, &x.log)
					}
					if left := x.srv.Messages(x.url); len(left) > 0 {
						t.Errorf("%d messages in the queue", len(left))
					}
					time.Sleep(time.Hour)
				})
			})
		}
	}
}

// changes is a handler that ignores its context for an hour, and writes into its message meanwhile.
func changes(_ context.Context, m *sqsonce.Message) error {
	for range 3600 {
		time.Sleep(time.Second)
		m.Body = "another"
	}
	return nil
}

func TestFIFOFailureEndsItsGroupOnly(t *testing.T) {
	t.Parallel()
	for name, h := range bad {
		var r runs
		f := wrap(t, r.wrap(handlers{"a2": h}.handle))
		got := invoke(t, f, t.Context(), fifoBatch("a1", "b1", "a2", "a3", "b2", "c1", "a4", "b3"))
		if got != "a2 a3 a4" {
			t.Errorf("%s: failed: got %q, want a2 a3 a4", name, got)
		}
		if started := strings.Join(r.list(), " "); strings.Contains(started, "a3") || strings.Contains(started, "a4") {
			t.Errorf("%s: ran %s: one of them is behind a failed message", name, started)
		}
	}
}
