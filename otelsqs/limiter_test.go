package otelsqs

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/cut"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/limit"
)

// limitFixture collects the metrics of limiters.
type limitFixture struct {
	*testing.T
	tel    *Telemetry
	reader *sdkmetric.ManualReader
}

func newLimitFixture(t *testing.T) *limitFixture {
	reader := sdkmetric.NewManualReader()
	return &limitFixture{t, must.Get(New(func(o *Options) { o.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)) }))(t), reader}
}

// values returns those of a metric by rule.
func (f *limitFixture) values(name string) map[string]float64 {
	f.Helper()
	var data metricdata.ResourceMetrics
	must.Do(f, f.reader.Collect(f.Context(), &data))
	all := map[string]float64{}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == name {
				for _, p := range sum.DataPoints {
					rule, _ := p.Attributes.Value(keyRule)
					all[rule.AsString()] = float64(p.Value)
				}
			}
		}
	}
	return all
}

func (f *limitFixture) limiter(names ...string) *limit.Limiter {
	f.Helper()
	var rules []limit.Rule
	for _, name := range names {
		rules = append(rules, limit.Rule{Name: name, Plan: limit.Plan{Concurrency: 1}})
	}
	return must.Get(limit.New(rules, f.tel.Limiter))(f)
}

// start has a delivery of a tenant run.
func (f *limitFixture) start(l *limit.Limiter, tenant string) {
	f.Helper()
	m := &sqsonce.Message{ID: tenant, Group: tenant, ReceiveCount: 1}
	must.Do(f, limit.Handler(l, func(ctx context.Context, m *sqsonce.Message) error { return nil })(f.Context(), m))
}

// Limiters of a process are reported together by rule, and what they counted until their Close is reported after it. No key is.
func TestLimiters(t *testing.T) {
	t.Parallel()
	f := newLimitFixture(t)
	a, b := f.limiter("x", "y"), f.limiter("x")
	for i := range 20 {
		f.start(a, fmt.Sprint("t3n4nt", i))
	}
	f.start(b, "t3n4nt")
	want := func(when, name string, want map[string]float64) {
		t.Helper()
		if got := f.values(name); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %s is %v, want %v", when, name, got, want)
		}
	}
	want("both", "sqsonce.limit.started", map[string]float64{"x": 21, "y": 20})
	want("both", "sqsonce.limit.keys", map[string]float64{"x": 21, "y": 20})
	must.Do(t, a.Close(t.Context()))
	must.Do(t, a.Close(t.Context()))
	want("one is closed", "sqsonce.limit.started", map[string]float64{"x": 21, "y": 20})
	want("one is closed", "sqsonce.limit.keys", map[string]float64{"x": 1, "y": 0})
	must.Do(t, b.Close(t.Context()))
	want("both are closed", "sqsonce.limit.started", map[string]float64{"x": 21, "y": 20})
	want("both are closed", "sqsonce.limit.keys", map[string]float64{})
}

// However many rules there are, so many have values of their own, which stay theirs.
func TestManyRules(t *testing.T) {
	t.Parallel()
	f := newLimitFixture(t)
	first := f.limiter("z")
	f.start(first, "a")
	f.values("sqsonce.limit.started")
	var names []string
	for i := range 2 * cut.MostNames {
		names = append(names, fmt.Sprintf("rule-%03d", i))
	}
	f.start(f.limiter(names...), "a")
	got := f.values("sqsonce.limit.started")
	if len(got) != cut.MostNames+1 || got["z"] != 1 || got["rule-000"] != 1 || got[cut.OtherNames] != cut.MostNames+1 {
		t.Errorf("%v", got)
	}
}

// Each number of a rule's Stats is a metric.
func TestEveryNumberOfARule(t *testing.T) {
	t.Parallel()
	f := newLimitFixture(t)
	var rule limit.RuleStats
	fields := reflect.ValueOf(&rule).Elem()
	otherwise := []string{"Name", "Plan", "Shared", "Next", "PausedUntil", "Down", "Longest"} // no sums
	want := map[int64]string{}
	for i := range fields.NumField() {
		field := fields.Type().Field(i)
		switch {
		case slices.Contains(otherwise, field.Name):
		case field.Type.Kind() != reflect.Int64:
			t.Fatalf("RuleStats.%s is a %s: say where it is reported", field.Name, field.Type)
		default:
			fields.Field(i).SetInt(int64(100 + i))
			want[int64(100+i)] = field.Name
		}
	}
	rule.Down = time.Minute
	var sum []limit.RuleStats
	f.tel.limit.add(&sum, []limit.RuleStats{rule}, true)
	for _, c := range f.tel.limit.counts {
		delete(want, *c.of(&sum[0]))
	}
	if len(want) > 0 || sum[0].Down != time.Minute {
		t.Errorf("no metrics of %v, %+v", want, sum)
	}
}
