package hosttest

import (
	"log/slog"
	"runtime/debug"
)

func init() {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what is logged without a logger of the test's own is not printed
	debug.SetGCPercent(400)                        // simulations allocate much and keep little: a quarter of their time
}
