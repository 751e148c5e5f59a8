package otelsqs

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
)

// Each counter of a relay's Stats is a metric of its name, and has its own value.
func TestEveryCountOfARelay(t *testing.T) {
	t.Parallel()
	reader := sdkmetric.NewManualReader()
	tel := must.Get(New(func(o *Options) { o.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)) }))(t)
	otherwise := []string{"Undeleted", "Began", "Swept"} // not counters: see TestRelay
	var counted outbox.Stats
	fields := reflect.ValueOf(&counted).Elem()
	want := map[string]int64{}
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Name
		if slices.Contains(otherwise, name) {
			continue
		}
		if fields.Field(i).Kind() != reflect.Int64 {
			t.Fatalf("Stats.%s is a %s: say where it is reported", name, fields.Type().Field(i).Type)
		}
		fields.Field(i).SetInt(int64(100 + i))
		want["sqsonce.outbox."+snake(name)] = 2 * int64(100+i) // counted twice
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[outbox.Backlog]()) {
		if !slices.Contains([]string{"Groups", "Oldest", "Halted", "Skipped", "Overdue"}, f.Name) { // see TestTwoRelays
			t.Errorf("Backlog.%s is not reported", f.Name)
		}
	}
	all := &relays{ended: counted}
	tel.relay.count(&all.ended, counted)
	instruments := []metric.Observable{}
	for _, c := range tel.relay.counts {
		instruments = append(instruments, c.counter)
	}
	must.Get(tel.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		tel.relay.report(all, o, &tel.sets)
		return nil
	}, append(instruments, tel.relay.undeleted)...))(t)
	var data metricdata.ResourceMetrics
	must.Do(t, reader.Collect(t.Context(), &data))
	for _, m := range data.ScopeMetrics[0].Metrics {
		sum, ok := m.Data.(metricdata.Sum[int64])
		if !ok || !sum.IsMonotonic {
			continue
		}
		if n, known := want[m.Name]; !known || len(sum.DataPoints) != 1 || sum.DataPoints[0].Value != n {
			t.Errorf("%s is %+v, want %d", m.Name, sum.DataPoints, n)
		}
		delete(want, m.Name)
	}
	if len(want) > 0 {
		t.Errorf("no metrics %v", want)
	}
}

// snake returns WrongSource as wrong_source.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}
