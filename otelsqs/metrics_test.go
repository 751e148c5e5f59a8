package otelsqs_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/semconv/v1.43.0/messagingconv"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/host"
	need "github.com/sqsonce/sqsonce/internal/must" // must is in the examples
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/limit"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/sqsworker"
)

func (f *fixture) collect() (all []metricdata.Metrics) {
	f.Helper()
	var data metricdata.ResourceMetrics
	need.Do(f, f.reader.Collect(context.Background(), &data))
	for _, scope := range data.ScopeMetrics {
		all = append(all, scope.Metrics...)
	}
	slices.SortFunc(all, func(a, b metricdata.Metrics) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// point is a data point of any kind: what it counts is the sum of a counter, or the number of a histogram's values.
type point struct {
	attrs attribute.Set
	count float64
}

func points(m metricdata.Metrics) (kind string, all []point) {
	add := func(attrs attribute.Set, count float64) { all = append(all, point{attrs, count}) }
	switch d := m.Data.(type) {
	case metricdata.Sum[int64]:
		kind = "counter"
		if !d.IsMonotonic {
			kind = "updowncounter"
		}
		for _, p := range d.DataPoints {
			add(p.Attributes, float64(p.Value))
		}
	case metricdata.Gauge[float64]:
		kind = "gauge"
		for _, p := range d.DataPoints {
			add(p.Attributes, p.Value)
		}
	case metricdata.Gauge[int64]:
		kind = "gauge"
		for _, p := range d.DataPoints {
			add(p.Attributes, float64(p.Value))
		}
	case metricdata.Histogram[float64]:
		kind = fmt.Sprint("histogram ", d.DataPoints[0].Bounds)
		for _, p := range d.DataPoints {
			add(p.Attributes, float64(p.Count))
		}
	case metricdata.Histogram[int64]:
		kind = fmt.Sprint("histogram ", d.DataPoints[0].Bounds)
		for _, p := range d.DataPoints {
			add(p.Attributes, float64(p.Count))
		}
	default:
		kind = fmt.Sprintf("%T", d)
	}
	slices.SortFunc(all, func(a, b point) int { return strings.Compare(encoded(a.attrs), encoded(b.attrs)) })
	return kind, all
}

func encoded(s attribute.Set) string { return s.Encoded(attribute.DefaultEncoder()) }

// everyValue has the hooks called with each value that an attribute has: few of them are of one run of [TestMetrics].
func (f *fixture) everyValue() {
	var worker sqsworker.Options
	var function lambda.Options
	var once dedup.Options
	var publisher fifo.Options
	f.tel.Worker(&worker)
	f.tel.Lambda(&function)
	f.tel.Once(&once)
	f.tel.Publisher(&publisher)
	ctx := context.Background()
	const queueARN = "arn:aws:sqs:eu-west-1:123456789012:orders" // as in a function
	d := sqsonce.Delivery{Message: &sqsonce.Message{QueueARN: queueARN, SentAt: time.Now(), ReceiveCount: 2}, Run: 1}
	ends := func(kind sqsonce.OutcomeKind, err error) {
		worker.Hooks[0].End(worker.Hooks[0].Start(ctx, d), d, sqsonce.Return{Outcome: kind, Err: err})
	}
	for kind := range host.Outcomes {
		ends(sqsonce.OutcomeKind(kind), errCard)
	}
	for _, err := range []error{
		&sqsonce.PanicError{}, &sqsonce.DecodeError{}, sqsonce.ErrLeaseLost, sqsonce.ErrShutdown, sqsonce.Reject(nil), sqsonce.Unavailable(nil),
		context.DeadlineExceeded, errCard,
	} {
		ends(sqsonce.OutcomeFailed, err)
	}
	for _, result := range []lambda.Report{{Err: errCard}, {Records: 1}, {}} {
		result.QueueARN = queueARN
		function.Hooks[0].Finish(ctx, result)
	}
	for _, outcome := range []dedup.DecisionOutcome{
		dedup.DecidedFirst, dedup.DecidedTakeover, dedup.DecidedSuspect, dedup.DecidedUnguarded, dedup.DecidedDuplicate, dedup.DecidedInProgress, dedup.DecidedCrashed,
		dedup.DecidedMismatch, dedup.DecidedNoKey, dedup.DecidedLost, dedup.DecidedStoreError, dedup.DecidedCancelled,
	} {
		once.Hooks[0].Decided(ctx, dedup.Decision{Consumer: "billing", Outcome: outcome})
	}
	for _, outcome := range []dedup.DecisionOutcome{dedup.DecidedDuplicate, dedup.DecidedInProgress} {
		once.Hooks[0].Decided(ctx, dedup.Decision{Consumer: "billing", Outcome: outcome, Memory: true})
	}
	for source := sqsonce.KeyFromAttribute; !strings.HasPrefix(source.String(), "key source"); source++ {
		once.Hooks[0].Decided(ctx, dedup.Decision{Consumer: "billing", Outcome: dedup.DecidedFirst, KeySource: source})
	}
	for _, operation := range []string{"acquire", "renew", "complete", "release"} {
		for _, result := range []string{"ok", "completed", "in_progress", "crashed", "lease_lost", "error"} {
			once.Hooks[0].Called(ctx, dedup.StoreCall{Consumer: "billing", Operation: operation, Result: result})
		}
	}
	for _, kind := range []dedup.IncidentKind{
		dedup.IncidentTakenOver, dedup.IncidentExpired, dedup.IncidentForeignWriter, dedup.IncidentNotCompleted, dedup.IncidentNotReleased, dedup.IncidentOwnRetry,
	} {
		once.Hooks[0].Incident(ctx, dedup.Incident{Consumer: "billing", Kind: kind})
	}
	for _, err := range []error{
		&sqsonce.OptionError{}, fifo.ErrUnknownOutcome, fifo.ErrGroupHalted, fifo.ErrBufferFull, fifo.ErrDedupConflict, fifo.ErrClosed, fifo.ErrNotSent,
	} {
		publisher.Hooks[0].Answered(ctx, fifo.Answer{QueueURL: f.url, Err: err, Elapsed: time.Second})
	}
}

// Names, types, units, buckets, attributes and their values are stable: a change is a breaking one. Of error.type there are further
// ones: the codes of AWS, and the types of handlers' errors or what ErrorType makes of them. What is counted is in [TestCardinality]:
// it is not the same in each run.
func TestMetrics(t *testing.T) {
	bubble(t, "orders", func(t *testing.T, f *fixture) {
		f.publish("1", "2")
		dead := f.create("orders-dlq", nil)
		h := f.once().Handler(func(_ context.Context, m *sqsonce.Message) error {
			switch {
			case m.Attributes[sqsonce.AttrEventID].String == "2":
				return sqsonce.Reject(errCard)
			case m.ReceiveCount == 1:
				return sqsonce.RetryAfter(time.Second, errCard)
			}
			return nil
		})
		ctx, cancel := context.WithCancel(context.Background())
		w := need.Get(sqsworker.New(f.sqs, f.url, h, f.tel.Worker, func(o *sqsworker.Options) { o.Logger, o.DeadLetterQueue = f.quiet, dead }))(t)
		stopped := make(chan error)
		go func() { stopped <- w.Run(ctx) }()
		p := f.publisher()
		if _, err := p.Publish(context.Background(), fifo.Event{}); err == nil {
			t.Error("an event without an ID was published")
		}
		limits := need.Get(limit.New([]limit.Rule{{Name: "payments", Key: limit.All, Plan: limit.Plan{Rate: limit.Rate{N: 10}}}}, f.tel.Limiter))(t)
		committed := &fakeBox{}
		committed.commit(time.Minute, "group-1", "group-2")
		stopRelay := f.runRelay(f.newRelay(committed))
		time.Sleep(12 * time.Second)
		f.invoke(f.once().Handler(func(_ context.Context, m *sqsonce.Message) error {
			if m.ID == "8" {
				return errCard
			}
			return nil
		}), record("8", ""), record("9", ""))
		f.everyValue()
		need.Get(f.tel.Backlog(f.sqs, time.Minute, f.url))(t)
		var b strings.Builder
		for _, m := range f.collect() {
			kind, all := points(m)
			fmt.Fprintf(&b, "%s %s %s\n", m.Name, kind, m.Unit)
			for _, p := range all {
				fmt.Fprintf(&b, "  %s\n", encoded(p.attrs))
			}
		}
		compare(t, "metrics", b.String())
		cancel()
		need.Do(t, <-stopped)
		stopRelay()
		need.Do(t, p.Close(context.Background()))
		need.Do(t, limits.Close(context.Background()))
		for _, m := range f.collect() { // of what was asked of them the counts stay
			isTheirs := strings.HasPrefix(m.Name, "sqsonce.worker.") || strings.HasPrefix(m.Name, "sqsonce.publisher.") || strings.HasPrefix(m.Name, "sqsonce.limit.")
			counts := []string{"sqsonce.worker.extensions", "sqsonce.worker.incidents", "sqsonce.publisher.repeated", "sqsonce.publisher.throttled",
				"sqsonce.limit.started", "sqsonce.limit.postponed", "sqsonce.limit.owed", "sqsonce.limit.no_group", "sqsonce.limit.forgotten", "sqsonce.limit.calls", "sqsonce.limit.outages"}
			if _, all := points(m); isTheirs && len(all) > 0 != slices.Contains(counts, m.Name) {
				t.Errorf("%s has %d values after the end", m.Name, len(all))
			}
		}
	})
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name + ".txt"
	if *update {
		need.Do(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want := need.Get(os.ReadFile(file))(t)
	if got != string(want) {
		t.Errorf("not what %s has:\n%s\nwant:\n%s", file, got, want)
	}
}

// value returns that of a metric's point with an attribute of that value; or -1.
func (f *fixture) value(metric, with string) float64 {
	f.Helper()
	for _, m := range f.collect() {
		_, all := points(m)
		for _, p := range all {
			if m.Name == metric && strings.Contains(encoded(p.attrs), with) {
				return p.count
			}
		}
	}
	return -1
}

// Workers of one queue in one process are reported together, and what they counted until their end is exported after it.
func TestTwoWorkers(t *testing.T) {
	bubble(t, "orders", func(t *testing.T, f *fixture) {
		f.publish("1")
		release := make(chan struct{})
		ctx, cancel := context.WithCancel(context.Background())
		var both [2]*sqsworker.Worker
		var stopped sync.WaitGroup
		for i := range both {
			w := need.Get(sqsworker.New(f.sqs, f.url, func(context.Context, *sqsonce.Message) error { <-release; return nil }, f.tel.Worker,
				func(o *sqsworker.Options) { o.Logger, o.Concurrency = f.quiet, 1 }))(t)
			both[i] = w
			stopped.Go(func() { _ = w.Run(ctx) }) // of a handler that hangs, which the counts say
		}
		time.Sleep(time.Minute)
		if age := f.value("sqsonce.worker.handler.age", ""); age < 50 {
			t.Errorf("the oldest handler has run for %g s, want nearly a minute", age)
		}
		for _, w := range both {
			if w.Stats().Running > 0 {
				w.Pause() // the other one goes on
			}
		}
		f.server.Set(fault.Plan{Rules: []fault.Rule{{Op: "ReceiveMessage", Prob: 1, Do: fault.Error, Code: "ServiceUnavailable"}}})
		time.Sleep(10 * time.Minute)
		if age, open, paused := f.value("sqsonce.worker.receive.age", ""), f.value("sqsonce.worker.intake", "state=open"), f.value("sqsonce.worker.intake", "state=paused"); age < 500 || open != 1 || paused != 1 {
			t.Errorf("last receive %g s ago, %g open, %g paused; want 10 minutes, 1 and 1", age, open, paused)
		}
		cancel()
		stopped.Wait()
		if n := f.value("sqsonce.worker.incidents", "incident=abandoned"); n != 1 {
			t.Errorf("%g abandoned handlers after the end, want 1", n)
		}
		if n, want := f.value("sqsonce.worker.extensions", "result=ok"), both[0].Stats().Extended+both[1].Stats().Extended; n != float64(want) || n == 0 {
			t.Errorf("%g extensions after the end, want %d", n, want)
		}
		close(release)
	})
}

// Publishers of one queue in one process are reported together.
func TestTwoPublishers(t *testing.T) {
	bubble(t, "orders.fifo", func(t *testing.T, f *fixture) {
		stuck, idle := f.publisher(), f.publisher()
		f.server.Set(fault.Plan{Rules: []fault.Rule{{Op: "SendMessageBatch", Prob: 1, Do: fault.Error, Code: "ServiceUnavailable"}}})
		need.Get(stuck.Enqueue(context.Background(), fifo.Event{ID: "1", Group: "g", Body: "{}"}))(t)
		time.Sleep(time.Minute)
		if age := f.value("sqsonce.publisher.age", ""); age != 60 {
			t.Errorf("the oldest event has waited for %g s, want 60", age)
		}
		f.server.Set(fault.Plan{})
		for _, p := range []*fifo.Publisher{idle, stuck} {
			need.Do(t, p.Close(context.Background()))
		}
		if n, want := f.value("sqsonce.publisher.repeated", ""), stuck.Stats().Repeated; n != float64(want) || n == 0 {
			t.Errorf("%g attempts were repeated, want %d", n, want)
		}
	})
}

// The limits of a worker and its intake follow what is asked of it.
func TestWorkerLimits(t *testing.T) {
	bubble(t, "orders", func(t *testing.T, f *fixture) {
		w := need.Get(sqsworker.New(f.sqs, f.url, takes(time.Hour), f.tel.Worker, func(o *sqsworker.Options) { o.Logger, o.Concurrency = f.quiet, 1 }))(t)
		want := func(when string, want map[string]float64) {
			t.Helper()
			got := map[string]float64{}
			for _, m := range f.collect() {
				_, all := points(m)
				for _, p := range all {
					for _, key := range []attribute.Key{"sqsonce.limit", "sqsonce.state"} {
						if v, there := p.attrs.Value(key); there && (m.Name == "sqsonce.worker.limit" || m.Name == "sqsonce.worker.intake") {
							got[v.AsString()] = p.count
						}
					}
				}
			}
			if !maps.Equal(got, want) {
				t.Errorf("%s: %v, want %v", when, got, want)
			}
		}
		want("before Run", map[string]float64{})
		ctx, cancel := context.WithCancel(context.Background())
		stopped := make(chan error)
		go func() { stopped <- w.Run(ctx) }()
		time.Sleep(time.Second)
		want("idle", map[string]float64{"handlers": 1, "in_flight": 12, "open": 1, "full": 0, "paused": 0})
		need.Do(t, w.SetConcurrency(2))
		f.publish("1", "2", "3", "4", "5", "6")
		time.Sleep(30 * time.Second)
		want("busy", map[string]float64{"handlers": 2, "in_flight": 14, "open": 0, "full": 1, "paused": 0})
		w.Pause()
		time.Sleep(time.Second)
		want("paused", map[string]float64{"handlers": 2, "in_flight": 14, "open": 0, "full": 0, "paused": 1})
		w.Shutdown()
		cancel()
		<-stopped
		want("after Run", map[string]float64{})
	})
}

// The metrics of the conventions have their names and units.
func TestMetricsOfTheConventions(t *testing.T) {
	t.Parallel()
	text := need.Get(os.ReadFile("testdata/metrics.txt"))(t) // see TestMetrics
	for name, unit := range map[string]string{
		messagingconv.ProcessDuration{}.Name():         messagingconv.ProcessDuration{}.Unit(),
		messagingconv.ClientOperationDuration{}.Name(): messagingconv.ClientOperationDuration{}.Unit(),
		messagingconv.ClientConsumedMessages{}.Name():  messagingconv.ClientConsumedMessages{}.Unit(),
		messagingconv.ClientSentMessages{}.Name():      messagingconv.ClientSentMessages{}.Unit(),
	} {
		found := slices.ContainsFunc(strings.Split(string(text), "\n"), func(line string) bool {
			return strings.HasPrefix(line, name+" ") && strings.HasSuffix(line, " "+unit)
		})
		if !found {
			t.Errorf("no metric %s in %s", name, unit)
		}
	}
}
