package emf_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/limit"
)

// Each rule that has counted something since its last line has a line of its own, with the rule as a dimension. Keys have none.
func TestLimiterLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l *limit.Limiter
		f := newFunction(t, func(ctx context.Context, m *sqsonce.Message) error {
			return l.Do(ctx, m, func(context.Context) error { return nil })
		})
		l = must.Get(limit.New([]limit.Rule{
			{Name: "payments", Key: limit.All, Plan: limit.Plan{Rate: limit.Rate{N: 1, Per: time.Minute}}},
			{Name: "tenant", Plan: limit.Plan{Concurrency: 1}},
			{Name: "idle", Key: func(*sqsonce.Message) string { return "" }, Plan: limit.Plan{Concurrency: 1}},
		}, f.metrics.Limiter))(t)
		for range 2 {
			_, _ = f.invoke(request(t, "1", time.Minute), events.SQSEvent{Records: []events.SQSMessage{record("1", ""), record("2", "")}})
			time.Sleep(time.Second)
		}
		got := map[string][3]float64{}
		invocations := 0
		for _, line := range f.lines() {
			rule, of := line["rule"].(string)
			if !of {
				invocations++
				continue
			}
			number := func(name string) float64 { n, _ := line[name].(float64); return n }
			sum := got[rule]
			got[rule] = [3]float64{sum[0] + number("Started"), sum[1] + number("Postponed"), sum[2] + number("NoGroup")}
			if line["queue"] != "orders" || line["Records"] != nil {
				t.Errorf("%v", line)
			}
		}
		stats := l.Stats()
		for _, s := range stats[:2] {
			if want := [3]float64{float64(s.Started), float64(s.Postponed), float64(s.NoGroup)}; got[s.Name] != want || want == ([3]float64{}) {
				t.Errorf("rule %s: %v, want %v", s.Name, got[s.Name], want)
			}
		}
		if len(got) != 2 || invocations != 2 {
			t.Errorf("%v, %d lines of invocations", got, invocations)
		}
	})
}

// However many rules there are, so many have lines of their own.
func TestManyRules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l *limit.Limiter
		f := newFunction(t, func(ctx context.Context, m *sqsonce.Message) error {
			return l.Do(ctx, m, func(context.Context) error { return nil })
		})
		var rules []limit.Rule
		for i := range 150 {
			rules = append(rules, limit.Rule{Name: fmt.Sprint("r", i), Key: limit.All, Plan: limit.Plan{Concurrency: 1}})
		}
		l = must.Get(limit.New(rules, f.metrics.Limiter))(t)
		_, _ = f.invoke(request(t, "1", time.Minute), events.SQSEvent{Records: []events.SQSMessage{record("1", "")}})
		lines := f.lines()
		if last := lines[len(lines)-1]; len(lines) != 1+100+1 || last["rule"] != "_OTHER" || last["Started"] != 50.0 {
			t.Errorf("%d lines, the last one %v", len(lines), last)
		}
	})
}
