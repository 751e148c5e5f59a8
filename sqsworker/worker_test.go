package sqsworker

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
)

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
