package fifo_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/fifokit"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// Each row of the table at the errors, with what it matches, and nothing else of them.
func TestErrorsSayWhatIsCertain(t *testing.T) {
	t.Parallel()
	refusal := fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.FailEntries, Code: "InvalidMessageContents"}
	lost := fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.LoseReply}
	slow := fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.Delay, Delay: time.Hour}
	type run func(x *fixture, p *fifo.Publisher, second context.Context) error
	publish := func(x *fixture, p *fifo.Publisher, ctx context.Context, e fifo.Event) error {
		_, err := p.Publish(ctx, e)
		return err
	}
	one := func(e fifo.Event) run {
		return func(x *fixture, p *fifo.Publisher, _ context.Context) error { return publish(x, p, x.Context(), e) }
	}
	inASecond := func(x *fixture, p *fifo.Publisher, second context.Context) error {
		return publish(x, p, second, event("g", 1))
	}
	for name, tt := range map[string]struct {
		run   run
		rules []fault.Rule
		opts  fifo.Options
		want  []error
	}{
		"bad field": {
			run:  one(fifo.Event{ID: "1", Group: "g"}),
			want: []error{fifo.ErrNotSent, fifo.ErrRefused},
		},
		"closed": {
			run: func(x *fixture, p *fifo.Publisher, _ context.Context) error {
				return errors.Join(p.Close(x.Context()), publish(x, p, x.Context(), event("g", 1)))
			},
			want: []error{fifo.ErrNotSent, fifo.ErrClosed},
		},
		"no capacity": {
			run: func(x *fixture, p *fifo.Publisher, second context.Context) error {
				x.enqueue(p, event("g", 1))
				return publish(x, p, second, event("g", 2))
			},
			opts: fifo.Options{MaxMessages: 1, Linger: time.Hour},
			want: []error{fifo.ErrNotSent, fifo.ErrBufferFull},
		},
		"ID of another": {
			run: func(x *fixture, p *fifo.Publisher, _ context.Context) error {
				other := event("g", 1)
				other.Body = "another"
				return errors.Join(publish(x, p, x.Context(), event("g", 1)), publish(x, p, x.Context(), other))
			},
			want: []error{fifo.ErrNotSent, fifo.ErrRefused, fifo.ErrDedupConflict},
		},
		"behind one that failed": {
			run: func(x *fixture, p *fifo.Publisher, _ context.Context) error {
				x.enqueue(p, event("g", 1))
				return publish(x, p, x.Context(), event("g", 2))
			},
			rules: []fault.Rule{refusal},
			want:  []error{fifo.ErrNotSent, fifo.ErrGroupHalted},
		},
		"not in flight": {
			run:  inASecond,
			opts: fifo.Options{Linger: time.Hour},
			want: []error{fifo.ErrNotSent, context.DeadlineExceeded},
		},
		"refused": {
			run:   one(event("g", 1)),
			rules: []fault.Rule{refusal},
			want:  []error{fifo.ErrNotSent, fifo.ErrRefused},
		},
		"in a request that was refused": {
			run:   one(event("g", 1)),
			rules: []fault.Rule{{Op: "SendMessageBatch", Prob: 1, Do: fault.Error, Code: "AccessDenied"}},
			want:  []error{fifo.ErrNotSent},
		},
		"a reason": {
			run: func(x *fixture, p *fifo.Publisher, _ context.Context) error {
				return fifokit.Refuse(p, x.Context(), event("g", 1), errCancelled)
			},
			want: []error{fifo.ErrNotSent},
		},
		"a reason that is a bad field": {
			run: func(x *fixture, p *fifo.Publisher, _ context.Context) error {
				return fifokit.Refuse(p, x.Context(), event("g", 1), &sqsonce.OptionError{Package: "fifo_test", Field: "Event.Body"})
			},
			want: []error{fifo.ErrNotSent, fifo.ErrRefused},
		},
		"no answer in the window": {
			run:   one(event("g", 1)),
			rules: []fault.Rule{lost},
			want:  []error{fifo.ErrUnknownOutcome},
		},
		"no answer in the caller's time": {
			run:   inASecond,
			rules: []fault.Rule{slow},
			want:  []error{fifo.ErrUnknownOutcome, context.DeadlineExceeded},
		},
		"no answer in Close's time": {
			run: func(x *fixture, p *fifo.Publisher, second context.Context) error {
				x.enqueue(p, event("g", 1))
				return p.Close(second)
			},
			rules: []fault.Rule{slow},
			want:  []error{fifo.ErrUnknownOutcome, fifo.ErrClosed, context.DeadlineExceeded},
		},
	} {
		runIn(t, name, orders, func(x *fixture) {
			p := x.publisher(func(o *fifo.Options) { *o = tt.opts })
			second, cancel := context.WithTimeout(x.Context(), time.Second)
			defer cancel()
			err := tt.run(x, p, second)
			for _, reason := range []error{
				fifo.ErrNotSent, fifo.ErrUnknownOutcome, fifo.ErrClosed, fifo.ErrBufferFull, fifo.ErrDedupConflict, fifo.ErrGroupHalted,
				fifo.ErrRefused, context.DeadlineExceeded,
			} {
				want := false
				for _, w := range tt.want {
					want = want || w == reason
				}
				if errors.Is(err, reason) != want && !(reason == context.DeadlineExceeded && !want) {
					x.Errorf("%v: matches %q: %t, want %t", err, reason, !want, want)
				}
			}
			pe, ok := errors.AsType[*fifo.PublishError](err)
			if !ok || pe.FirstAttempt.IsZero() != errors.Is(err, fifo.ErrNotSent) {
				x.Errorf("%v: first attempt %v", err, pe.FirstAttempt)
			}
			if _, ok := errors.AsType[*sqsonce.OptionError](err); ok != strings.HasSuffix(name, "bad field") {
				x.Errorf("%v: a OptionError: %t", err, ok)
			}
			_ = p.Close(second)
		}, tt.rules...)
	}
}

