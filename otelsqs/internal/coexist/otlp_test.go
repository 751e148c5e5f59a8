package coexist

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	colmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/otelsqs"
)

// receiver takes OTLP over HTTP, as a collector does.
// https://opentelemetry.io/docs/specs/otlp/#otlphttp
type receiver struct {
	mu      sync.Mutex
	spans   []*tracepb.ResourceSpans
	metrics []*metricspb.ResourceMetrics // of the last export
	errs    []error
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	body, err := io.ReadAll(req.Body)
	if kind := req.Header.Get("Content-Type"); kind != "application/x-protobuf" {
		err = errors.Join(err, fmt.Errorf("%s: content type %s", req.URL.Path, kind))
	}
	switch req.URL.Path {
	case "/v1/traces":
		var in coltrace.ExportTraceServiceRequest
		err = errors.Join(err, proto.Unmarshal(body, &in))
		r.spans = append(r.spans, in.ResourceSpans...)
	case "/v1/metrics":
		var in colmetrics.ExportMetricsServiceRequest
		err = errors.Join(err, proto.Unmarshal(body, &in))
		r.metrics = in.ResourceMetrics
	default:
		err = fmt.Errorf("unknown path %s", req.URL.Path)
	}
	if err != nil {
		r.errs = append(r.errs, err)
	}
	w.Header().Set("Content-Type", "application/x-protobuf") // an empty message
}

// TestOTLP: spans and metrics of a worker, through the SDK's exporters and over HTTP.
func TestOTLP(t *testing.T) {
	t.Parallel()
	r := &receiver{}
	server := httptest.NewServer(r)
	defer server.Close()
	ctx := context.Background()
	spans, errSpans := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(server.URL+"/v1/traces"))
	points, errPoints := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(server.URL+"/v1/metrics"))
	must.Do(t, errors.Join(errSpans, errPoints))
	metrics := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(points)), sdkmetric.WithResource(service))
	p := newProgram(t, func(o *otelsqs.Options) { o.MeterProvider = metrics })
	p.traces.RegisterSpanProcessor(sdktrace.NewBatchSpanProcessor(spans))
	p.publish("1", "2", "bad")

	running, stop := context.WithTimeout(ctx, time.Minute)
	flushed := make(chan error, 1)
	go func() {
		for len(p.stack.MemSQS().Messages("orders")) > 0 && running.Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		flushed <- metrics.ForceFlush(running) // with what is asked of a worker while it runs
		stop()
	}()
	p.work(running, p.stack.SQS, p.handler(p.stack.DynamoDB))
	must.Do(t, <-flushed)
	r.checkMetrics(t)
	must.Do(t, errors.Join(p.traces.Shutdown(ctx), metrics.Shutdown(ctx)))
	r.checkSpans(t)
}

func (r *receiver) checkSpans(t *testing.T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	must.Do(t, errors.Join(r.errs...))
	created, done := map[string]bool{}, map[string]int{}
	var processed []*tracepb.Span
	for _, resource := range r.spans {
		checkResource(t, resource.Resource.Attributes)
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				switch {
				case scope.Scope.Name != otelsqs.ScopeName:
				case scope.SchemaUrl != semconv.SchemaURL:
					t.Errorf("span %s: schema %s, want %s", s.Name, scope.SchemaUrl, semconv.SchemaURL)
				case s.Name == "create orders":
					created[hex.EncodeToString(s.TraceId)+hex.EncodeToString(s.SpanId)] = true
				case s.Name == "process orders":
					processed = append(processed, s)
				}
			}
		}
	}
	for _, s := range processed {
		as := attributes(s.Attributes)
		done[as["sqsonce.outcome"]]++
		for key, want := range map[string]string{
			"messaging.system": "aws_sqs", "messaging.destination.name": "orders", "messaging.operation.name": "process",
			"messaging.operation.type": "process", "sqsonce.receive_count": "1", "sqsonce.consumer": "billing", "sqsonce.dedup.outcome": "first",
		} {
			if as[key] != want {
				t.Errorf("span: %s is %q, want %s", key, as[key], want)
			}
		}
		isError := s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR
		if isError != (as["sqsonce.outcome"] == "rejected") || s.Kind != tracepb.Span_SPAN_KIND_CONSUMER || len(s.ParentSpanId) > 0 ||
			as["messaging.message.id"] == "" {
			t.Errorf("span %v", s)
		}
		if len(s.Links) != 1 || !created[hex.EncodeToString(s.Links[0].TraceId)+hex.EncodeToString(s.Links[0].SpanId)] {
			t.Errorf("links %v, want one to the span of the event", s.Links)
		}
	}
	if len(created) != 3 || done["done"] != 2 || done["rejected"] != 1 {
		t.Errorf("%d spans of events, of deliveries %v", len(created), done)
	}
}

