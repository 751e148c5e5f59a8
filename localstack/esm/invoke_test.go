package esm_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sqsonce/sqsonce/localstack/esm"
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
		x.run(esm.Config{}, f.invoke)
		time.Sleep(visibility / 2)
		x.mustStop()
		ab := []string{"a", "b"}
		f.wantBatches(ab, ab, ab, ab)
		if remaining := x.bodies(); len(remaining) != 0 {
			t.Errorf("still in the queue: %q", remaining)
		}
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
		x.run(esm.Config{}, f.invoke)
		time.Sleep(visibility + time.Second)
		x.mustStop()
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
		x.run(esm.Config{Wait: time.Second}, always(t, nil, esm.ErrThrottled).invoke)
		time.Sleep(10 * time.Second)
		x.mustStop()
		if got := x.since(); got > 12*time.Second {
			t.Errorf("stopped after %s, want at most the poll in flight later", got)
		}
		if m := x.srv.Messages(x.url)[0]; m.InFlight {
			t.Errorf("the message is in flight until %s, want it released", m.VisibleAt.Sub(x.start))
		}
	})
}
