package sqsworker

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

const opReceive = "ReceiveMessage"

func TestIdleIsOnePollPerWait(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		for i := range 200 {
			x.send(fmt.Sprint(i))
		}
		j := x.start(ok, func(o *Options) { o.Concurrency = 50 })
		time.Sleep(2*time.Minute + 7*time.Second) // the receivers that joined are gone
		before := x.calls(opReceive)
		time.Sleep(10 * time.Minute)
		if n := x.calls(opReceive) - before; n != 40 {
			t.Errorf("%d receives in 10 min, want one every 15 s", n)
		}
		j.stopClean()
		if x.log.has("answered without use") {
			t.Error("full and empty receives are logged as useless")
		}
	})
}

func TestReceiversGrowWithTheLoad(t *testing.T) {
	rule := fault.Rule{Op: opReceive, Prob: 1, Do: fault.Delay, Delay: 100 * time.Millisecond}
	bubble(t, setup{faults: []fault.Rule{rule}}, func(x *fixture) {
		const n = 2000
		for i := range n {
			x.send(fmt.Sprint(i))
		}
		j := x.start(ok, func(o *Options) { o.Concurrency, o.InFlight = 100, 500 })
		began := time.Now()
		for len(x.queued()) > 0 {
			time.Sleep(50 * time.Millisecond)
		}
		// One receive at a time would take 20 s.
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("took %s", took)
		}
		j.stopClean()
	})
}

// TestBusyHandlersNeedNoMoreReceivers: while all handlers are busy, more receives would only keep messages from other
// workers.
func TestBusyHandlersNeedNoMoreReceivers(t *testing.T) {
	rule := fault.Rule{Op: opReceive, Prob: 1, Do: fault.Delay, Delay: 20 * time.Millisecond}
	bubble(t, setup{faults: []fault.Rule{rule}}, func(x *fixture) {
		for i := range 500 {
			x.send(fmt.Sprint(i))
		}
		g := &gauge{Client: x.c, x: x}
		w, err := New(g, x.url, func(context.Context, *sqsonce.Message) error {
			time.Sleep(time.Second)
			return nil
		}, func(o *Options) { o.Concurrency, o.InFlight, o.Receivers = 10, 1000, 50 })
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 55*time.Second)
		defer cancel()
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
		if g.maxPoll > 3 {
			t.Errorf("%d receives at once for 10 handlers of 1 s, want no more than their start takes", g.maxPoll)
		}
	})
}

// gauge counts what is in flight when a receive is sent, what it asks for included.
type gauge struct {
	Client
	x       *fixture
	mu      sync.Mutex
	maxAsk  int
	polls   int
	maxPoll int
}

func (g *gauge) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, o ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	inFlight := int(in.MaxNumberOfMessages)
	for _, m := range g.x.queued() {
		if m.InFlight {
			inFlight++
		}
	}
	g.enter(inFlight, 1)
	defer g.enter(0, -1)
	return g.Client.ReceiveMessage(ctx, in, o...)
}

func (g *gauge) enter(inFlight, polls int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.maxAsk = max(g.maxAsk, inFlight)
	g.polls += polls
	g.maxPoll = max(g.maxPoll, g.polls)
}

func TestInFlightIsTheLimit(t *testing.T) {
	for _, limit := range []int{1, 3, 12, 25} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			bubble(t, setup{}, func(x *fixture) {
				for i := range 60 {
					x.send(fmt.Sprint(i))
				}
				g := &gauge{Client: x.c, x: x}
				w, err := New(g, x.url, func(context.Context, *sqsonce.Message) error {
					time.Sleep(time.Second)
					return nil
				}, func(o *Options) { o.Concurrency, o.InFlight, o.Receivers = 10, limit, 1 })
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
				defer cancel()
				if err := w.Run(ctx); err != nil {
					t.Error(err)
				}
				x.wantEmpty()
				if g.maxAsk > limit || g.maxPoll > 1 {
					t.Errorf("asked for %d in flight with %d polls, want at most %d and 1", g.maxAsk, g.maxPoll, limit)
				}
			})
		})
	}
}

func TestBytesAreTheLimit(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		body := strings.Repeat("x", 200<<10)
		for range 40 {
			x.send(body)
		}
		var r runs
		j := x.start(r.take(time.Second), func(o *Options) { o.Concurrency, o.InFlight, o.Bytes = 40, 100, 2<<20 })
		time.Sleep(time.Minute)
		j.stopClean()
		x.wantEmpty()
		if r.most > 10 || r.most < 5 {
			t.Errorf("%d of 200 KiB at once in 2 MiB, want 5 to 10", r.most)
		}
	})
}

func TestTransientReceiveErrorsBackOff(t *testing.T) {
	rule := fault.Rule{Op: opReceive, Nth: 1, Times: 30, Do: fault.Error, Code: "InternalError"}
	bubble(t, setup{faults: []fault.Rule{rule}}, func(x *fixture) {
		x.send("a")
		j := x.start(ok)
		time.Sleep(time.Second)
		if n := x.calls(opReceive); n > 20 {
			t.Errorf("%d receives in the first second of an outage", n)
		}
		time.Sleep(20 * time.Minute)
		j.stopClean()
		x.wantEmpty()
	})
}

// TestUnansweredReceives: a receive whose answer is lost hides its messages until their visibility timeout ends, and is
// counted. On FIFO the attempt is repeated and gets the same messages.
func TestUnansweredReceives(t *testing.T) {
	for name, c := range map[string]struct {
		rule           fault.Rule
		standard, fifo int64
	}{
		"reply lost": {fault.Rule{Op: opReceive, Nth: 1, Do: fault.LoseReply}, 1, 0},
		"failed":     {fault.Rule{Op: opReceive, Nth: 1, Do: fault.Error}, 1, 0},
		"throttled":  {fault.Rule{Op: opReceive, Nth: 1, Do: fault.Error, Code: "RequestThrottled"}, 0, 0},
	} {
		for fifo, want := range map[bool]int64{false: c.standard, true: c.fifo} {
			t.Run(fmt.Sprintf("%s fifo=%t", name, fifo), func(t *testing.T) {
				bubble(t, setup{fifo: fifo, faults: []fault.Rule{c.rule}}, func(x *fixture) {
					x.send("g:a")
					j := x.start(ok)
					time.Sleep(10 * time.Minute)
					j.stopClean()
					x.wantEmpty()
					if got := j.Stats(); got.Unanswered != want || got.Done != 1 {
						t.Errorf("got %+v, want %d unanswered and 1 done", got, want)
					}
				})
			})
		}
	}
}

func TestReceiveAttempts(t *testing.T) {
	for name, rule := range map[string]fault.Rule{
		"reply lost": {Op: opReceive, Nth: 1, Do: fault.LoseReply},
		"throttled":  {Op: opReceive, Nth: 1, Do: fault.Error, Code: "RequestThrottled"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, setup{fifo: true, faults: []fault.Rule{rule}}, func(x *fixture) {
				x.send("g:0", "g:1")
				var r runs
				j := x.start(r.take(time.Second))
				time.Sleep(5 * time.Second)
				// Without the repeated attempt the messages would be hidden for 30 s.
				x.wantEmpty()
				j.stopClean()
				inOrder(t, r.list())
			})
		})
	}
}
