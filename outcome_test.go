package sqsonce_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
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
	retry, ok := errors.AsType[*sqsonce.RetryError](sqsonce.RetryAfter(-time.Second, nil))
	if !ok || retry.After != 0 {
		t.Errorf("After = %v, want 0", retry.After)
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
		{&sqsonce.PanicError{Value: "boom"}, "sqsonce: handler panicked: boom"},
		{&sqsonce.PanicError{}, "sqsonce: handler called runtime.Goexit"},
		{&sqsonce.FieldError{Package: "fifo", Field: "Event.ID", Problem: "empty"}, "fifo: Event.ID: empty"},
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

// A message that can never be handled goes to the dead-letter queue at once, with the reason.
func ExampleReject() {
	handler := func(_ context.Context, m *sqsonce.Message) error {
		if m.Attributes["amount"].String == "" {
			return sqsonce.Reject(errNoAmount)
		}
		return nil
	}
	err := handler(context.Background(), &sqsonce.Message{})
	_, reject := errors.AsType[*sqsonce.RejectError](err)
	fmt.Println(reject, err)
	// Output: true sqsonce: rejected: order has no amount
}
