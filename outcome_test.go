package sqsonce_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/values"
)

func TestOutcomesKeepTheirCause(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	for name, err := range map[string]error{
		"RetryAfter": sqsonce.RetryAfter(time.Second, cause),
		"Reject":     sqsonce.Reject(cause),
		"PanicError": &sqsonce.PanicError{Value: cause},
	} {
		if !errors.Is(err, cause) {
			t.Errorf("%s: %v does not match its cause", name, err)
		}
	}
	if err := sqsonce.RetryAfter(time.Second, sqsonce.ErrInProgress); !errors.Is(err, sqsonce.ErrInProgress) {
		t.Errorf("%v does not match ErrInProgress: it would count as a failure", err)
	}
}

func TestRetryAfterIsNeverNegative(t *testing.T) {
	t.Parallel()
	if o := sqsonce.OutcomeOf(sqsonce.RetryAfter(-time.Second, nil)); !o.Retry || o.After != 0 {
		t.Errorf("%+v, want a RetryAfter without a delay", o)
	}
}

func TestOutcomeTexts(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	for _, tt := range []struct {
		err  error
		want string
	}{
		{sqsonce.RetryAfter(time.Second, cause), "sqsonce: retry after 1s: cause"},
		{sqsonce.RetryAfter(time.Second, nil), "sqsonce: retry after 1s"},
		{sqsonce.Reject(cause), "sqsonce: rejected: cause"},
		{sqsonce.Reject(nil), "sqsonce: rejected"},
		{sqsonce.Skip("order is void"), "sqsonce: skipped: order is void"},
		{&sqsonce.PanicError{Value: "boom"}, "sqsonce: handler panicked: boom"},
		{&sqsonce.PanicError{}, "sqsonce: handler called runtime.Goexit"},
		{&sqsonce.OptionError{Package: "fifo", Field: "Event.ID", Problem: "empty"}, "fifo: Event.ID: empty"},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("%T: %q, want %q", tt.err, got, tt.want)
		}
	}
}

var (
	errCardNetwork = errors.New("card network is down")
	errNoAmount    = errors.New("order has no amount")
)

// A handler that knows when another attempt makes sense says so.
func ExampleRetryAfter() {
	charge := func(context.Context, *sqsonce.Message) error { return errCardNetwork }
	handler := func(ctx context.Context, m *sqsonce.Message) error {
		if err := charge(ctx, m); err != nil {
			return sqsonce.RetryAfter(30*time.Second, err)
		}
		return nil
	}
	fmt.Println(handler(context.Background(), &sqsonce.Message{}))
	// Output: sqsonce: retry after 30s: card network is down
}

// Middleware in the order in which it gets a message.
func ExampleChain() {
	named := func(name string) func(sqsonce.Handler) sqsonce.Handler {
		return func(next sqsonce.Handler) sqsonce.Handler {
			return func(ctx context.Context, m *sqsonce.Message) error {
				fmt.Println("before", name)
				defer fmt.Println("after", name)
				return next(ctx, m)
			}
		}
	}
	charge := func(context.Context, *sqsonce.Message) error {
		fmt.Println("charge")
		return nil
	}
	_ = sqsonce.Chain(charge, named("open"), named("dedup"))(context.Background(), &sqsonce.Message{})
	// Output:
	// before open
	// before dedup
	// charge
	// after dedup
	// after open
}

// An event that is known to be void is done without an effect.
func ExampleSkip() {
	cancelled := func(context.Context, *sqsonce.Message) bool { return true }
	handler := func(ctx context.Context, m *sqsonce.Message) error {
		if cancelled(ctx, m) {
			return sqsonce.Skip("order was cancelled")
		}
		return nil
	}
	fmt.Println(handler(context.Background(), &sqsonce.Message{}))
	// Output: sqsonce: skipped: order was cancelled
}

// A message that can never be handled goes to the dead-letter queue at once, with the reason.
func ExampleReject() {
	handler := func(_ context.Context, m *sqsonce.Message) error {
		if m.Attributes["amount"].String == "" {
			return sqsonce.Reject(errNoAmount)
		}
		return nil
	}
	err := handler(context.Background(), &sqsonce.Message{})
	reject := sqsonce.OutcomeOf(err).Kind == sqsonce.OutcomeRejected
	fmt.Println(reject, err)
	// Output: true sqsonce: rejected: order has no amount
}

