package sqsworker

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/question"
)

// Questions that pass, are slow and asked all the time hold up no receive.
func TestSlowQuestions(t *testing.T) {
	t.Parallel()
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		for n := range 60 {
			x.send(fmt.Sprint("own", n))
		}
		works := func(ctx context.Context) error { until(ctx, 4*time.Second); return nil }
		var runs atomic.Int32
		var d dependency
		d.set(nil)
		j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
			if m.Body[0] == 'o' {
				return question.With(sqsonce.Unavailable(errRefused), question.Question{ID: runs.Add(1) % 3, Ask: works})
			}
			return d.handle(ctx, m)
		})
		time.Sleep(10 * time.Minute)
		for n := range 100 {
			x.send(fmt.Sprint(n))
			time.Sleep(5 * time.Second)
			if d.handled() != n+1 {
				t.Fatalf("%d of %d handled after 5 s", d.handled(), n+1)
			}
		}
		j.stopClean()
	})
}
