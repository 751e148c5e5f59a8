package sqsworker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
)

// workers returns workers for queues of these names.
func (x *fixture) workers(h sqsonce.Handler, names ...string) (ws []*Worker) {
	x.Helper()
	for _, name := range names {
		w := must.Get(New(x.c, x.create(name, nil), h))(x)
		ws = append(ws, w)
	}
	return ws
}

// runAll returns what stops the workers, and what RunAll will return.
func runAll(ws []*Worker) (stop context.CancelFunc, result <-chan error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- RunAll(ctx, ws...) }()
	return cancel, done
}

// TestRunAllStopsTogether: a worker that ends with an error stops the others. Handlers go on as in every stop.
func TestRunAllStopsTogether(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		var r runs
		ws := x.workers(r.take(30*time.Second), "one", "two", "three")
		x.url = ws[0].queueURL
		x.send("a")
		stop, result := runAll(ws)
		defer stop()
		time.Sleep(10 * time.Second)
		bad := ws[1].queueURL
		must.Get(x.c.DeleteQueue(x.Context(), &sqs.DeleteQueueInput{QueueUrl: &bad}))(t)
		select {
		case err := <-result:
			if !isMissing(err) || !strings.Contains(err.Error(), "queue "+bad+": ") || strings.Contains(err.Error(), ws[0].queueURL) {
				t.Errorf("got %v, want that the second queue is missing", err)
			}
		case <-time.After(time.Hour):
			t.Error("the others go on")
			stop()
			<-result
		}
		if s := ws[0].Stats(); s.Done != 1 {
			t.Errorf("got %+v, want the running handler to have ended by itself", s)
		}
	})
}

// TestRunAllJoinsErrors: two handlers are stuck. A worker that is stopped alone leaves the others running.
func TestRunAllJoinsErrors(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		ws := x.workers(func(context.Context, *sqsonce.Message) error {
			time.Sleep(time.Hour)
			return nil
		}, "one", "two", "three")
		for _, w := range ws[:2] {
			x.url = w.queueURL
			x.send("a")
		}
		stop, result := runAll(ws)
		time.Sleep(time.Minute)
		ws[2].Shutdown()
		time.Sleep(time.Hour / 2)
		if a, b := ws[2].State(), ws[0].State(); a != "ended" || b != "running" {
			t.Errorf("states: %s, %s; want ended and running", a, b)
		}
		stop()
		err := <-result
		joined, _ := err.(interface{ Unwrap() []error })
		if joined == nil || len(joined.Unwrap()) != 2 {
			t.Fatalf("got %v, want two errors", err)
		}
		for i, e := range joined.Unwrap() {
			if s, is := errors.AsType[*StopError](e); !is || s.Stuck != 1 || !strings.Contains(e.Error(), ws[i].queueURL) {
				t.Errorf("got %v, want a StopError with the queue", e)
			}
		}
		time.Sleep(2 * time.Hour) // lets the handlers end
	})
}

func TestRunAllOfBadWorkers(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		ws := x.workers(ok, "one", "two")
		for name, tc := range map[string]struct {
			workers []*Worker
			want    []string
		}{
			"none":  {nil, []string{"workers"}},
			"nil":   {[]*Worker{ws[0], nil, ws[1], nil}, []string{"workers[1]", "workers[3]"}},
			"twice": {[]*Worker{ws[0], ws[1], ws[0], ws[0]}, []string{"workers[2]", "workers[3]"}},
			"both":  {[]*Worker{nil, ws[0], ws[0]}, []string{"workers[0]", "workers[2]"}},
		} {
			err := RunAll(context.Background(), tc.workers...)
			if got := fields(err); !slices.Equal(got, tc.want) {
				t.Errorf("%s: fields %v, want %v (%v)", name, got, tc.want, err)
			}
		}
		for _, w := range ws {
			if w.started.Load() {
				t.Error("a worker was started")
			}
		}
	})
}