func TestOutcomeAsksFor(t *testing.T) {
	t.Parallel()
	cause := errors.New("card network down")
	retry := sqsonce.RetryAfter(time.Minute, cause)
	reject := sqsonce.Reject(cause)
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"nil", nil, "host"},
		{"plain", cause, "host"},
		{"retry", retry, "retry"},
		{"reject", reject, "reject"},
		{"wrapped retry", fmt.Errorf("charge: %w", retry), "retry"},
		{"wrapped reject", fmt.Errorf("charge: %w", reject), "reject"},
		{"retry outside reject", sqsonce.RetryAfter(time.Second, reject), "retry"},
		{"reject outside retry", sqsonce.Reject(retry), "reject"},
		{"reject outside retry, wrapped", fmt.Errorf("a: %w", sqsonce.Reject(fmt.Errorf("b: %w", retry))), "reject"},
		{"join, plain first", errors.Join(cause, reject), "reject"},
		{"join, retry first", errors.Join(retry, reject), "retry"},
		{"join, reject first", errors.Join(reject, retry), "reject"},
		{"join in a join", errors.Join(errors.Join(cause, retry), reject), "retry"},
		{"join of two errors by Errorf", fmt.Errorf("%w and %w", cause, reject), "reject"},
		{"no cause", sqsonce.Reject(nil), "reject"},
		{"wrapped skip", fmt.Errorf("charge: %w", sqsonce.Skip("void")), "skip"},
		{"reject outside skip", sqsonce.Reject(sqsonce.Skip("void")), "reject"},
		{"join, skip first", errors.Join(sqsonce.Skip("void"), reject), "skip"},
		{"lease lost", sqsonce.ErrLeaseLost, "host"},
		{"panic", &sqsonce.PanicError{Value: "boom"}, "host"},
		{"panic with a reject", &sqsonce.PanicError{Value: reject}, "host"},
		{"reject of a panic", sqsonce.Reject(&sqsonce.PanicError{Value: "boom"}), "reject"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := sqsonce.OutcomeOf(tt.err)
			got := ""
			if o.Retry {
				got += "retry"
			}
			if o.Reject {
				got += "reject"
			}
			if o.Kind == sqsonce.OutcomeSkipped {
				got += "skip"
			}
			got = cmp.Or(got, "host")
			if got != tt.want {
				t.Errorf("OutcomeOf(%v): %s decides, want %s", tt.err, got, tt.want)
			}
		})
	}
}

