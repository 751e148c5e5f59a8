package sqsonce_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/sqsonce/sqsonce"
)

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
