package ecsprotect_test

import (
	"context"
	"log"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/sqsworker"
	"github.com/sqsonce/sqsonce/sqsworker/ecsprotect"
)

// A worker on Fargate whose handlers take up to 20 min. A deployment replaces its task within 1 h 20 min, and cuts no handler off.
func Example() {
	var cfg aws.Config // from config.LoadDefaultConfig
	transcode := func(ctx context.Context, m *sqsonce.Message) error { return nil }

	g, err := ecsprotect.New() // the role needs ecs:UpdateTaskProtection
	if err != nil {
		log.Fatal(err)
	}
	w, err := sqsworker.New(sqs.NewFromConfig(cfg), os.Getenv("QUEUE_URL"), transcode, func(o *sqsworker.Options) {
		o.StopTimeout = 110 * time.Second // with an ECS StopTimeout of 120 s
		o.Hooks = append(o.Hooks, g.Hooks())
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
