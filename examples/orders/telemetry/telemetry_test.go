package telemetry

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// Both exporters at once: the collector has got traces and metrics when stop returns, and /metrics has the metrics, beside what else
// is mounted there.
func TestStart(t *testing.T) {
	c := startCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	t.Setenv("PROMETHEUS_ADDR", "127.0.0.1:0")
	var log bytes.Buffer
	tel, mux, stop, err := Start(t.Context(), "orders-worker", slog.New(slog.NewTextHandler(&log, nil)))
	must.Do(t, err)
	once := must.Get(dedup.New(memstore.New(), "orders", tel.Once))(t)
	handler := tel.Handler("https://sqs.us-east-1.amazonaws.com/000000000000/orders", once.Handler(func(context.Context, *sqsonce.Message) error { return nil }))
	must.Do(t, handler(t.Context(), &sqsonce.Message{ID: "1", QueueARN: "arn:aws:sqs:us-east-1:000000000000:orders"}))
	addr := serving.FindStringSubmatch(log.String())
	if addr == nil {
		t.Fatalf("the log does not say where /metrics is: %s", &log)
	}
	text := get(t, "http://"+addr[1]+"/metrics")
	for _, want := range []string{`sqsonce_dedup_decisions_total{`, `service_name="orders-worker"`} {
		if !strings.Contains(text, want) {
			t.Errorf("/metrics has no %s:\n%s", want, text)
		}
	}
	mux.HandleFunc("/", func(rw http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(rw, "the status at "+r.URL.Path) })
	if text := get(t, "http://"+addr[1]+"/ready"); text != "the status at /ready" {
		t.Errorf("beside /metrics: %q", text)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"/v1/traces", "/v1/metrics"} {
		if c.requests(path) == 0 {
			t.Errorf("the collector got nothing at %s", path)
		}
	}
	if _, err := http.Get("http://" + addr[1] + "/metrics"); err == nil {
		t.Error("/metrics is served after the stop")
	}
}

func TestStartWithoutExporters(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	t.Setenv("PROMETHEUS_ADDR", "")
	_, _, stop, err := Start(t.Context(), "orders-worker", slog.New(slog.DiscardHandler))
	must.Do(t, err)
	if err := stop(); err != nil {
		t.Error(err)
	}
	t.Setenv("PROMETHEUS_ADDR", "127.0.0.1:no-port")
	if _, _, _, err := Start(t.Context(), "orders-worker", slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "PROMETHEUS_ADDR") {
		t.Errorf("a bad address: %v, want an error that names PROMETHEUS_ADDR", err)
	}
}

// collector counts requests by path.
type collector struct {
	*httptest.Server
	mu     sync.Mutex
	counts map[string]int
}

func startCollector(t *testing.T) *collector {
	c := &collector{counts: map[string]int{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.counts[r.URL.Path]++
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) requests(path string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[path]
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp := must.Get(http.Get(url))(t)
	defer resp.Body.Close() // it is only read
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v\n%s", url, resp.Status, err, text)
	}
	return string(text)
}

func TestMain(m *testing.M) { testserver.Main(m) }
