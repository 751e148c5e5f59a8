package lambda

import (
	"context"
	"time"
)

// logFlush is how long an answer waits for the lines that are left: the process is frozen after it.
const logFlush = 50 * time.Millisecond

// flushLog waits until the lines are written, for at most logFlush and a quarter of the time that remains.
func (a *adapter) flushLog(ctx context.Context) {
	wait := logFlush
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)/4)
	}
	a.lines.Flush(wait)
}
