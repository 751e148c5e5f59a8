package otelsqs

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// Worker is an option of [sqsworker.New].
func (t *Telemetry) Worker(o *sqsworker.Options) {
	o.Hooks = append(o.Hooks, sqsworker.Hooks{Hooks: t.handlers(), Call: t.call, Attach: t.attachWorker})
}

// operations are the conventions' names of the calls of SQS, and their types.
var operations = map[string]attributes{
	"receive": {semconv.MessagingOperationName("receive"), semconv.MessagingOperationTypeReceive},
	"delete":  {semconv.MessagingOperationName("delete"), semconv.MessagingOperationTypeSettle},
	"extend":  {semconv.MessagingOperationName("change_visibility"), semconv.MessagingOperationTypeSettle},
	"release": {semconv.MessagingOperationName("change_visibility"), semconv.MessagingOperationTypeSettle},
	"reject":  {semconv.MessagingOperationName("send"), semconv.MessagingOperationTypeSend},
}

// call measures a call of SQS. It makes no span: each would be a root that nobody looks for.
func (t *Telemetry) call(ctx context.Context, c sqsworker.Call) (context.Context, func(sqsworker.CallResult)) {
	return ctx, func(r sqsworker.CallResult) {
		sets, as := &t.destinations.get(c.QueueURL).sets, operations[c.Purpose]
		if r.Err != nil {
			as[2] = t.errorType(r.Err)
		}
		t.operationDuration.Record(ctx, r.Elapsed.Seconds(), sets.get(as).record...)
		if c.Purpose == "receive" && r.Entries > 0 {
			t.consumed.Add(ctx, int64(r.Entries), sets.get(attributes{as[0]}).add...)
		}
	}
}

// workerGauges are the gauges that read a worker's Stats.
type workerGauges struct {
	messages, limit, intake, receivers, stuck metric.Int64ObservableUpDownCounter
	handlerAge, receiveAge                    metric.Float64ObservableGauge
	extensions, incidents                     metric.Int64ObservableCounter
}

type workers = ofQueue[*sqsworker.Worker, sqsworker.Stats]

// attachWorker has a worker's Stats reported when metrics are collected.
func (t *Telemetry) attachWorker(w *sqsworker.Worker) (detach func()) {
	sets, g := &t.destinations.get(w.QueueURL()).sets, &t.worker
	return t.workers.attach(t.meter, w.QueueURL(), w, func(all *workers, o metric.Observer) { g.report(all, o, sets) }, countWorker,
		g.messages, g.limit, g.intake, g.receivers, g.stuck, g.extensions, g.incidents, g.handlerAge, g.receiveAge)
}

// countWorker adds what a worker has counted.
func countWorker(sum *sqsworker.Stats, s sqsworker.Stats) {
	sum.Extended += s.Extended
	sum.NotExtended += s.NotExtended
	sum.LeasesLost += s.LeasesLost
	sum.Undeleted += s.Undeleted
	sum.Abandoned += s.Abandoned
	sum.Damaged += s.Damaged
	sum.Repeated += s.Repeated
	sum.Unanswered += s.Unanswered
}

