package publishing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
)

// Namespace returns the source of the events.
func Namespace() string { return cmp.Or(os.Getenv("NAMESPACE"), "orders") }

// RunRelay publishes what is committed in an outbox, until SIGTERM or SIGINT. The command publish lists the environment variables.
func RunRelay(log *slog.Logger, open func(context.Context, aws.Config) (outbox.Store, error)) error {
	poll, pollErr := time.ParseDuration(cmp.Or(os.Getenv("POLL"), "0s"))
	lease, leaseErr := time.ParseDuration(cmp.Or(os.Getenv("RELAY_LEASE"), "0s"))
	if err := errors.Join(pollErr, leaseErr); err != nil {
		return fmt.Errorf("environment variable POLL or RELAY_LEASE: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	publisher, err := fifo.NewPublisher(sqs.NewFromConfig(cfg), os.Getenv("QUEUE_URL"), Namespace(), func(o *fifo.Options) { o.Logger = log })
	if err != nil {
		return err
	}
	store, err := open(ctx, cfg)
	if err != nil {
		return err
	}
	relay, err := outbox.NewRelay(store, publisher, func(o *outbox.Options) { o.Logger, o.Poll, o.LeaseDuration = log, poll, lease })
	if err != nil {
		return err
	}
	log.Info("relay started")
	err = relay.Run(ctx)
	log.Info("relay stopped", "stats", relay.Stats())
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(err, publisher.Close(end))
}
