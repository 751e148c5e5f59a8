package host

import (
	"strconv"
	"time"

	"github.com/sqsonce/sqsonce"
)

// Millis returns the time of an attribute such as SentTimestamp; the zero time where it has none.
func Millis(s string) time.Time {
	ms, err := strconv.ParseInt(s, 10, 64)
	if err != nil || ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// TimeInQueue returns how long a message has waited since SQS accepted it, by two clocks. known is false where it does not say when
// that was.
func TimeInQueue(m *sqsonce.Message) (waited time.Duration, known bool) {
	if m.SentAt.IsZero() {
		return 0, false
	}
	return max(0, time.Since(m.SentAt)), true
}
