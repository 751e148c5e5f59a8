// Package function holds the Go contestants that Lambda runs: this binary is their bootstrap.
package function

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/sqsonce/sqsonce/bench/internal/contestant"
	"github.com/sqsonce/sqsonce/bench/internal/endpoint"
	"github.com/sqsonce/sqsonce/bench/internal/job"
)

// functions make the function that awslambda serves, by the name of the job.
var functions = map[string]func(job.Job, *contestant.Ledger) (any, error){
	"hand":    hand,
	"sqsonce": sqsonceFunction,
}

// Start serves invocations and does not return unless it cannot begin.
func Start(j job.Job) error {
	build := functions[j.Contestant]
	if build == nil {
		return fmt.Errorf("function: there is none called %q", j.Contestant)
	}
	l := contestant.NewLedger(j.Events)
	f, err := build(j, l)
	if err != nil {
		return err
	}
	m, err := job.StartMeter()
	if err != nil {
		return err
	}
	// awslambda.Start does the same with a function: what is added is one comparison of each event.
	awslambda.Start(&reporting{Handler: awslambda.NewHandler(f), meter: m, ledger: l})
	return nil
}

// reporting answers the bench's own event with what the process has used.
type reporting struct {
	awslambda.Handler
	meter  job.Meter
	ledger *contestant.Ledger
}

// Invoke returns bytes that awslambda uses again in its next invocation. That comes when these are sent: the process has
// one invocation at a time, AWS_LAMBDA_MAX_CONCURRENCY being unset.
func (r *reporting) Invoke(ctx context.Context, event []byte) ([]byte, error) {
	if !bytes.Equal(event, []byte(endpoint.UsageEvent)) {
		return r.Handler.Invoke(ctx, event)
	}
	u, err := r.meter.Read()
	if err != nil {
		return nil, err
	}
	r.ledger.Report(&u)
	return json.Marshal(u)
}
