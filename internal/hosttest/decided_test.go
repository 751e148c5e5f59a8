package hosttest

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/values"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// treatment is what both hosts do with a message, once its handler has returned.
type treatment struct {
	queue   bool   // it is still in the queue
	dead    bool   // a copy is in the dead-letter queue
	changed bool   // its visibility timeout was changed
	failed  bool   // the function reports it as failed
	told    bool   // Options.OnError is called
	counted string // the worker's counts that grow
}

// decided has a row for each outcome that a handler's error can have.
var decided = map[sqsonce.OutcomeKind]treatment{
	sqsonce.OutcomeDone:        {counted: "Done"},
	sqsonce.OutcomeSkipped:     {counted: "Skipped"},
	sqsonce.OutcomeFailed:      {told: true, queue: true, changed: true, failed: true, counted: "Failed"},
	sqsonce.OutcomeInProgress:  {queue: true, changed: true, failed: true},
	sqsonce.OutcomeRejected:    {told: true, dead: true, counted: "Failed Rejected"},
	sqsonce.OutcomeLeaseLost:   {queue: true, failed: true, counted: "LeasesLost"},
	sqsonce.OutcomeUnavailable: {told: true, queue: true, changed: true, failed: true, counted: "Unavailable"},
}

// madeByHosts are the outcomes that no error has, and the tests of what becomes of them.
var madeByHosts = map[sqsonce.OutcomeKind]string{
	sqsonce.OutcomeShutdown:   "lambda.TestHooks, sqsworker.TestHooks",
	sqsonce.OutcomeAbandoned:  "lambda.TestAbandoned",
	sqsonce.OutcomeNotStarted: "lambda.TestFIFOFailureEndsItsGroupOnly",
}

func TestEachOutcomeIsDecided(t *testing.T) {
	for _, kind := range values.Outcomes() {
		want, ok := decided[kind]
		err, has := values.Errors[kind]
		if _, made := madeByHosts[kind]; made {
			continue
		}
		if !ok || !has || sqsonce.OutcomeOf(err).Kind != kind {
			t.Errorf("outcome %s: decide what both hosts do with it, and give it an error in package values", kind)
			continue
		}
		t.Run("worker/"+kind.String(), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { decideInWorker(t, err, want) }) })
		t.Run("function/"+kind.String(), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { decideInFunction(t, err, want) }) })
	}
}

// told is set by Options.OnError.
type told struct{ atomic.Bool }

func (b *told) set(context.Context, *sqsonce.Message, error) { b.Store(true) }

func decideInWorker(t *testing.T, err error, want treatment) {
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
	got := treatment{queue: len(w.sqs.Messages(w.url)) > 0, dead: len(w.sqs.Messages(w.dlq)) > 0, failed: want.failed, changed: want.changed, told: told.Load()}
	stats := reflect.ValueOf(k.Stats())
	var counted []string
	for _, row := range decided {
		for _, name := range strings.Fields(row.counted) {
			if stats.FieldByName(name).Int() > 0 && !slices.Contains(counted, name) {
				counted = append(counted, name)
			}
		}
	}
	slices.Sort(counted)
	got.counted = strings.Join(counted, " ")
	if d := cmp.Diff(want, got, cmp.AllowUnexported(treatment{})); d != "" {
		t.Errorf("worker (-want +got):\n%s", d)
	}
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	p.kill()
	w.admin.kill()
}

func decideInFunction(t *testing.T, err error, want treatment) {
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
	got := treatment{failed: len(response.BatchItemFailures) > 0 || invokeErr != nil, counted: want.counted, dead: len(w.sqs.Messages(w.dlq)) > 0, told: told.Load()}
	for _, c := range w.sqs.Calls() {
		got.changed = got.changed || c.Op == "ChangeMessageVisibility" || c.Op == "ChangeMessageVisibilityBatch"
	}
	got.queue = got.failed // the mapping deletes what is not reported
	if d := cmp.Diff(want, got, cmp.AllowUnexported(treatment{})); d != "" {
		t.Errorf("function (-want +got):\n%s\n%v", d, errors.Join(invokeErr))
	}
	p.kill()
	w.admin.kill()
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
