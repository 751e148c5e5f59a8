package sqsworker

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// TestHeartbeatEndsWithTheMessage: however a delivery ends, nothing is extended after it. An extension of what was given
// back would hide it from everyone.
func TestHeartbeatEndsWithTheMessage(t *testing.T) {
	for name, end := range map[string]error{
		"done":        nil,
		"failed":      sqsonce.RetryAfter(10*time.Hour, errTest),
		"rejected":    sqsonce.Reject(errTest),
		"in progress": sqsonce.RetryAfter(10*time.Hour, sqsonce.ErrInProgress),
		"lease lost":  sqsonce.ErrLeaseLost,
	} {
		for _, fifo := range []bool{false, true} {
			if fifo && name == "in progress" {
				continue // it is kept, under the heartbeat
			}
			t.Run(fmt.Sprintf("%s fifo=%t", name, fifo), func(t *testing.T) {
				bubble(t, setup{fifo: fifo, maxReceives: 100}, func(x *fixture) {
					x.send("g:a", "h:b")
					j := x.start(func(_ context.Context, m *sqsonce.Message) error {
						if m.ReceiveCount > 1 {
							return nil
						}
						time.Sleep(40 * time.Second) // extended twice
						return end
					}, func(o *Options) { o.FIFORetries = -1 })
					time.Sleep(2 * time.Minute)
					before := x.calls(opChange)
					if before == 0 {
						t.Error("nothing was extended")
					}
					time.Sleep(time.Hour)
					if n := x.calls(opChange) - before; n != 0 {
						t.Errorf("%d visibility changes after the end", n)
					}
					j.stopClean()
				})
			})
		}
	}
}

// TestReleaseIsNotExtended: its answer is late, and its extension due. Sent then, the extension could be the later one.
func TestReleaseIsNotExtended(t *testing.T) {
	t.Parallel()
	w, err := New(stubClient{}, goodURL, ok)
	if err != nil {
		t.Fatal(err)
	}
	l := newLoop(t.Context(), w, queue{})
	d := l.admit(&incoming{m: &sqsonce.Message{ID: "a"}}, newLease("h", 1, order{}, time.Now().Add(-20*time.Second), 30*time.Second, 0))
	l.set(d, releasing)
	l.beat() // a call would panic
	l.calls.Wait()
	if n := l.counters.extensions.Load(); n != 0 {
		t.Errorf("%d calls to extend what is given back", n)
	}
}

// TestHeartbeatGoesOnInTheStop: until the last handler has returned and its delete is confirmed.
func TestHeartbeatGoesOnInTheStop(t *testing.T) {
	for _, fifo := range []bool{false, true} {
		t.Run(fmt.Sprintf("fifo=%t", fifo), func(t *testing.T) {
			bubble(t, setup{fifo: fifo}, func(x *fixture) {
				x.send("g:a", "h:b")
				x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: opDelete, Nth: 1, Times: 3, Do: fault.Error, Code: "InternalError"}}})
				var r runs
				j := x.start(r.take(45*time.Second), func(o *Options) {
					o.Visibility, o.StopTimeout, o.Wait = 10*time.Second, time.Minute, time.Second
				})
				time.Sleep(2 * time.Second)
				j.cancel()
				time.Sleep(2 * time.Second)
				other := x.start(r.take(45 * time.Second))
				if err := j.wait(); err != nil {
					t.Errorf("Run: %v", err)
				}
				time.Sleep(time.Minute)
				other.stopClean()
				x.wantEmpty()
				if s := other.Stats(); s.Received != 0 || len(r.list()) != 2 {
					t.Errorf("another worker received %d; runs: %v", s.Received, r.list())
				}
			})
		})
	}
}

// twin is a client whose receives bring each message twice in one answer, as SQS may.
type twin struct{ Client }

func (c twin) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, o ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	in.MaxNumberOfMessages = max(1, in.MaxNumberOfMessages/2)
	out, err := c.Client.ReceiveMessage(ctx, in, o...)
	if err == nil {
		out.Messages = append(out.Messages, out.Messages...)
	}
	return out, err
}

// TestTwiceInOneAnswer: one run, one entry in the batch that deletes it. SQS refuses a batch whose IDs are not distinct.
func TestTwiceInOneAnswer(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.send("a", "b", "c", "d", "e")
		var r runs
		w, err := New(twin{x.c}, x.url, r.take(20*time.Second), func(o *Options) { o.Wait = time.Second })
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
		x.wantEmpty()
		if s := w.Stats(); len(r.list()) != 5 || s.LeasesLost != 0 || s.Received != 10 {
			t.Errorf("%v; %+v", r.list(), s)
		}
	})
}

// TestBatchesHavePositionalIDs: the same message may be in a batch twice, with two deliveries of which one is on its way
// out; its ID would be there twice.
func TestBatchesHavePositionalIDs(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.sendMany(30)
		c := &entryIDsSeen{Client: x.c, t: t}
		w, err := New(c, x.url, func(context.Context, *sqsonce.Message) error {
			time.Sleep(20 * time.Second)
			return nil
		}, func(o *Options) { o.Concurrency, o.Wait = 30, time.Second })
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
		x.wantEmpty()
		if c.full.Load() == 0 {
			t.Error("no full batch")
		}
	})
}

type entryIDsSeen struct {
	Client
	t    *testing.T
	full atomic.Int64
}

func (c *entryIDsSeen) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, o ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	for i, e := range in.Entries {
		c.see(i, e.Id)
	}
	return c.Client.DeleteMessageBatch(ctx, in, o...)
}

func (c *entryIDsSeen) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, o ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	for i, e := range in.Entries {
		c.see(i, e.Id)
	}
	return c.Client.ChangeMessageVisibilityBatch(ctx, in, o...)
}

func (c *entryIDsSeen) see(i int, id *string) {
	if aws.ToString(id) != fmt.Sprint(i) {
		c.t.Errorf("entry %d has ID %s", i, aws.ToString(id))
	}
	if i == maxBatch-1 {
		c.full.Add(1)
	}
}
