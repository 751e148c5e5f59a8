package hosttest

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/values"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/sqsworker"
)

func TestEachOutcomeIsDecided(t *testing.T) {
	values.EachOutcome(t, func(kind sqsonce.OutcomeKind, o values.Outcome) {
		if o.ByHosts != "" {
			return
		}
		for host, decide := range map[string]func(*testing.T, error, values.Outcome) values.Outcome{"worker": decideInWorker, "function": decideInFunction} {
			must.Run(t, host+"/"+kind.String(), func(t *testing.T) {
				want := o
				want.Err = nil
				if d := cmp.Diff(want, decide(t, o.Err, want)); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
			})
		}
	})
}

// told is set by Options.OnError.
type told struct{ atomic.Bool }

func (b *told) set(context.Context, *sqsonce.Message, error) { b.Store(true) }

// decideInWorker returns what a worker makes of a message whose handler returns err, in the fields of a worker. The others are those
// of want.
func decideInWorker(t *testing.T, err error, want values.Outcome) values.Outcome {
	w := newFixture(t, setup{quiet: true, visibility: time.Minute, maxReceives: maxReceives})
	w.send(message{name: "a1"})
	p := w.newProcess()
	var told told
	k, newErr := sqsworker.New(p.sqs, w.url, func(context.Context, *sqsonce.Message) error { return err }, func(o *sqsworker.Options) {
		o.Logger, o.OnError = w.log, told.set
	})
	if newErr != nil {
		t.Fatal(newErr)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- k.Run(ctx) }()
	time.Sleep(900 * time.Millisecond) // before a second run
	got := want
	got.Queued, got.Dead, got.Told = len(w.sqs.Messages(w.url)) > 0, len(w.sqs.Messages(w.dlq)) > 0, told.Load()
	stats := reflect.ValueOf(k.Stats())
	var counted []string
	for _, o := range values.Outcomes {
		for _, name := range strings.Fields(o.Counted) {
			if f := stats.FieldByName(name); f.IsValid() && f.Int() > 0 && !slices.Contains(counted, name) {
				counted = append(counted, name)
			}
		}
	}
	slices.Sort(counted)
	got.Counted = strings.Join(counted, " ")
	stop()
	must.Do(t, <-stopped)
	p.kill()
	w.admin.kill()
	return got
}

// decideInFunction is decideInWorker for a function.
func decideInFunction(t *testing.T, err error, want values.Outcome) values.Outcome {
	w := newFixture(t, setup{quiet: true, visibility: time.Minute, maxReceives: maxReceives})
	w.send(message{name: "a1"})
	p := w.newProcess()
	var told told
	handle, wrapErr := lambda.Wrap(func(context.Context, *sqsonce.Message) error { return err }, func(o *lambda.Options) {
		o.OnError = told.set
		o.Client, o.DeadLetterQueue, o.Logger = p.sqs, w.dlq, slog.New(slog.DiscardHandler)
	})
	if wrapErr != nil {
		t.Fatal(wrapErr)
	}
	received := w.receiveEvent()
	ctx, cancel := context.WithTimeout(t.Context(), functionTimeout)
	defer cancel()
	response, invokeErr := handle(ctx, received)
	// An invocation in which nothing was handled may be an error as a whole.
	got := want
	got.Failed, got.Dead, got.Told = len(response.BatchItemFailures) > 0 || invokeErr != nil, len(w.sqs.Messages(w.dlq)) > 0, told.Load()
	got.Queued = got.Failed // the mapping deletes what is not reported
	got.Delayed = slices.ContainsFunc(w.sqs.Calls(), func(c fault.Call) bool { return strings.HasPrefix(c.Op, "ChangeMessageVisibility") })
	p.kill()
	w.admin.kill()
	return got
}

// receiveEvent receives the one message of the queue, as an event source mapping does.
func (w *fixture) receiveEvent() (e events.SQSEvent) {
	w.Helper()
	out, err := w.admin.sqs.ReceiveMessage(w.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &w.url, MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"All"},
	})
	if err != nil || len(out.Messages) != 1 {
		w.Fatalf("ReceiveMessage: got %v, %v, want one message", out, err)
	}
	m := out.Messages[0]
	return events.SQSEvent{Records: []events.SQSMessage{{
		MessageId: *m.MessageId, ReceiptHandle: *m.ReceiptHandle, Body: *m.Body, Attributes: m.Attributes,
		EventSource: "aws:sqs", EventSourceARN: w.named(queueARN),
	}}}
}
