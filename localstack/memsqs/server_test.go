package memsqs_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// clock is a server clock that a test can set forward.
type clock struct{ ahead atomic.Int64 }

func (c *clock) option(o *memsqs.Options) {
	o.Now = func() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }
}

func TestServerClock(t *testing.T) {
	var c clock
	standard(t, func(x *fixture) {
		x.send("a")
		x.want("a")
		c.ahead.Store(int64(time.Hour))
		x.want("a")
	}, c.option)
}

func TestServerClockAheadOfAPoll(t *testing.T) {
	var c clock
	standard(t, func(x *fixture) {
		x.send("a")
		x.want("a")
		time.AfterFunc(time.Second, func() { c.ahead.Store(int64(time.Hour)) })
		start := time.Now()
		x.same(x.receive(1, func(in *sqs.ReceiveMessageInput) { in.WaitTimeSeconds = 20 }), "a")
		if d := time.Since(start); d != 20*time.Second {
			x.Errorf("the poll ended after %v, want 20 s", d)
		}
	}, c.option)
}

func TestSeededUnreliability(t *testing.T) {
	receiveAll := func(seed uint64, reorder int, duplicates float64) (bodies []string) {
		standard(t, func(x *fixture) {
			for i := range 50 {
				x.send(string(rune('A' + i)))
			}
			for got := x.receive(10); len(got) > 0; got = x.receive(10) {
				for _, m := range got {
					bodies = append(bodies, *m.Body)
					x.ok(x.delete(m))
				}
			}
		}, func(o *memsqs.Options) { o.Seed, o.Reorder, o.Duplicates = seed, reorder, duplicates })
		return bodies
	}
	if got := receiveAll(1, 0, 0); !slices.IsSorted(got) || len(got) != 50 {
		t.Errorf("without faults received %q", got)
	}
	if got := receiveAll(1, 8, 0); slices.IsSorted(got) || len(got) != 50 {
		t.Errorf("with reordering received %q, want 50, not in order", got)
	} else {
		for i, b := range got {
			if position := int([]rune(b)[0] - 'A'); i-position > 8 || position-i > 8 {
				t.Errorf("%q came %d positions off, want at most 8", b, i-position)
			}
		}
	}
	if got := receiveAll(1, 0, 0.2); len(got) <= 50 || len(slices.Compact(slices.Sorted(slices.Values(got)))) != 50 {
		t.Errorf("with duplicates received %q, want all 50 and some twice", got)
	}
	one, again, other := receiveAll(1, 8, 0.2), receiveAll(1, 8, 0.2), receiveAll(2, 8, 0.2)
	if !slices.Equal(one, again) || slices.Equal(one, other) {
		t.Error("seeds 1, 1, 2 do not give the same order for one seed only")
	}
}

func TestOptions(t *testing.T) {
	run(t, "jobs", nil, func(x *fixture) {
		if want := "http://127.0.0.1:4566/123456789012/jobs"; x.url != want {
			x.Errorf("URL %s, want %s", x.url, want)
		}
		if got, want := x.attributes("QueueArn")["QueueArn"], "arn:aws:sqs:eu-west-1:123456789012:jobs"; got != want {
			x.Errorf("ARN %s, want %s", got, want)
		}
		x.ok(x.try("a"))
	}, func(o *memsqs.Options) {
		o.Region, o.Account, o.BaseURL = "eu-west-1", "123456789012", "http://127.0.0.1:4566/"
	})
}

func TestMessagesInQueueOrder(t *testing.T) {
	fifo(t, func(x *fixture) {
		for _, b := range []string{"a1", "b1", "a2"} {
			x.send(b, b[:1])
		}
		must.Get(x.c.SendMessage(x.Context(), &sqs.SendMessageInput{QueueUrl: &x.url, MessageBody: aws.String("c1"), MessageGroupId: aws.String("c"), MessageDeduplicationId: aws.String("x")}))(x)
		x.receive(2)
		for _, queue := range []string{"jobs.fifo", x.url} {
			got := x.srv.Messages(queue)
			var bodies []string
			for _, m := range got {
				bodies = append(bodies, m.Body)
			}
			if !slices.Equal(bodies, []string{"a1", "b1", "a2", "c1"}) {
				x.Fatalf("messages %v", bodies)
			}
			if !got[0].InFlight || got[0].ReceiveCount != 1 || got[1].InFlight || !got[2].InFlight || got[3].DedupID != "x" || got[3].Group != "c" {
				x.Errorf("messages %+v", got)
			}
			if want := time.Now().Add(30 * time.Second); !got[0].VisibleAt.Equal(want) {
				x.Errorf("visible at %v, want %v", got[0].VisibleAt, want)
			}
		}
		if got := x.srv.Messages("nowhere"); got != nil {
			x.Errorf("messages of no queue: %v", got)
		}
	})
}