// report reports the workers of a queue: numbers are sums, ages those of the oldest.
func (g *workerGauges) report(all *workers, o metric.Observer, sets *sets) {
	live, sum := all.all()
	intake := map[sqsworker.Intake]int64{}
	var open, closed time.Duration // ages of receives, by intake
	for w, began := range live {
		s := w.Stats()
		countWorker(&sum, s)
		sum.Waiting += s.Waiting
		sum.Running += s.Running
		sum.Held += s.Held
		sum.Rejecting += s.Rejecting
		sum.Deleting += s.Deleting
		sum.Releasing += s.Releasing
		sum.Concurrency += s.Concurrency
		sum.MaxInFlight += s.MaxInFlight
		sum.Receiving += s.Receiving
		sum.Stuck += s.Stuck
		sum.OldestRunning = max(sum.OldestRunning, s.OldestRunning)
		intake[s.Intake]++
		if !s.LastPoll.IsZero() {
			began = s.LastPoll
		}
		if age := time.Since(began); s.Intake == sqsworker.IntakeOpen {
			open = max(open, age)
		} else {
			closed = max(closed, age)
		}
	}
	observe := func(i metric.Int64Observable, n int64, as attributes) { o.ObserveInt64(i, n, sets.get(as).observe...) }
	observe(g.extensions, sum.Extended, attributes{keyResult.String("ok")})
	observe(g.extensions, sum.NotExtended, attributes{keyResult.String("failed")})
	for incident, n := range map[string]int64{
		"lease_lost": sum.LeasesLost, "undeleted": sum.Undeleted, "abandoned": sum.Abandoned, "damaged": sum.Damaged,
		"repeated": sum.Repeated, "unanswered_receive": sum.Unanswered,
	} {
		observe(g.incidents, n, attributes{keyIncident.String(incident)})
	}
	if len(live) == 0 {
		return
	}
	for state, n := range map[string]int64{
		"waiting": sum.Waiting, "running": sum.Running, "held": sum.Held, "rejecting": sum.Rejecting, "deleting": sum.Deleting,
		"releasing": sum.Releasing,
	} {
		observe(g.messages, n, attributes{keyState.String(state)})
	}
	observe(g.limit, sum.Concurrency, attributes{keyLimit.String("handlers")})
	observe(g.limit, sum.MaxInFlight, attributes{keyLimit.String("in_flight")})
	for _, state := range []sqsworker.Intake{sqsworker.IntakeOpen, sqsworker.IntakeFull, sqsworker.IntakePaused} {
		observe(g.intake, intake[state], attributes{keyState.String(string(state))})
	}
	observe(g.receivers, sum.Receiving, attributes{})
	observe(g.stuck, sum.Stuck, attributes{})
	o.ObserveFloat64(g.handlerAge, sum.OldestRunning.Seconds(), sets.get(attributes{}).observe...)
	age := closed // that of a worker that receives, if there is one: others' receives wait for nothing
	if intake[sqsworker.IntakeOpen] > 0 {
		age = open
	}
	o.ObserveFloat64(g.receiveAge, age.Seconds(), sets.get(attributes{}).observe...)
}

// Once is an option of [dedup.New] and of the inboxes.
func (t *Telemetry) Once(o *dedup.Options) {
	o.Hooks = append(o.Hooks, dedup.Hooks{Decided: t.decided, Called: t.called, Incident: t.incident})
}

func (t *Telemetry) decided(ctx context.Context, d dedup.Decision) {
	as := attributes{keyConsumer.String(d.Consumer), keyDecision.String(string(d.Outcome))}
	if d.Memory {
		as[2] = keyMemory.Bool(true)
	}
	t.decisions.Add(ctx, 1, t.sets.get(as).add...)
	if d.KeySource != 0 { // of a message
		t.keys.Add(ctx, 1, t.sets.get(attributes{as[0], keyKeySource.String(d.KeySource.String())}).add...)
	}
	p := t.processOf(ctx)
	if p == nil || !p.span.IsRecording() {
		return
	}
	p.span.SetAttributes(as[0], as[1])
	if d.Memory {
		p.span.SetAttributes(as[2])
	}
	if d.KeySource != 0 {
		p.span.SetAttributes(keyKeySource.String(d.KeySource.String()))
	}
	if d.Fence != 0 {
		p.span.SetAttributes(keyFence.Int64(d.Fence))
	}
	if t.identifiers {
		p.span.SetAttributes(keyEventKey.String(d.Key))
	}
}

func (t *Telemetry) called(ctx context.Context, c dedup.StoreCall) {
	t.storeDuration.Record(ctx, c.Elapsed.Seconds(), t.sets.get(attributes{keyConsumer.String(c.Consumer), keyOperation.String(c.Operation),
		keyResult.String(c.Result)}).record...)
	p := t.processOf(ctx)
	if p == nil || c.Operation != "renew" {
		return
	}
	p.renewals.Add(1)
	if c.Result == "error" {
		p.span.AddEvent("sqsonce.renewal_failed", trace.WithAttributes(t.errorType(c.Err)))
	}
}

func (t *Telemetry) incident(ctx context.Context, i dedup.Incident) {
	kind := keyIncident.String(string(i.Kind))
	t.incidents.Add(ctx, 1, t.sets.get(attributes{keyConsumer.String(i.Consumer), kind}).add...)
	if p := t.processOf(ctx); p != nil {
		p.span.AddEvent("sqsonce.incident", trace.WithAttributes(kind, keyFence.Int64(i.Fence)))
	}
}
