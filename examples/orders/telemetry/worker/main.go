// Command worker is the command orders/worker with telemetry. It is in a module of its own: the other commands do not link
// OpenTelemetry.
//
// Environment variables, with their defaults, besides those of orders/worker:
//
//	OTEL_EXPORTER_OTLP_ENDPOINT  URL of a collector, which gets traces and metrics over OTLP/HTTP; none
//	PROMETHEUS_ADDR              address that serves /metrics and, beside it, what HEALTH_ADDR serves, such as :9464; none
//	OTEL_SERVICE_NAME            orders-worker
//	DLQ_URL                      URL of the dead-letter queue, whose messages are counted as those of QUEUE_URL are; none
//
// and others of OpenTelemetry's SDK, such as OTEL_TRACES_SAMPLER and OTEL_METRIC_EXPORT_INTERVAL. It has no flag.
package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/examples/orders/telemetry"
	"github.com/sqsonce/sqsonce/examples/orders/workerhost"
	"github.com/sqsonce/sqsonce/otelsqs"
)

// backlogInterval is how often a worker asks SQS for the number of messages.
const backlogInterval = 10 * time.Second

func main() {
	log := slog.New(otelsqs.LogHandler(slog.NewTextHandler(os.Stderr, nil)))
	if err := run(log); err != nil {
		log.Error("worker has failed", "error", err)
		os.Exit(1)
	}
}

func run(log *slog.Logger) error {
	tel, mux, stop, err := telemetry.Start(context.Background(), "orders-worker", log)
	if err != nil {
		return err
	}
	newHandler := func(cfg aws.Config, c orders.Config) (sqsonce.Handler, error) {
		queues := slices.DeleteFunc([]string{os.Getenv("QUEUE_URL"), os.Getenv("DLQ_URL")}, func(url string) bool { return url == "" })
		if _, err := tel.Backlog(sqs.NewFromConfig(cfg), backlogInterval, queues...); err != nil {
			return nil, err
		}
		c.Once = tel.Once
		return orders.NewHandler(dynamodb.NewFromConfig(cfg), c)
	}
	serve := func(status http.Handler) { mux.Handle("/", status) }
	return errors.Join(workerhost.RunWith(log, newHandler, serve, tel.Worker), stop())
}
