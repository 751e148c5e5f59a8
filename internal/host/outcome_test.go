package host

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
)

func TestAsked(t *testing.T) {
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
		{"lease lost", sqsonce.ErrLeaseLost, "host"},
		{"panic", &sqsonce.PanicError{Value: "boom"}, "host"},
		{"panic with a reject", &sqsonce.PanicError{Value: reject}, "host"},
		{"reject of a panic", sqsonce.Reject(&sqsonce.PanicError{Value: "boom"}), "reject"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			retry, reject := Asked(tt.err)
			got := "host"
			switch {
			case retry != nil && reject != nil:
				got = "both"
			case retry != nil:
				got = "retry"
			case reject != nil:
				got = "reject"
			}
			if got != tt.want {
				t.Errorf("Asked(%v): %s decides, want %s", tt.err, got, tt.want)
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
		want Outcome
	}{
		{"nil", nil, Done},
		{"plain", cause, Failed},
		{"retry", sqsonce.RetryAfter(time.Second, cause), Failed},
		{"panic", &sqsonce.PanicError{Value: "boom"}, Failed},
		{"reject", sqsonce.Reject(cause), Rejected},
		{"retry outside reject", sqsonce.RetryAfter(time.Second, sqsonce.Reject(cause)), Failed},
		{"in progress", sqsonce.RetryAfter(time.Second, sqsonce.ErrInProgress), InProgress},
		{"reject of an event in progress", sqsonce.Reject(sqsonce.ErrInProgress), InProgress},
		{"lease lost", fmt.Errorf("charge: %w", sqsonce.ErrLeaseLost), LeaseLost},
		{"unavailable", fmt.Errorf("charge: %w", sqsonce.Unavailable(cause)), Unavailable},
		{"misconfigured", fmt.Errorf("%w: no table", sqsonce.ErrMisconfigured), Unavailable},
		{"unavailable, after a delay", sqsonce.RetryAfter(time.Second, sqsonce.Unavailable(cause)), Unavailable},
		{"reject of something unavailable", sqsonce.Reject(sqsonce.Unavailable(cause)), Rejected},
		{"reject under a lost lease", sqsonce.Reject(sqsonce.ErrLeaseLost), LeaseLost},
	} {
		if got := OutcomeOf(tt.err); got != tt.want {
			t.Errorf("%s: got outcome %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestEnded(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	err := sqsonce.RetryAfter(time.Second, WithEnded(sqsonce.ErrInProgress, ended))
	if got := Ended(fmt.Errorf("dedup: %w", err)); got != ended {
		t.Errorf("got %v, want the channel of WithEnded", got)
	}
	if !errors.Is(err, sqsonce.ErrInProgress) || err.Error() != "sqsonce: retry after 1s: sqsonce: in progress elsewhere" {
		t.Errorf("got %v, want the wrapped error's own text and matches", err)
	}
	if Ended(sqsonce.ErrInProgress) != nil {
		t.Error("an error without a channel: got one")
	}
}
