// Package telemetry exports traces and metrics of the orders commands. Where to is read from the environment: see the command
// worker.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/sqsonce/sqsonce/otelsqs"
)

// stopTimeout bounds the last export. A platform's SIGKILL must come later than the worker's stop and this.
const stopTimeout = 5 * time.Second

// exporters are what the environment asks for. The zero value exports nothing.
type exporters struct {
	traces  []sdktrace.TracerProviderOption
	metrics []sdkmetric.Option
	mux     *http.ServeMux
	server  *http.Server // of mux; nil: none
}

// Start starts the exporters, and returns what observes a worker, its deduplication, a publisher or a relay. stop exports the rest.
// mux is what PROMETHEUS_ADDR serves: it has /metrics, and other handlers may be added. OTEL_SERVICE_NAME overrides the name of the
// service.
func Start(ctx context.Context, service string, log *slog.Logger) (tel *otelsqs.Telemetry, mux *http.ServeMux, stop func() error, err error) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("telemetry", "error", err) }))
	described, err := resource.New(ctx, resource.WithAttributes(semconv.ServiceName(service)), resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return nil, nil, nil, err
	}
	e := &exporters{mux: http.NewServeMux(), traces: []sdktrace.TracerProviderOption{sdktrace.WithResource(described)}, metrics: []sdkmetric.Option{sdkmetric.WithResource(described)}}
	if err := errors.Join(e.addOTLP(ctx), e.addPrometheus(log)); err != nil {
		return nil, nil, nil, err
	}
	traces, metrics := sdktrace.NewTracerProvider(e.traces...), sdkmetric.NewMeterProvider(e.metrics...)
	stop = func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		err := errors.Join(traces.Shutdown(ctx), metrics.Shutdown(ctx))
		if e.server != nil {
			err = errors.Join(err, e.server.Close())
		}
		return err
	}
	tel, err = otelsqs.New(func(o *otelsqs.Options) { o.TracerProvider, o.MeterProvider = traces, metrics })
	return tel, e.mux, stop, err
}

// addOTLP adds exporters over HTTP, which read the other variables of OpenTelemetry, such as OTEL_EXPORTER_OTLP_HEADERS.
func (e *exporters) addOTLP(ctx context.Context) error {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" {
		return nil
	}
	traces, err := otlptracehttp.New(ctx)
	if err != nil {
		return err
	}
	metrics, err := otlpmetrichttp.New(ctx)
	if err != nil {
		return err
	}
	e.traces = append(e.traces, sdktrace.WithBatcher(traces))
	e.metrics = append(e.metrics, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metrics)))
	return nil
}

// addPrometheus serves /metrics.
func (e *exporters) addPrometheus(log *slog.Logger) error {
	addr := os.Getenv("PROMETHEUS_ADDR")
	if addr == "" {
		return nil
	}
	registry := client.NewRegistry()
	reader, err := prometheus.New(prometheus.WithRegisterer(registry))
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("environment variable PROMETHEUS_ADDR: %w", err)
	}
	e.metrics = append(e.metrics, sdkmetric.WithReader(reader))
	e.mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	e.server = &http.Server{Handler: e.mux, ReadHeaderTimeout: 3 * time.Second}
	log.Info("serving /metrics", "addr", l.Addr())
	go func() {
		// The command goes on without its metrics. Prometheus finds that they do not answer.
		if err := e.server.Serve(l); err != http.ErrServerClosed {
			log.Error("metrics are served no more", "error", err)
		}
	}()
	return nil
}
