package sqsworker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

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

func TestInFlightIsTheLimit(t *testing.T) {
	for _, limit := range []int{1, 3, 12, 25} {
		run(t, fmt.Sprint(limit), setup{}, func(x *fixture) {
			for i := range 60 {
				x.send(fmt.Sprint(i))
			}
			most := 0 // in flight when a receive is sent, what it asks for included; there is one at a time
			c := &countedClient{Client: receiveFunc{x.c, func(ctx context.Context, in *sqs.ReceiveMessageInput, o ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
				most = max(most, int(in.MaxNumberOfMessages)+x.inFlight())
				return x.c.ReceiveMessage(ctx, in, o...)
			}}}
			j := x.startWith(c, ignores(time.Second, nil), func(o *Options) { o.Concurrency, o.MaxInFlight, o.MaxReceivers = 10, limit, 1 })
			time.Sleep(2 * time.Minute)
			j.stopClean()
			x.wantEmpty()
			if most > limit || c.receives.most > 1 {
				x.Errorf("asked for %d in flight with %d polls, want at most %d and 1", most, c.receives.most, limit)
			}
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
		j := x.start(r.take(time.Second), func(o *Options) { o.Concurrency, o.MaxInFlight, o.MaxBytes = 40, 100, 2<<20 })
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
			run(t, fmt.Sprintf("%s fifo=%t", name, fifo), setup{fifo: fifo, faults: []fault.Rule{c.rule}}, func(x *fixture) {
				x.send("g:a")
				j := x.start(ok)
				time.Sleep(10 * time.Minute)
				j.stopClean()
				x.wantEmpty()
				if got := j.Stats(); got.Unanswered != want || got.Done != 1 {
					x.Errorf("got %+v, want %d unanswered and 1 done", got, want)
				}
				if n := x.calls("GetQueueAttributes"); n > 4 {
					x.Errorf("%d reads of the attributes in 10 min, want 4 at most: an answer ends the doubt", n)
				}
			})
		}
	}
}
