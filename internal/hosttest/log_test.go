package hosttest

import (
	"bytes"
	"log/slog"
	"runtime/debug"
	"testing"
)

func init() {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what is logged without a logger of the test's own is not printed
	debug.SetGCPercent(400)                        // simulations allocate much and keep little: a quarter of their time
}

// private is in the bodies of messages, and must be in no line of a log, at any level.
const private = "4929-1357"

// noBodies is a log in which lines must not have bodies.
type noBodies struct{ *testing.T }

func (n noBodies) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(private)) {
		n.Errorf("a line has a message's body: %s", line)
	}
	return len(line), nil
}
