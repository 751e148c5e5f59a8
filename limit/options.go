package limit

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// CounterPolicy decides about messages while their rule's Counter is down.
type CounterPolicy int

const (
	// OnCounterDownKeepShare lets each process go on at its own rate of the last half minute, and with its slots. For a plan of
	// less than a start a second that is the time of 30 starts: 30 minutes for one a minute. A key that the process has not
	// seen gets a fiftieth of its plan, or a tenth of the largest part that the process had of a key's plan if that is more. So
	// P processes that share the messages evenly use at most 1.1 of a limit, or 1 + P/50 if that is more. They use at least
	// 0.95 of it where messages wait in each of them and the key has been at its limit for the time of 120 starts, at least for
	// two minutes.
	OnCounterDownKeepShare CounterPolicy = iota
	// OnCounterDownStop postpones the messages until the Counter answers again.
	OnCounterDownStop
)

const defaultMaxKeys = 10_000

// Options configure [New].
type Options struct {
	// OnCounterDown decides about messages while a Counter is down, and about those of one key while it fails for that key alone.
	// Default: OnCounterDownKeepShare.
	OnCounterDown CounterPolicy
	// MaxWait is how long after it was sent a message may wait for its turn. A message that must wait longer is rejected with
	// [ErrMaxWait]: a worker or function sends it to the dead-letter queue, which it needs, and a sqlstore.Processor parks it. While the
	// Counter doesn't answer, no message is. The time is by the machine's clock. A message without a SentAt waits without this bound.
	// Default: any time. A worker runs the message above the limit before SQS would delete or move it, see [sqsonce.Postpone]. A
	// sqlstore.Processor postpones it until it has its turn. Limits: not negative.
	MaxWait time.Duration
	// MaxKeys is how many keys each rule remembers in this process. A key with waiting or running messages is never forgotten.
	// Without a Counter a forgotten key starts again with a full burst: choose more keys than are at work at a time.
	// Default: 10,000. Limits: at least 1.
	MaxKeys int
	// Hooks are for telemetry.
	// Default: empty.
	Hooks []Hooks
	// Logger gets a WARN when a Counter goes down, and an INFO when a key has kept messages waiting for a minute.
	// Default: slog.Default().
	Logger *slog.Logger
}

func (o *Options) resolve(ps *host.Problems) {
	o.MaxKeys = cmp.Or(o.MaxKeys, defaultMaxKeys)
	o.Logger = host.QueuedLogger(o.Logger)
	ps.Add(o.OnCounterDown < OnCounterDownKeepShare || o.OnCounterDown > OnCounterDownStop, "Options.OnCounterDown", "is %d, must be OnCounterDownKeepShare or OnCounterDownStop", o.OnCounterDown)
	ps.Add(o.MaxWait < 0, "Options.MaxWait", "is %s, must not be negative", o.MaxWait)
	ps.Add(o.MaxKeys < 0, "Options.MaxKeys", "is %d, must be at least 1", o.MaxKeys)
}