func TestOutcomeOf(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	for _, tt := range []struct {
		name string
		err  error
		want sqsonce.OutcomeKind
	}{
		{"nil", nil, sqsonce.OutcomeDone},
		{"skip", fmt.Errorf("order: %w", sqsonce.Skip("void")), sqsonce.OutcomeSkipped},
		{"skip of an event that another delivery may own", errors.Join(sqsonce.Skip("void"), sqsonce.ErrLeaseLost), sqsonce.OutcomeLeaseLost},
		{"skip although something is away", errors.Join(sqsonce.ErrUnavailable, sqsonce.Skip("void")), sqsonce.OutcomeSkipped},
		{"plain", cause, sqsonce.OutcomeFailed},
		{"retry", sqsonce.RetryAfter(time.Second, cause), sqsonce.OutcomeFailed},
		{"panic", &sqsonce.PanicError{Value: "boom"}, sqsonce.OutcomeFailed},
		{"reject", sqsonce.Reject(cause), sqsonce.OutcomeRejected},
		{"retry outside reject", sqsonce.RetryAfter(time.Second, sqsonce.Reject(cause)), sqsonce.OutcomeFailed},
		{"in progress", sqsonce.RetryAfter(time.Second, sqsonce.ErrInProgress), sqsonce.OutcomeInProgress},
		{"reject of an event in progress", sqsonce.Reject(sqsonce.ErrInProgress), sqsonce.OutcomeInProgress},
		{"lease lost", fmt.Errorf("charge: %w", sqsonce.ErrLeaseLost), sqsonce.OutcomeLeaseLost},
		{"unavailable", fmt.Errorf("charge: %w", sqsonce.Unavailable(cause)), sqsonce.OutcomeUnavailable},
		{"misconfigured", fmt.Errorf("%w: no table", sqsonce.ErrMisconfigured), sqsonce.OutcomeUnavailable},
		{"unavailable, after a delay", sqsonce.RetryAfter(time.Second, sqsonce.Unavailable(cause)), sqsonce.OutcomeUnavailable},
		{"reject of something unavailable", sqsonce.Reject(sqsonce.Unavailable(cause)), sqsonce.OutcomeRejected},
		{"reject under a lost lease", sqsonce.Reject(sqsonce.ErrLeaseLost), sqsonce.OutcomeLeaseLost},
		{"postpone", fmt.Errorf("charge: %w", sqsonce.Postpone(time.Second, cause)), sqsonce.OutcomePostponed},
		{"postpone of nothing", sqsonce.Postpone(0, nil), sqsonce.OutcomePostponed},
		{"postpone under a lost lease", sqsonce.Postpone(time.Second, sqsonce.ErrLeaseLost), sqsonce.OutcomeLeaseLost},
		{"postpone of an event in progress", sqsonce.Postpone(time.Second, sqsonce.ErrInProgress), sqsonce.OutcomeInProgress},
		{"postpone of something unavailable", sqsonce.Postpone(time.Second, sqsonce.Unavailable(cause)), sqsonce.OutcomeUnavailable},
		{"reject outside postpone", sqsonce.Reject(sqsonce.Postpone(time.Second, cause)), sqsonce.OutcomeRejected},
		{"postpone outside reject", sqsonce.Postpone(time.Second, sqsonce.Reject(cause)), sqsonce.OutcomePostponed},
		{"postpone outside skip", sqsonce.Postpone(time.Second, sqsonce.Skip("void")), sqsonce.OutcomePostponed},
		{"postpone outside retry", sqsonce.Postpone(time.Second, sqsonce.RetryAfter(time.Second, cause)), sqsonce.OutcomePostponed},
		{"retry outside postpone", sqsonce.RetryAfter(time.Second, sqsonce.Postpone(time.Second, cause)), sqsonce.OutcomeFailed},
		{"panic with a postpone", &sqsonce.PanicError{Value: sqsonce.Postpone(time.Second, nil)}, sqsonce.OutcomeFailed},
	} {
		if got := sqsonce.OutcomeOf(tt.err).Kind; got != tt.want {
			t.Errorf("%s: got outcome %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestOutcomeKindNames: metrics and alarms hold the names.
func TestOutcomeKindNames(t *testing.T) {
	t.Parallel()
	known := sqsonce.OutcomeKind(0)
	values.EachOutcome(t, func(k sqsonce.OutcomeKind, _ values.Outcome) { known = k })
	if got, want := (known + 1).String(), fmt.Sprintf("outcome %d", known+1); got != want {
		t.Errorf("an unknown kind: %q, want %q", got, want)
	}
}

// A nil pointer that is not a nil error is a failure like any other.
func TestOutcomeOfTypedNils(t *testing.T) {
	t.Parallel()
	for _, err := range []error{(*sqsonce.PanicError)(nil), (*fs.PathError)(nil), errors.Join((*fs.PathError)(nil))} {
		if o := sqsonce.OutcomeOf(err); o.Kind != sqsonce.OutcomeFailed || o.Retry || o.Reject {
			t.Errorf("%T: %+v, want failed", err, o)
		}
	}
}

func TestPostpone(t *testing.T) {
	t.Parallel()
	cause := errors.New("429")
	err := sqsonce.Postpone(-time.Second, cause)
	if o := sqsonce.OutcomeOf(err); !o.Postpone || o.After != 0 || o.Err != cause || !errors.Is(err, cause) || err.Error() == "" {
		t.Errorf("%v: %+v, want a Postpone that matches its cause, without a delay", err, o)
	}
}

// The hosts refuse a nil handler, and what is made of one.
func TestNilHandler(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]sqsonce.Handler{
		"OpenEnvelope": sqsonce.OpenEnvelope(nil), "JSON": sqsonce.JSON[int](nil), "Batch": sqsonce.Batch(nil),
		"Chain of nil middleware": sqsonce.Chain(func(context.Context, *sqsonce.Message) error { return nil }, nil),
		"Chain": sqsonce.Chain(nil, func(sqsonce.Handler) sqsonce.Handler {
			return func(context.Context, *sqsonce.Message) error { return nil }
		}),
	} {
		if h != nil {
			t.Errorf("%s makes a handler of nil", name)
		}
	}
}

func TestUnavailable(t *testing.T) {
	t.Parallel()
	cause := errors.New("connection refused")
	err := fmt.Errorf("charge: %w", sqsonce.Unavailable(cause))
	if !errors.Is(err, sqsonce.ErrUnavailable) || !errors.Is(err, cause) || errors.Is(err, sqsonce.ErrMisconfigured) {
		t.Errorf("%v: want it to match ErrUnavailable and its cause, and not ErrMisconfigured", err)
	}
	if got := err.Error(); got != "charge: sqsonce: unavailable: connection refused" {
		t.Errorf("got %q", got)
	}
	if got := sqsonce.Unavailable(nil); !errors.Is(got, sqsonce.ErrUnavailable) || got.Error() != "sqsonce: unavailable" {
		t.Errorf("without a cause: got %v", got)
	}
	table := fmt.Errorf("%w: no table", sqsonce.ErrMisconfigured)
	if !errors.Is(table, sqsonce.ErrMisconfigured) || !errors.Is(table, sqsonce.ErrUnavailable) {
		t.Errorf("%v: want it to match ErrMisconfigured and ErrUnavailable", table)
	}
	if errors.Is(cause, sqsonce.ErrUnavailable) {
		t.Error("any error matches ErrUnavailable")
	}
}
