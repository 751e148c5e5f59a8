package fifo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

const mebibyte = 1 << 20

// sized returns an event whose message is n bytes with all attributes.
func sized(group string, n int) fifo.Event {
	e := event(group, 1)
	e.Type = "created"
	e.Attributes = map[string]sqsonce.Attribute{
		"note": {Type: "String", String: "é"}, // two bytes
		"blob": {Type: "Binary", Binary: make([]byte, 10)},
	}
	n -= len("event-id"+"String") + len(e.ID)
	n -= len("event-source" + "String" + "orders")
	n -= len("event-type" + "String" + "created")
	n -= len("note"+"String") + 2
	n -= len("blob"+"Binary") + 10
	e.Body = strings.Repeat("é", n/2) + strings.Repeat("x", n%2)
	return e
}

func TestSizeLimit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		attrs map[string]string
		limit int
	}{
		{"SQS's", nil, mebibyte},
		{"the queue's", map[string]string{"MaximumMessageSize": "2048"}, 2048},
		{"the smallest of a queue", map[string]string{"MaximumMessageSize": "1024"}, 1024},
	} {
		runIn(t, tt.name, "unused", func(x *fixture) {
			x.url = testaws.Queue(x, x.sqs, orders, tt.attrs)
			p := x.publisher()
			// The limit is read beside it. On a queue with the smallest limit SQS refuses it.
			_, _ = p.Publish(x.Context(), sized("first", 1025))
			sends := len(x.sizes())
			if _, err := p.Publish(x.Context(), sized("g", tt.limit)); err != nil {
				x.Errorf("%d bytes: %v", tt.limit, err)
			}
			_, err := p.Publish(x.Context(), sized("h", tt.limit+1))
			if diff := cmp.Diff([]string{"Event.Body"}, testaws.Fields(err)); diff != "" {
				x.Errorf("%d bytes: %v, want a OptionError", tt.limit+1, err)
			}
			x.expect("sends", 1, len(x.sizes())-sends)
		})
	}
}

// limitReads returns how often the limit was read. A read goes on beside the sends.
func (x *fixture) limitReads() int {
	time.Sleep(time.Second)
	n := 0
	for _, c := range x.srv.Calls() {
		if c.Op == "GetQueueAttributes" {
			n++
		}
	}
	return n
}

func TestTheQueueLimitIsReadOnce(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		var book logBook
		p := x.publisher(book.option)
		must.Get(p.Publish(x.Context(), sized("g", 1024)))(x)
		x.expect("reads of the limit for an event that fits into every queue", 0, x.limitReads())
		es := []fifo.Event{sized("h", 1025), sized("i", 5000)}
		must.Get(p.PublishAll(x.Context(), es))(x)
		x.expect("reads of the limit", 1, x.limitReads())
		if n := book.count("WARN", ""); n != 0 {
			x.Errorf("%d warnings: %s", n, book.String())
		}
	})
}

func TestTheQueueLimitCannotBeRead(t *testing.T) {
	bubble(t, "unused", func(x *fixture) {
		x.url = testaws.Queue(x, x.sqs, orders, map[string]string{"MaximumMessageSize": "2048"})
		var book logBook
		p := x.publisher(book.option)
		for _, g := range []string{"g", "h", "j"} {
			_, err := p.Publish(x.Context(), sized(g, 3000))
			if reason(err) != "not sent" {
				x.Errorf("Publish: %v, want the refusal of SQS", err)
			}
		}
		must.Get(p.Publish(x.Context(), sized("i", 2048)))(x)
		x.expect("reads of the limit, which is read once more after a failure", 2, x.limitReads())
		if n := book.count("WARN", "cannot read the queue's MaximumMessageSize"); n != 2 {
			x.Errorf("%d lines, want one for each failed read", n)
		}
	}, fault.Rule{Op: "GetQueueAttributes", Prob: 1, Do: fault.Error, Code: "AccessDenied"})
}

