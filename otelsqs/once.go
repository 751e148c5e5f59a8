package otelsqs

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/sqsonce/sqsonce/dedup"
)

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
