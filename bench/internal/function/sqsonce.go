package function

import (
	"context"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/bench/internal/contestant"
	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/lambda"
)

// sqsonceFunction is package lambda with its defaults.
func sqsonceFunction(j job.Job, l *contestant.Ledger) (any, error) {
	return lambda.Wrap(func(_ context.Context, m *sqsonce.Message) error {
		l.Handle(m.Body, j.HandlerTime())
		return nil
	})
}
