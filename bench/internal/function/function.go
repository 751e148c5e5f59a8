// Package function holds the Go contestants that Lambda runs. The bench's own binary is their bootstrap.
package function

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/bench/internal/contestant"
	"github.com/sqsonce/sqsonce/bench/internal/endpoint"
	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/lambda"
)

// functions make the function that awslambda serves, by Job.Contestant.
var functions = map[string]func(job.Job, *contestant.Effects) (any, error){
	"hand":    handFunction,
	"sqsonce": sqsonceFunction,
}

// handFunction is the partial batch handler of AWS's documentation: one record after the other, a failure for each error.
func handFunction(j job.Job, effects *contestant.Effects) (any, error) {
	handle := func(_ context.Context, m events.SQSMessage) error {
		effects.Handle(m.Body, j.HandlerTime())
		return nil
	}
	return func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
		failures := []events.SQSBatchItemFailure{}
		for _, m := range e.Records {
			if err := handle(ctx, m); err != nil {
				failures = append(failures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
			}
		}
		return events.SQSEventResponse{BatchItemFailures: failures}, nil
	}, nil
}

// sqsonceFunction is what lambda.Start serves, without a client.
func sqsonceFunction(j job.Job, effects *contestant.Effects) (any, error) {
	return lambda.NewHandler(func(_ context.Context, m *sqsonce.Message) error {
		effects.Handle(m.Body, j.HandlerTime())
		return nil
	})
}

// Start serves invocations. It returns only where it cannot start.
func Start(j job.Job) error {
	newFunction := functions[j.Contestant]
	if newFunction == nil {
		return fmt.Errorf("function: no function %q", j.Contestant)
	}
	effects := contestant.NewEffects(j.Events)
	f, err := newFunction(j, effects)
	if err != nil {
		return err
	}
	m, err := job.StartMeter()
	if err != nil {
		return err
	}
	// awslambda.Start makes the same handler of a function. The reporting adds one comparison for each invocation.
	awslambda.Start(&reporting{Handler: awslambda.NewHandler(f), meter: m, effects: effects})
	return nil
}

// reporting responds to the bench's own event with what the process has used.
type reporting struct {
	awslambda.Handler
	meter   job.Meter
	effects *contestant.Effects
}

// Invoke returns bytes that awslambda uses again in its next invocation. This is safe: AWS_LAMBDA_MAX_CONCURRENCY is not
// set, so the next invocation starts after these bytes are sent.
func (r *reporting) Invoke(ctx context.Context, event []byte) ([]byte, error) {
	if !bytes.Equal(event, []byte(endpoint.UsageEvent)) {
		return r.Handler.Invoke(ctx, event)
	}
	u, err := r.meter.Read()
	if err != nil {
		return nil, err
	}
	r.effects.Report(&u)
	return json.Marshal(u)
}
