package sqsworker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/sqsonce/sqsonce/internal/host"
)

// RunAll runs workers, each as [Worker.Run] does, until all have ended. Cancelling ctx stops all of them. So does a worker
// that ends with an error. A worker that [Worker.Shutdown] stops ends alone. The workers don't share limits: each has its own
// Concurrency, MaxInFlight and MaxBytes.
//
// The error joins those of the workers. If a worker is nil or given twice, or if the list is
// empty, RunAll returns a [*sqsonce.OptionError] for each such fault, without starting a worker.
func RunAll(ctx context.Context, workers ...*Worker) error {
	if err := validateWorkers(workers); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, len(workers))
	var running sync.WaitGroup
	for i, w := range workers {
		running.Go(func() {
			if errs[i] = w.Run(ctx); errs[i] != nil {
				stop()
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

func validateWorkers(workers []*Worker) error {
	p := host.Problems{Package: "sqsworker"}
	p.Add(len(workers) == 0, "workers", "is empty")
	for i, w := range workers {
		field := fmt.Sprintf("workers[%d]", i)
		p.Add(w == nil, field, "is nil")
		first := slices.Index(workers, w)
		p.Add(w != nil && first < i, field, "is the same as workers[%d]", first)
	}
	return p.Err()
}
