package lambda

import (
	"context"
	"encoding/json"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sqsonce/sqsonce/localstack/esm"
)

// mapping runs f behind an event source mapping for d.
func (x *fixture) mapping(f function, d time.Duration) {
	x.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- esm.Run(ctx, x.c, esm.Config{QueueURL: x.url, FunctionTimeout: 30 * time.Second, ReportBatchItemFailures: true},
			func(ctx context.Context, payload []byte) ([]byte, error) {
				var e events.SQSEvent
				if err := json.Unmarshal(payload, &e); err != nil {
					return nil, err
				}
				r, err := f(ctx, e)
				if err != nil {
					return nil, err
				}
				return json.Marshal(r)
			})
	}()
	time.Sleep(d)
	cancel()
	if err := <-ended; err != nil {
		x.Errorf("mapping: %v", err)
	}
}