// A request has at most 1 MiB: SQS would refuse a larger one as a whole.
func TestRequestsAreBoundedByBytes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		bytes []int
		want  []int // entries by request
	}{
		{"two halves without a margin", []int{mebibyte / 2, mebibyte / 2}, []int{1, 1}},
		{"two that fit", []int{mebibyte/2 - 2048, mebibyte/2 - 2048}, []int{2}},
		{"two that do not", []int{mebibyte/2 - 2048, mebibyte/2 - 2047}, []int{1, 1}},
		{"the largest between small ones", []int{2000, mebibyte, 2000, 2000}, []int{2, 1, 1}},
		{"ten of 100 KB", []int{1e5, 1e5, 1e5, 1e5, 1e5, 1e5, 1e5, 1e5, 1e5, 1e5, 1e5, 1e5}, []int{10, 2}},
	}
	for _, tt := range tests {
		runIn(t, tt.name, orders, func(x *fixture) {
			var es []fifo.Event
			for i, n := range tt.bytes {
				es = append(es, sized(fmt.Sprint("g", i), n))
			}
			p := x.publisher(func(o *fifo.Options) { o.MaxRequests = 1 })
			must.Get(p.PublishAll(x.Context(), es))(x)
			x.expect("entries by request", tt.want, x.sizes())
		})
	}
}

// A call that ends before the limit is known cancels the read, which does not count. A closed publisher reads nothing.
func TestTheQueueLimitIsReadAgain(t *testing.T) {
	bubble(t, "unused", func(x *fixture) {
		x.url = testaws.Queue(x, x.sqs, orders, map[string]string{"MaximumMessageSize": "8192"})
		p := x.publisher()
		for range 3 {
			ctx, cancel := context.WithTimeout(x.Context(), time.Second)
			start := time.Now()
			must.Get(p.PublishAll(ctx, []fifo.Event{sized("g", 5000)}))(x)
			if took := time.Since(start); took != time.Second {
				x.Errorf("PublishAll took %v, want a second", took)
			}
			cancel()
			x.expectIdle(p)
		}
		x.srv.Set(fault.Plan{})
		must.Get(p.PublishAll(x.Context(), []fifo.Event{sized("h", 5000)}))(x)
		if _, err := p.Publish(x.Context(), sized("i", 8193)); len(testaws.Fields(err)) != 1 {
			x.Errorf("%v, want a OptionError: the limit is known", err)
		}
	}, fault.Rule{Op: "GetQueueAttributes", Prob: 1, Do: fault.Delay, Delay: 3 * time.Second})
	inBubble(t, orders, func(x *fixture) {
		p := x.publisher()
		must.Do(x, p.Close(x.Context()))
		_, err := p.Publish(x.Context(), sized("g", 5000))
		if synctest.Wait(); !errors.Is(err, fifo.ErrClosed) || x.limitReads() != 0 {
			x.Errorf("%v, %d reads of the limit", err, x.limitReads())
		}
	})
}

// A limit that is more than a minute old refuses nothing: it may have been raised since, as after an alarm.
func TestALimitIsRaised(t *testing.T) {
	bubble(t, "unused", func(x *fixture) {
		x.url = testaws.Queue(x, x.sqs, orders, map[string]string{"MaximumMessageSize": "2048"})
		p := x.publisher()
		publish := func() error {
			_, err := p.Publish(x.Context(), sized("e", 3_000))
			return err
		}
		if err := publish(); err == nil || len(testaws.Fields(err)) > 0 {
			x.Errorf("before the limit is known: %v, want SQS's refusal", err)
		}
		time.Sleep(time.Second)
		if err := publish(); len(testaws.Fields(err)) != 1 {
			x.Errorf("above the limit: %v, want a OptionError", err)
		}
		must.Get(x.sqs.SetQueueAttributes(x.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &x.url, Attributes: map[string]string{"MaximumMessageSize": "10240"}}))(x)
		if err := publish(); len(testaws.Fields(err)) != 1 {
			x.Errorf("by a limit of a second ago: %v, want a OptionError", err)
		}
		time.Sleep(time.Minute)
		must.Do(x, publish())
	})
}
