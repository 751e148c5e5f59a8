// Package workerhost runs the orders handler in a worker. Its configuration is read from the environment.
package workerhost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/control"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/sqsworker"
	"github.com/sqsonce/sqsonce/sqsworker/ecsprotect"
	"github.com/sqsonce/sqsonce/status"
)

// settings are the numbers and durations of the environment. 0: the libraries' defaults.
type settings struct {
	concurrency                             int
	visibility, lease, backoff, stopTimeout time.Duration
	protect                                 bool
}

func fromEnv() (settings, error) {
	var s settings
	var errs [6]error
	s.concurrency, errs[0] = strconv.Atoi(cmp.Or(os.Getenv("CONCURRENCY"), "10"))
	s.visibility, errs[1] = time.ParseDuration(cmp.Or(os.Getenv("VISIBILITY"), "0s"))
	s.lease, errs[2] = time.ParseDuration(cmp.Or(os.Getenv("LEASE"), "0s"))
	s.backoff, errs[3] = time.ParseDuration(cmp.Or(os.Getenv("BACKOFF"), "0s"))
	s.stopTimeout, errs[4] = time.ParseDuration(cmp.Or(os.Getenv("STOP_TIMEOUT"), "0s"))
	s.protect, errs[5] = strconv.ParseBool(cmp.Or(os.Getenv("PROTECT"), "false"))
	for i, name := range []string{"CONCURRENCY", "VISIBILITY", "LEASE", "BACKOFF", "STOP_TIMEOUT", "PROTECT"} {
		if errs[i] != nil {
			errs[i] = fmt.Errorf("environment variable %s: %w", name, errs[i])
		}
	}
	return s, errors.Join(errs[:]...)
}

func (s settings) apply(o *sqsworker.Options) {
	o.Concurrency = s.concurrency
	o.VisibilityTimeout = s.visibility
	o.StopTimeout = s.stopTimeout
	o.Backoff = s.doubling()
}

// doubling returns a backoff of 1 s, doubled with each try up to the setting. nil: the worker's own.
func (s settings) doubling() func(try int) time.Duration {
	if s.backoff == 0 {
		return nil
	}
	return func(try int) time.Duration { return min(s.backoff, time.Second<<min(max(try-1, 0), 20)) }
}

// Run runs the handler on a queue until SIGTERM or SIGINT, finishes the messages that it has received, and returns. A
// second signal cancels the handlers. The command sqsonce pause pauses it. The command worker lists the environment variables.
func Run(log *slog.Logger, newHandler func(aws.Config, orders.Config) (sqsonce.Handler, error)) error {
	return RunWith(log, newHandler, func(http.Handler) {})
}

// RunWith is [Run] with further options of the worker. serve gets what HEALTH_ADDR serves, for another address.
func RunWith(log *slog.Logger, newHandler func(aws.Config, orders.Config) (sqsonce.Handler, error), serve func(http.Handler), optFns ...func(*sqsworker.Options)) error {
	s, err := fromEnv()
	if err != nil {
		return err
	}
	// The signal ends ctx, and with it the receives. Handlers and deletes have contexts of their own.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	inFlight := 2*s.concurrency + 10 // sqsworker's default
	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(sqsworker.HTTPClient(inFlight)))
	if err != nil {
		return err
	}
	consumer, consumers := cmp.Or(os.Getenv("CONSUMER"), "orders"), map[string]status.Consumer{}
	var pauses *control.Control
	handler, err := newHandler(cfg, orders.Config{
		DedupTable:  os.Getenv("DEDUP_TABLE"),
		LedgerTable: os.Getenv("LEDGER_TABLE"),
		Consumer:    consumer,
		Calls:       os.Getenv("CALLS"),
		Unknown:     os.Getenv("UNKNOWN_SKUS"),
		Lease:       s.lease,
		Watch:       func(consumer string, c interface{ Stats() dedup.Stats }) { consumers[consumer] = c },
		Pause: func(records dedup.Inspector, h sqsonce.Handler) (_ sqsonce.Handler, err error) {
			if pauses, err = control.New(records, consumer, func(o *control.Options) { o.Logger = log }); err != nil {
				return nil, err
			}
			return pauses.Handler(h), nil
		},
	})
	if err != nil {
		return err
	}
	own := func(o *sqsworker.Options) {
		o.MaxInFlight, o.Logger = inFlight, log
		o.Hooks = append(o.Hooks, pauses.Hooks())
	}
	if s.protect {
		g, err := ecsprotect.New(func(o *ecsprotect.Options) { o.Logger = log })
		if err != nil {
			return err
		}
		optFns = append(optFns, func(o *sqsworker.Options) { o.Hooks = append(o.Hooks, g.Hooks()) })
	}
	w, err := sqsworker.New(sqs.NewFromConfig(cfg), os.Getenv("QUEUE_URL"), handler, append([]func(*sqsworker.Options){s.apply, own}, optFns...)...)
	if err != nil {
		return err
	}
	seen, err := status.Handler(func(o *status.Options) {
		o.Name, o.Logger = "orders worker", log
		o.Workers, o.Consumers, o.Controls = []*sqsworker.Worker{w}, consumers, map[string]*control.Control{consumer: pauses}
	})
	if err != nil {
		return err
	}
	serve(seen)
	stopHealth, err := serveHealth(os.Getenv("HEALTH_ADDR"), seen, log)
	if err != nil {
		return err
	}
	defer stopHealth()
	go shutdownOnSecondSignal(w)
	err = w.Run(ctx)
	log.Info("worker stopped", "stats", w.Stats())
	return err
}

func shutdownOnSecondSignal(w *sqsworker.Worker) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	<-signals // the first one ends Run's context
	<-signals
	w.Shutdown()
}
