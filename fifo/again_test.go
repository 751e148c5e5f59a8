package fifo_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// Each call of PublishAll ends with an unknown outcome after a minute, and the caller repeats it at once. SQS remembers the ID
// since the first call: no attempt may start over 285 s after the first one of the first call.
func TestPublishingAgainContinuesTheWindow(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		begun := time.Now()
		var at []time.Duration // the attempts: SQS takes every request, and its replies are lost
		x.sent.onSend = func(context.Context) { at = append(at, time.Since(begun)) }
		p := x.publisher()
		for time.Since(begun) < 284*time.Second {
			ctx, cancel := context.WithTimeout(x.Context(), time.Minute)
			_, err := p.PublishAll(ctx, []fifo.Event{event("g", 1)})
			cancel()
			pe := split(err)[0]
			if reason(pe) != "unknown" || !pe.FirstAttempt.Equal(begun) {
				x.Errorf("after %v: %v, first attempt after %v; want an unknown outcome since 0s", time.Since(begun), pe, pe.FirstAttempt.Sub(begun))
			}
		}
		if last := at[len(at)-1]; last < 280*time.Second || last > 285*time.Second {
			x.Errorf("the last attempt was after %v, want 280s to 285s", last)
		}
		x.expect("messages", 1, len(x.queued("g")))
		// Now a copy may come, as the documentation says.
		time.Sleep(2 * time.Second)
		if _, err := p.PublishAll(x.Context(), []fifo.Event{event("g", 1)}); reason(split(err)[0]) != "unknown" {
			x.Errorf("after the window: %v", err)
		}
		if last := at[len(at)-1]; last < 560*time.Second {
			x.Errorf("the last attempt was after %v, want those of a window of its own", last)
		}
	}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.LoseReply})
}

// What is said of a later call holds for the event, not for the call.
func TestPublishingAgainIsNotNotSent(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		must.Get(p.Publish(x.Context(), event("g", 1)))(x)
		x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: "SendMessageBatch", Prob: 1, Do: fault.Error, Code: "AccessDenied"}}})
		ended, cancel := context.WithCancel(x.Context())
		cancel()
		for name, ctx := range map[string]context.Context{"a context that has ended": ended, "a refusal": x.Context()} {
			_, err := p.Publish(ctx, event("g", 1))
			if reason(err) != "unknown" || errors.Is(err, fifo.ErrNotSent) {
				x.Errorf("%s: %v, want ErrUnknownOutcome: the event is in the queue", name, err)
			}
			if pe, _ := errors.AsType[*fifo.PublishError](err); pe.FirstAttempt.IsZero() {
				x.Errorf("%s: no first attempt", name)
			}
		}
		must.Do(x, p.Close(x.Context()))
		if _, err := p.Publish(x.Context(), event("g", 1)); reason(err) != "unknown" || !errors.Is(err, fifo.ErrClosed) {
			x.Errorf("closed: %v, want ErrUnknownOutcome and ErrClosed", err)
		}
		if _, err := p.Publish(x.Context(), event("g", 2)); reason(err) != "not sent" || !errors.Is(err, fifo.ErrClosed) {
			x.Errorf("another event: %v, want ErrNotSent and ErrClosed", err)
		}
	})
}

// SQS deduplicates by the ID alone: it would answer success and drop the event.
func TestConflictOfAllThatAConsumerSees(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fifo.Event){
		"body":                 func(e *fifo.Event) { e.Body = "another" },
		"group":                func(e *fifo.Event) { e.Group = "another" },
		"type":                 func(e *fifo.Event) { e.Type = "another" },
		"attribute":            func(e *fifo.Event) { e.Attributes["a"] = sqsonce.Attribute{Type: "String", String: "2"} },
		"type of an attribute": func(e *fifo.Event) { e.Attributes["a"] = sqsonce.Attribute{Type: "Number", String: "1"} },
		"binary attribute":     func(e *fifo.Event) { e.Attributes["b"] = sqsonce.Attribute{Type: "Binary", Binary: []byte{2}} },
		"name of an attribute": func(e *fifo.Event) {
			e.Attributes["c"] = e.Attributes["a"]
			delete(e.Attributes, "a")
		},
		"end of the group":     func(e *fifo.Event) { e.Group, e.Type = "gc", "reated" },
		"attributes exchanged": func(e *fifo.Event) { e.Attributes["a"], e.Attributes["n"] = e.Attributes["n"], e.Attributes["a"] },
		"":                     func(*fifo.Event) {},
		"trace header":         func(e *fifo.Event) { e.TraceHeader = "Root=1-5759e988-bd862e3fe1be46a994272793" },
	} {
		runIn(t, name, orders, func(x *fixture) {
			first := func() fifo.Event {
				e := event("g", 1)
				e.Type = "created"
				e.Attributes = map[string]sqsonce.Attribute{
					"a": {Type: "String", String: "1"}, "n": {Type: "String", String: "2"}, "b": {Type: "Binary", Binary: []byte{1}},
				}
				return e
			}
			p := x.publisher()
			must.Get(p.Publish(x.Context(), first()))(x)
			x.sent.forget()
			again := first()
			change(&again)
			_, err := p.Publish(x.Context(), again)
			conflict := name != "" && name != "trace header"
			if errors.Is(err, fifo.ErrDedupConflict) != conflict || (err != nil) != conflict || conflict && !errors.Is(err, fifo.ErrNotSent) {
				x.Errorf("got %v, want a conflict: %t", err, conflict)
			}
		})
	}
}

