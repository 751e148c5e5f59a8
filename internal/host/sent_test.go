package host_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

func TestTimeInQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for sent, want := range map[string]time.Duration{
			"946684799000": time.Second, // the bubble's clock begins a second later
			"946684801000": 0,           // by a clock that is ahead
			"":             -1, "0": -1, "-5": -1, "soon": -1,
		} {
			waited, known := host.TimeInQueue(&sqsonce.Message{SentAt: host.Millis(sent)})
			if known != (want >= 0) || waited != max(0, want) {
				t.Errorf("%q: %s, %t; want %s", sent, waited, known, want)
			}
		}
	})
}