// checkMetrics compares the metrics with otelsqs's list of them, and the numbers of some.
func (r *receiver) checkMetrics(t *testing.T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := must.Get(os.ReadFile("../../testdata/metrics.txt"))(t)
	got := map[string]float64{}
	for _, resource := range r.metrics {
		checkResource(t, resource.Resource.Attributes)
		for _, scope := range resource.ScopeMetrics {
			if scope.Scope.Name != otelsqs.ScopeName || scope.SchemaUrl != semconv.SchemaURL {
				t.Errorf("scope %s, schema %s", scope.Scope.Name, scope.SchemaUrl)
			}
			for _, m := range scope.Metrics {
				head, series := read(m)
				if !strings.Contains("\n"+string(list), "\n"+head+"\n") {
					t.Errorf("otelsqs has no metric %s", head)
				}
				for as, n := range series {
					got[strings.TrimSuffix(m.Name+" "+as, " ")] += n
				}
			}
		}
	}
	for series, want := range map[string]float64{
		"sqsonce.deliveries messaging.destination.name=orders messaging.system=aws_sqs sqsonce.outcome=done":                                         2,
		"sqsonce.deliveries messaging.destination.name=orders messaging.system=aws_sqs sqsonce.outcome=rejected":                                     1,
		"messaging.process.duration messaging.destination.name=orders messaging.operation.name=process messaging.system=aws_sqs":                     2,
		"messaging.process.duration error.type=rejected messaging.destination.name=orders messaging.operation.name=process messaging.system=aws_sqs": 1,
		"messaging.client.consumed.messages messaging.destination.name=orders messaging.operation.name=receive messaging.system=aws_sqs":             3,
		"messaging.client.sent.messages messaging.destination.name=orders messaging.operation.name=send messaging.system=aws_sqs":                    3,
		"sqsonce.message.time_in_queue messaging.destination.name=orders messaging.system=aws_sqs sqsonce.redelivered=false":                         3,
		"sqsonce.worker.incidents messaging.destination.name=orders messaging.system=aws_sqs sqsonce.incident=lease_lost":                            0,
		"sqsonce.dedup.decisions sqsonce.consumer=billing sqsonce.dedup.outcome=first":                                                               3,
		"sqsonce.worker.messages messaging.destination.name=orders messaging.system=aws_sqs sqsonce.state=running":                                   0,
	} {
		if n, ok := got[series]; !ok || n != want {
			t.Errorf("%s: %v, %t; want %v", series, n, ok, want)
		}
	}
	if t.Failed() {
		for series, n := range got {
			t.Log(series, n)
		}
	}
}

// read returns a metric's name, type and unit as otelsqs's list has them, and the value of each series, of a histogram its count. The
// address of the server is left out.
func read(m *metricspb.Metric) (head string, series map[string]float64) {
	kind, series := "gauge", map[string]float64{}
	numbers := m.GetGauge().GetDataPoints()
	if sum := m.GetSum(); sum != nil {
		kind, numbers = "updowncounter", sum.DataPoints
		if sum.IsMonotonic {
			kind = "counter"
		}
	}
	for _, p := range numbers {
		series[text(p.Attributes)] += p.GetAsDouble() + float64(p.GetAsInt())
	}
	for _, p := range m.GetHistogram().GetDataPoints() {
		kind = fmt.Sprintf("histogram %v", p.ExplicitBounds)
		series[text(p.Attributes)] += float64(p.Count)
	}
	return m.Name + " " + kind + " " + m.Unit, series
}

func text(kvs []*common.KeyValue) string {
	var parts []string
	for key, value := range attributes(kvs) {
		if key != string(semconv.ServerAddressKey) {
			parts = append(parts, key+"="+value)
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

func attributes(kvs []*common.KeyValue) map[string]string {
	as := map[string]string{}
	for _, kv := range kvs {
		switch v := kv.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			as[kv.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			as[kv.Key] = fmt.Sprint(v.IntValue)
		case *common.AnyValue_BoolValue:
			as[kv.Key] = fmt.Sprint(v.BoolValue)
		case *common.AnyValue_DoubleValue:
			as[kv.Key] = fmt.Sprint(v.DoubleValue)
		}
	}
	return as
}

func checkResource(t *testing.T, kvs []*common.KeyValue) {
	t.Helper()
	if got := attributes(kvs)["service.name"]; got != "billing" {
		t.Errorf("the resource is of the service %q, want billing", got)
	}
}
