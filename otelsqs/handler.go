package otelsqs

import (
	"context"
	"errors"
	"time"

	"github.com/sqsonce/sqsonce"
)

var errExited = errors.New("otelsqs: the handler called runtime.Goexit")

// Handler is for hosts that have no hooks: another poll loop, sqlstore's Processor. queueURL may be an ARN. A delivery that one of
// this module's hosts already observes is left to it. A panic of h goes on.
func (t *Telemetry) Handler(queueURL string, h sqsonce.Handler) sqsonce.Handler {
	return func(ctx context.Context, m *sqsonce.Message) (err error) {
		if t.processOf(ctx) != nil {
			return h(ctx, m)
		}
		begun := time.Now()
		d := sqsonce.Delivery{Message: m, QueueURL: queueURL, Received: begun, Run: 1}
		ctx = t.start(ctx, d)
		err = errExited
		defer func() {
			v := recover()
			if v != nil {
				err = &sqsonce.PanicError{Value: v}
			}
			t.end(ctx, d, sqsonce.Return{Outcome: sqsonce.OutcomeOf(err).Kind, Err: err, Elapsed: time.Since(begun), Delay: -1})
			if v != nil {
				panic(v)
			}
		}()
		err = h(ctx, m)
		return err
	}
}
