package sqsworker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
)

func TestHandlesAndDeletes(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.send("a", "b", "c")
		var r runs
		j := x.start(r.take(time.Millisecond))
		time.Sleep(time.Second)
		j.stopClean()
		x.wantEmpty()
		for _, b := range []string{"a", "b", "c"} {
			if got := r.count(b); got != 1 {
				t.Errorf("%s: %d runs, want 1", b, got)
			}
		}
		s := j.Stats()
		if s.Received != 3 || s.Done != 3 || s.Running != 0 || s.Undeleted != 0 {
			t.Errorf("stats: %+v", s)
		}
	})
}

func TestRequestsPerMessage(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		const n = 1000
		for i := range n {
			x.send(fmt.Sprint(i))
		}
		before := len(x.srv.Calls())
		j := x.start(func(context.Context, *sqsonce.Message) error {
			time.Sleep(20 * time.Millisecond)
			return nil
		}, func(o *Options) { o.Concurrency = 50 })
		for len(x.queued()) > 0 {
			time.Sleep(10 * time.Millisecond)
		}
		calls := len(x.srv.Calls()) - before
		j.stopClean()
		if per := float64(calls) / n; per > 0.22 {
			t.Errorf("%.3f requests per message (%d calls), want at most 0.22", per, calls)
		}
	})
}

func TestRunTwice(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		j := x.start(ok, func(o *Options) { o.Wait = time.Second })
		synctest.Wait()
		if err := j.Run(x.Context()); !errors.Is(err, ErrAlreadyRun) {
			t.Errorf("second Run: got %v, want ErrAlreadyRun", err)
		}
		j.stopClean()
		if err := j.Run(x.Context()); !errors.Is(err, ErrAlreadyRun) {
			t.Errorf("Run after Run: got %v, want ErrAlreadyRun", err)
		}
	})
}

func TestRunWithAnEndedContext(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		w, err := New(x.c, x.url, ok)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(x.Context())
		cancel()
		if err := w.Run(ctx); err != nil {
			t.Errorf("Run: got %v, want nil", err)
		}
		if n := x.calls("ReceiveMessage"); n != 0 {
			t.Errorf("%d receives", n)
		}
	})
}
