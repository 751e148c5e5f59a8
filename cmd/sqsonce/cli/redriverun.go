package cli

import (
	"context"

	"github.com/sqsonce/sqsonce/ops"
)

// redrive is a redrive that is under way.
type redrive struct {
	*work
	d       *ops.DLQ
	options func(*ops.RedriveOptions)
}

// onlyPlanned has the messages left that are not in the plan.
func (r *work) onlyPlanned(options func(*ops.RedriveOptions), planned map[string]bool) func(*ops.RedriveOptions) {
	leave := only(func(m *ops.Message) bool {
		if !planned[m.ID] {
			r.unplanned.Add(1)
		}
		return planned[m.ID]
	})
	return func(o *ops.RedriveOptions) { options(o); leave(o) }
}

func (r *redrive) redrive(ctx context.Context) (ops.Report, error) {
	a := r.a
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := a.newProgress(r.total)
	defer p.stop()
	event := func(v any) {
		if !a.flags.json {
			return
		}
		if err := a.printEvent(v); err != nil {
			cancel(err)
		}
	}
	event(r.start())
	return r.d.Redrive(ctx, r.options, func(o *ops.RedriveOptions) {
		o.Journal = r.journal
		p.canaries, p.canaryTimeout = max(o.Canary, 0), o.CanaryTimeout
		o.OnResult = func(res *ops.Result) {
			p.result(res)
			event(newResultJSON(res))
		}
	})
}
