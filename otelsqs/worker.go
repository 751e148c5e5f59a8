package otelsqs

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/sqsonce/sqsonce/sqsworker"
)

// Worker is an option of [sqsworker.New].
func (t *Telemetry) Worker(o *sqsworker.Options) {
	o.Hooks = append(o.Hooks, sqsworker.Hooks{Hooks: t.handlers(), Call: t.call, Attach: t.attachWorker})
}

// operations are the conventions' names of the calls of SQS, and their types.
var operations = map[sqsworker.Purpose]attributes{
	sqsworker.PurposeReceive: {semconv.MessagingOperationName("receive"), semconv.MessagingOperationTypeReceive},
	sqsworker.PurposeDelete:  {semconv.MessagingOperationName("delete"), semconv.MessagingOperationTypeSettle},
	sqsworker.PurposeExtend:  {semconv.MessagingOperationName("change_visibility"), semconv.MessagingOperationTypeSettle},
	sqsworker.PurposeRelease: {semconv.MessagingOperationName("change_visibility"), semconv.MessagingOperationTypeSettle},
	sqsworker.PurposeReject:  {semconv.MessagingOperationName("send"), semconv.MessagingOperationTypeSend},
}

// call measures a call of SQS. It makes no span: each would be a root that nobody looks for.
func (t *Telemetry) call(ctx context.Context, c sqsworker.Call) (context.Context, func(sqsworker.CallResult)) {
	return ctx, func(r sqsworker.CallResult) {
		sets, as := &t.destinations.get(c.QueueURL).sets, operations[c.Purpose]
		if r.Err != nil {
			as[2] = t.errorType(r.Err)
		}
		t.operationDuration.Record(ctx, r.Elapsed.Seconds(), sets.get(as).record...)
		if c.Purpose == sqsworker.PurposeReceive && r.Entries > 0 {
			t.consumed.Add(ctx, int64(r.Entries), sets.get(attributes{as[0]}).add...)
		}
	}
}

// workerGauges are what is asked of a worker's Stats.
type workerGauges struct {
	messages, receivers, stuck metric.Int64ObservableUpDownCounter
	handlerAge, receiveAge     metric.Float64ObservableGauge
	extensions, incidents      metric.Int64ObservableCounter
}

// attachWorker reports a worker's Stats when metrics are collected, while it runs.
func (t *Telemetry) attachWorker(w *sqsworker.Worker) (detach func()) {
	sets, began := &t.destinations.get(w.QueueURL()).sets, time.Now()
	g := &t.worker
	registration, err := t.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := w.Stats()
		observe := func(i metric.Int64Observable, n int64, as attributes) {
			o.ObserveInt64(i, n, sets.get(as).observe...)
		}
		for state, n := range map[string]int64{
			"waiting": s.Waiting, "running": s.Running, "held": s.Held, "rejecting": s.Rejecting, "deleting": s.Deleting, "releasing": s.Releasing,
		} {
			observe(g.messages, n, attributes{keyState.String(state)})
		}
		observe(g.receivers, s.Receiving, attributes{})
		observe(g.stuck, s.Stuck, attributes{})
		observe(g.extensions, s.Extended, attributes{keyResult.String("ok")})
		observe(g.extensions, s.NotExtended, attributes{keyResult.String("failed")})
		for incident, n := range map[string]int64{
			"lease_lost": s.LeasesLost, "undeleted": s.Undeleted, "abandoned": s.Abandoned, "damaged": s.Damaged, "repeated": s.Repeated,
			"unanswered_receive": s.Unanswered,
		} {
			observe(g.incidents, n, attributes{keyIncident.String(incident)})
		}
		o.ObserveFloat64(g.handlerAge, s.OldestRunning.Seconds(), sets.get(attributes{}).observe...)
		last := s.LastPoll
		if last.IsZero() {
			last = began
		}
		o.ObserveFloat64(g.receiveAge, time.Since(last).Seconds(), sets.get(attributes{}).observe...)
		return nil
	}, g.messages, g.receivers, g.stuck, g.extensions, g.incidents, g.handlerAge, g.receiveAge)
	if err != nil {
		panic(err) // the guard logs it
	}
	return func() { _ = registration.Unregister() }
}