// SQS remembers an ID for five minutes at least. The number of its first message tells that it dropped another event.
func TestConflictThatSQSAnswers(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		x.sent.Client = &changingClient{Client: x.sqs, change: func(_ int, out *sqs.SendMessageBatchOutput) {
			for i := range out.Successful { // SQS answers with the first message's number
				out.Successful[i].SequenceNumber = aws.String("18850000000000000000")
			}
		}}
		p := x.publisher()
		must.Get(p.Publish(x.Context(), event("g", 1)))(x)
		time.Sleep(5*time.Minute + 2*time.Second)
		must.Get(p.Publish(x.Context(), event("g", 1)))(x)
		time.Sleep(5*time.Minute + 2*time.Second)
		x.sent.forget()
		other := event("g", 1)
		other.Body = "another"
		x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: "SendMessageBatch", Nth: 1, Do: fault.LoseReply}}})
		for _, refused := range []bool{false, true} { // the attempt without an answer may reach SQS late
			_, err := p.Publish(x.Context(), other)
			if !errors.Is(err, fifo.ErrDedupConflict) || !errors.Is(err, fifo.ErrNotSent) || errors.Is(err, fifo.ErrRefused) != refused {
				x.Errorf("another event with the ID: %v, want ErrDedupConflict; ErrRefused: %t", err, refused)
			}
		}
	})
}

func TestMemoryIsGivenBack(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		var remembered []int
		for minute := range 12 {
			must.Get(p.Publish(x.Context(), event("g", minute)))(x)
			remembered = append(remembered, p.Remembered())
			time.Sleep(time.Minute)
		}
		x.expect("events remembered, with one a minute", []int{1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 7, 7}, remembered)
		for n := range 100 {
			must.Get(p.Publish(x.Context(), event("i", n)))(x)
			time.Sleep(10 * time.Second)
		}
		if n := p.Remembered(); n < 36 || n > 43 {
			x.Errorf("%d events remembered with one in ten seconds, want those of six to seven minutes", n)
		}
		time.Sleep(time.Hour)
		for n := range 3 {
			must.Get(p.Publish(x.Context(), event("h", n)))(x)
		}
		x.expect("events remembered after an hour without one", 3, p.Remembered())
	})
}

func TestDedupConflict(t *testing.T) {
	t.Parallel()
	for _, queue := range []string{orders, standard} {
		runIn(t, queue, queue, func(x *fixture) {
			p := x.publisher()
			time.Sleep(time.Hour + 100*time.Millisecond)
			other := event("g", 1)
			other.Body = "another"

			pd := must.Get(p.Enqueue(x.Context(), event("g", 1)))(x)
			if _, err := p.Publish(x.Context(), other); !errors.Is(err, fifo.ErrDedupConflict) {
				x.Errorf("while the first waits: %v, want ErrDedupConflict", err)
			}
			must.Get(pd.Get(x.Context()))(x)
			time.Sleep(5*time.Minute - time.Millisecond)
			if _, err := p.Publish(x.Context(), other); !errors.Is(err, fifo.ErrDedupConflict) {
				x.Errorf("just under five minutes later: %v, want ErrDedupConflict", err)
			}
			time.Sleep(2 * time.Second)
			x.sent.forget()
			must.Get(p.Publish(x.Context(), other))(x)
		})
	}
}

// The body of an event that is certainly not in the queue may be corrected.
func TestARefusedEventMayBeCorrected(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		p := x.publisher()
		if _, err := p.Publish(x.Context(), event("g", 1)); !errors.Is(err, fifo.ErrNotSent) {
			x.Fatalf("Publish: %v, want ErrNotSent", err)
		}
		corrected := event("g", 1)
		corrected.Body = "corrected"
		x.sent.forget()
		must.Get(p.Publish(x.Context(), corrected))(x)
	}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.FailEntries, Code: "InvalidMessageContents"})
}
