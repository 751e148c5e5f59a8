package host

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
)

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
