// Package host runs the orders handler in a worker, configured by the environment.
package host

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// Run runs the handler on a queue until SIGTERM or SIGINT, then finishes what it has begun and returns. A second signal
// cancels the handlers. See the worker command for the environment.
func Run(log *slog.Logger, newHandler func(aws.Config, orders.Config) (sqsonce.Handler, error)) error {
	concurrency, err := strconv.Atoi(cmp.Or(os.Getenv("CONCURRENCY"), "10"))
	if err != nil {
		return fmt.Errorf("CONCURRENCY: %w", err)
	}
	visibility, err := time.ParseDuration(cmp.Or(os.Getenv("VISIBILITY"), "0s"))
	if err != nil {
		return fmt.Errorf("VISIBILITY: %w", err)
	}
	lease, err := time.ParseDuration(cmp.Or(os.Getenv("LEASE"), "0s"))
	if err != nil {
		return fmt.Errorf("LEASE: %w", err)
	}

	// The signal ends receiving; everything in hand is finished under a context of its own.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(sqsworker.HTTPClient(2*concurrency+10)))
	if err != nil {
		return err
	}
	handler, err := newHandler(cfg, orders.Config{
		DedupTable:  os.Getenv("DEDUP_TABLE"),
		LedgerTable: os.Getenv("LEDGER_TABLE"),
		Consumer:    cmp.Or(os.Getenv("CONSUMER"), "orders"),
		Calls:       os.Getenv("CALLS"),
		Lease:       lease,
	})
	if err != nil {
		return err
	}
	w, err := sqsworker.New(sqs.NewFromConfig(cfg), os.Getenv("QUEUE_URL"), handler, func(o *sqsworker.Options) {
		o.Concurrency = concurrency
		o.Visibility = visibility
		o.Logger = log
	})
	if err != nil {
		return err
	}
	go hurryOnSecondSignal(w)
	err = w.Run(ctx)
	log.Info("worker stopped", "report", fmt.Sprintf("%+v", w.Stats()))
	return err
}

func hurryOnSecondSignal(w *sqsworker.Worker) {
	second := make(chan os.Signal, 2)
	signal.Notify(second, os.Interrupt, syscall.SIGTERM)
	<-second // the one that ends ctx
	<-second
	w.Hurry()
}
