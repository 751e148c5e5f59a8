package sqsworker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// wantRunning compares what runs: group, receive count, seconds since the start, and whether it is hidden and stuck.
func (j *job) wantRunning(when string, want ...string) {
	j.x.Helper()
	all, total := j.listRunning(1000)
	var got []string
	for _, h := range all {
		text := fmt.Sprintf("%s/%d since %.0f s", h.Group, h.ReceiveCount, time.Since(h.Since).Seconds())
		if h.Lease > 0 {
			text += ", hidden"
		}
		if h.Stuck {
			text += ", stuck"
		}
		got = append(got, text)
	}
	if !slices.Equal(got, want) || total != len(want) {
		j.x.Errorf("%s: %d run:\n%s\nwant\n%s", when, total, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestRunning: from the start over extensions to the end, which comes after that of Run for a handler that does not return.
func TestRunning(t *testing.T) {
	bubble(t, setup{fifo: true}, func(x *fixture) {
		x.send("g1:a")
		over := make(chan struct{})
		j := x.start(func(_ context.Context, m *sqsonce.Message) error {
			if m.Group == "g1" {
				<-over
			} else {
				time.Sleep(20 * time.Second)
			}
			return nil
		}, func(o *Options) { o.StopTimeout, o.StopGrace = 5*time.Second, time.Second })
		time.Sleep(4 * time.Second)
		j.wantRunning("one", "g1/1 since 4 s, hidden")
		x.send("g2:b")
		time.Sleep(4 * time.Second)
		j.wantRunning("two, the older one first", "g1/1 since 8 s, hidden", "g2/1 since 4 s, hidden")
		all, total := j.listRunning(1)
		// The proof may begin before the receive, by what is unknown of SQS's clock.
		if lease := all[0].Lease; lease < 20*time.Second || lease > 22*time.Second {
			t.Errorf("8 s after its receive: hidden for %s", lease)
		}
		if total != 2 || len(all) != 1 || all[0].Group != "g1" {
			t.Errorf("of two at most one: %v of %d", all, total)
		}
		time.Sleep(10 * time.Second)
		all, _ = j.listRunning(1)
		if lease := all[0].Lease; lease < 20*time.Second || lease > 30*time.Second {
			t.Errorf("18 s after its receive: hidden for %s, want it extended", lease)
		}
		time.Sleep(10 * time.Second)
		if all, total := j.listRunning(1000); total != 1 || len(all) != 1 || all[0].Group != "g1" {
			t.Errorf("the second has returned: %v of %d", all, total)
		}
		if err := j.stop(); err == nil {
			t.Error("the stop left a handler: got nil")
		}
		if all, total := j.listRunning(1000); total != 1 || len(all) != 1 || !all[0].Stuck || all[0].MessageID == "" {
			t.Errorf("after Run: %+v of %d, want the stuck one", all, total)
		}
		close(over)
		time.Sleep(time.Second)
		j.wantRunning("it has returned")
	})
}

// TestRunningLost: nothing is said to be hidden once the lease is lost, however much time was proven before.
func TestRunningLost(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.send("a")
		over := make(chan struct{})
		var r runs
		j := x.losesItsLease(&r, over, func(o *Options) { o.StopGrace = 5 * time.Second })
		time.Sleep(2 * time.Second)
		j.wantRunning("before the first extension", "/1 since 2 s, hidden")
		time.Sleep(4 * time.Second)
		j.wantRunning("lost", "/1 since 6 s")
		time.Sleep(6 * time.Second)
		j.wantRunning("stuck", "/1 since 12 s, stuck")
		close(over)
		time.Sleep(time.Hour)
		j.stopClean()
	})
}

// TestRunningKey: that of the middleware, and no other, which could be another record's.
func TestRunningKey(t *testing.T) {
	for _, want := range []string{"", "own"} {
		run(t, want, setup{}, func(x *fixture) {
			x.sendEvents("orders|1")
			j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
				settle.ShowKey(ctx, want, "billing#"+want)
				time.Sleep(5 * time.Second)
				return nil
			})
			time.Sleep(time.Second)
			if all, _ := j.listRunning(1); len(all) != 1 || all[0].Key() != want {
				x.Errorf("got %v, want one with the key %q", all, want)
			}
			time.Sleep(time.Minute)
			j.stopClean()
		})
	}
}

func TestOptionsInForce(t *testing.T) {
	t.Parallel()
	w := must.Get(New(&instantClient{}, "http://sqs.local/1/jobs", ok, func(o *Options) { o.MaxHeld, o.StopTimeout = 7, -1 }))(t)
	if w.State() != "new" {
		t.Errorf("state %q", w.State())
	}
	o := w.Options()
	if o.Concurrency != 10 || o.MaxInFlight != 30 || o.MaxHeld != 7 || o.VisibilityTimeout != 30*time.Second || o.StopTimeout != -1 || o.MaxAttempts != 0 {
		t.Errorf("got %+v, want what was given and the defaults", o)
	}
	must.Do(t, w.SetConcurrency(100))
	if o := w.Options(); o.Concurrency != 100 || o.MaxInFlight != 210 || o.MaxHeld != 7 {
		t.Errorf("after SetConcurrency: %+v", o)
	}
}