// An error of the caller's says nothing about this event, also if it is that of another one, as the cause of an errgroup's
// context is.
func TestForeignErrorsSayNothing(t *testing.T) {
	t.Parallel()
	misleading := errors.Join(fifo.ErrUnknownOutcome, fifo.ErrNotSent, fifo.ErrClosed, fifo.ErrGroupHalted, fifo.ErrBufferFull,
		fifo.ErrDedupConflict, fifo.ErrRefused, &fifo.PublishError{EventID: "another"}, errCancelled)
	for call, f := range map[string]func(*fifo.Publisher, context.Context) error{
		"Publish": func(p *fifo.Publisher, ctx context.Context) error {
			_, err := p.Publish(ctx, event("g", 1))
			return err
		},
		"PublishAll": func(p *fifo.Publisher, ctx context.Context) error {
			_, err := p.PublishAll(ctx, []fifo.Event{event("g", 1)})
			return err
		},
		"Enqueue": func(p *fifo.Publisher, ctx context.Context) error {
			_, err := p.Enqueue(ctx, event("g", 1))
			return err
		},
		"Close": func(p *fifo.Publisher, ctx context.Context) error {
			if _, err := p.Enqueue(context.Background(), event("g", 1)); err != nil {
				return err
			}
			return p.Close(ctx)
		},
	} {
		runIn(t, call, orders, func(x *fixture) {
			ctx, cancel := context.WithCancelCause(x.Context())
			cancel(misleading)
			p := x.publisher(func(o *fifo.Options) { o.Linger = time.Hour })
			err := f(p, ctx)
			certain := 0
			for _, reason := range []error{fifo.ErrNotSent, fifo.ErrUnknownOutcome} {
				if errors.Is(err, reason) {
					certain++
				}
			}
			if certain != 1 || errors.Is(err, fifo.ErrGroupHalted) || errors.Is(err, fifo.ErrBufferFull) ||
				errors.Is(err, fifo.ErrDedupConflict) || errors.Is(err, fifo.ErrRefused) || errors.Is(err, fifo.ErrClosed) != (call == "Close") {
				x.Errorf("matches %d of ErrNotSent and ErrUnknownOutcome: %v", certain, err)
			}
			if pe, ok := errors.AsType[*fifo.PublishError](err); !ok || pe.EventID != event("g", 1).ID {
				x.Errorf("got %+v", pe)
			}
			if _, ok := errors.AsType[*sqsonce.OptionError](err); ok {
				x.Errorf("%v is a OptionError", err)
			}
			if !errors.Is(err, errCancelled) {
				x.Errorf("%v does not match the rest of the cause", err)
			}
			_ = p.Close(ctx)
		}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.Delay, Delay: time.Second})
	}
}
