package status_test

import (
	"context"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/control"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/sqsworker"
	"github.com/sqsonce/sqsonce/status"
)

// A worker that is seen from outside, at the port of its probes: by the platform at /live and /ready, by people at /, and by
// sqsonce top --worker http://HOST:8080.
func ExampleHandler() {
	var cfg aws.Config // from config.LoadDefaultConfig
	type order struct{ ID string }
	charge := func(ctx context.Context, o order) error { return nil }

	store, err := dynamostore.New(dynamodb.NewFromConfig(cfg), "dedup")
	if err != nil {
		log.Fatal(err)
	}
	once, err := dedup.New(store, "billing")
	if err != nil {
		log.Fatal(err)
	}
	c, err := control.New(store, "billing")
	if err != nil {
		log.Fatal(err)
	}
	handler := c.Handler(once.Handler(sqsonce.JSON(charge))) // outside of deduplication
	w, err := sqsworker.New(sqs.NewFromConfig(cfg), os.Getenv("QUEUE_URL"), handler, func(o *sqsworker.Options) { o.Hooks = append(o.Hooks, c.Hooks()) })
	if err != nil {
		log.Fatal(err)
	}
	h, err := status.Handler(func(o *status.Options) {
		o.Workers = []*sqsworker.Worker{w}
		o.Consumers = map[string]status.Consumer{"billing": once}
		o.Stores = map[string]status.Store{"dedup": store}
		o.Controls = map[string]*control.Control{"billing": c}
	})
	if err != nil {
		log.Fatal(err)
	}
	probes := &http.Server{Addr: ":8080", Handler: h, ReadHeaderTimeout: 3 * time.Second, WriteTimeout: 10 * time.Second}
	go func() { log.Print(probes.ListenAndServe()) }()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
