package esm_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// A throttled batch is invoked again, without another receive.
func TestThrottled(t *testing.T) {
	onQueue(t, "jobs", func(x *fixture) {
		x.send("a", "b")
		throttles := 3
		f := &function{t: t, f: func(_ context.Context, e events.SQSEvent) (any, error) {
			if throttles > 0 {
				throttles--
				return nil, fmt.Errorf("rate exceeded: %w", esm.ErrThrottled)
			}
			if got := e.Records[0].Attributes["ApproximateReceiveCount"]; got != "1" {
				t.Errorf("ApproximateReceiveCount is %s, want 1", got)
			}
			return nil, nil
		}}
		x.during(visibility/2, esm.Config{}, f.invoke)
		ab := []string{"a", "b"}
		f.wantBatches(ab, ab, ab, ab)
		x.wantEmpty()
	})
}

// When the visibility timeout of the messages has ended, another consumer may have them: the mapping drops the batch.
func TestThrottledUntilVisibilityEnds(t *testing.T) {
	onQueue(t, "jobs", func(x *fixture) {
		x.send("a")
		var counts []string
		f := &function{t: t, f: func(_ context.Context, e events.SQSEvent) (any, error) {
			if time.Since(x.start) < visibility {
				return nil, esm.ErrThrottled
			}
			counts = append(counts, e.Records[0].Attributes["ApproximateReceiveCount"])
			return nil, nil
		}}
		x.during(visibility+time.Second, esm.Config{}, f.invoke)
		if got := fmt.Sprint(counts); got != "[2]" {
			t.Errorf("invoked with receive counts %s, want [2]", got)
		}
		if !strings.Contains(x.log.String(), "visibility timeout ended before") {
			t.Errorf("log does not say that the batch was dropped:\n%s", x.log.String())
		}
	})
}

// A stop does not wait for a throttled batch: the messages are released.
func TestStopWhileThrottled(t *testing.T) {
	onQueue(t, "jobs", func(x *fixture) {
		x.send("a")
		x.during(10*time.Second, esm.Config{Wait: time.Second}, always(t, nil, esm.ErrThrottled).invoke)
		if got := x.since(); got > 12*time.Second {
			t.Errorf("stopped after %s, want at most the poll in flight later", got)
		}
		if m := x.srv.Messages(x.url)[0]; m.InFlight {
			t.Errorf("the message is in flight until %s, want it released", m.VisibleAt.Sub(x.start))
		}
	})
}

func TestDeletesInTens(t *testing.T) {
	onQueue(t, "jobs", func(x *fixture) {
		x.send(numbered(25)...)
		x.during(5*time.Second, esm.Config{BatchSize: 25, BatchingWindow: time.Second}, always(t, nil, nil).invoke)
		var got []int
		for _, c := range x.srv.Calls() {
			if c.Op == "DeleteMessageBatch" {
				got = append(got, c.Entries)
			}
		}
		if want := []int{10, 10, 5}; !cmp.Equal(got, want) {
			t.Errorf("deletes of %d messages, want %d", got, want)
		}
	})
}

// A delete with an unknown outcome is repeated; the invocation is not.
func TestDeleteIsRetried(t *testing.T) {
	for _, tt := range []struct {
		name string
		rule fault.Rule
	}{
		{"entries fail", fault.Rule{Do: fault.FailEntries, Entries: []int{1}}},
		{"entries fail twice", fault.Rule{Do: fault.FailEntries, Entries: []int{0, 2}, Times: 2}},
		{"entries missing in the response", fault.Rule{Do: fault.DropEntries, Entries: []int{1}}},
		{"call fails", fault.Rule{Do: fault.Error, Times: 4}},
		{"reply lost", fault.Rule{Do: fault.LoseReply}},
	} {
		runOnQueue(t, tt.name, "jobs", func(x *fixture) {
			x.send("a", "b", "c")
			tt.rule.Op, tt.rule.Nth = "DeleteMessageBatch", 1
			x.inject(tt.rule)
			f := always(x.T, nil, nil)
			x.during(2*visibility, esm.Config{}, f.invoke)
			f.wantBatches([]string{"a", "b", "c"})
			x.wantEmpty()
		})
	}
}

// A message that cannot be deleted is delivered again, and the log says so.
func TestDeleteFailsForGood(t *testing.T) {
	for _, tt := range []struct {
		name string
		rule fault.Rule
	}{
		{"entry refused", fault.Rule{Do: fault.FailEntries, Entries: []int{1}, Code: "ReceiptHandleIsInvalid"}},
		{"entry fails every time", fault.Rule{Do: fault.FailEntries, Entries: []int{0}, Times: 5}},
	} {
		runOnQueue(t, tt.name, "jobs", func(x *fixture) {
			x.send("a", "b")
			tt.rule.Op, tt.rule.Nth = "DeleteMessageBatch", 1
			if tt.rule.Times > 1 {
				tt.rule.Entries = nil // every retry has fewer entries
			}
			x.inject(tt.rule)
			f := always(x.T, nil, nil)
			x.during(2*visibility, esm.Config{}, f.invoke)
			if got := f.got(); len(got) != 2 {
				x.Errorf("invoked with %q, want a second time", got)
			}
			x.wantEmpty()
			if !strings.Contains(x.log.String(), "could not be deleted") {
				x.Errorf("log does not say that a message was not deleted:\n%s", x.log.String())
			}
		})
	}
}
