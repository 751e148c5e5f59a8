package redisstore

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Each operation is one script on one key. Redis doesn't execute other commands while a script runs, so a record doesn't
// change between the script's read and its write. In a cluster the script runs on the node that has the key. The arguments
// are durations, and times only in an acquire, which has the server's own time.
var (
	acquireScript  = load(acquireSource)
	renewScript    = load(renewSource)
	completeScript = load(completeSource)
	releaseScript  = load(releaseSource)
	reopenScript   = load(reopenSource)
	keepScript     = load(keepSource)
	deleteScript   = load(deleteSource)
	inspectScript  = load(inspectSource)
	takeScript     = load(scheduleSource + takeSource)
	lineScript     = load(scheduleSource + lineSource)
)

var (
	//go:embed script/clock.lua
	clockSource string
	//go:embed script/acquire.lua
	acquireSource string
	//go:embed script/renew.lua
	renewSource string
	//go:embed script/complete.lua
	completeSource string
	//go:embed script/release.lua
	releaseSource string
	//go:embed script/reopen.lua
	reopenSource string
	//go:embed script/keep.lua
	keepSource string
	//go:embed script/delete.lua
	deleteSource string
	//go:embed script/inspect.lua
	inspectSource string
	//go:embed script/schedule.lua
	scheduleSource string
	//go:embed script/take.lua
	takeSource string
	//go:embed script/line.lua
	lineSource string
)

func load(source string) *redis.Script { return redis.NewScript(clockSource + source) }

const (
	// retryFor is how long the store retries after the client has given up. It is longer than it takes to move a slot or to
	// replace a connection, and shorter than a failover, after which the message comes again.
	retryFor   = 2 * time.Second
	firstPause = 20 * time.Millisecond
	maxPause   = time.Second
)

// retry calls do until it succeeds, its error is permanent, ctx ends or retryFor has passed. unknown reports whether a call
// that failed may have been executed although no reply came.
func retry(ctx context.Context, do func() error) (unknown bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	start := time.Now()
	for limit := firstPause; ; limit = min(4*limit, maxPause) {
		err := do()
		if err == nil {
			return unknown, nil
		}
		retryable := isTransient(err)
		unknown = unknown || retryable && !notExecuted(err)
		pause := limit/2 + rand.N(limit/2)
		if !retryable || time.Since(start)+pause > retryFor || !host.Wait(ctx, pause) {
			return unknown, err
		}
	}
}

// call runs a script on a record's key, and retries: every script recognises its own repetition, so a call whose reply was
// lost is safe to repeat.
func (s *Store) call(ctx context.Context, script *redis.Script, key string, args ...any) (r *reply, err error) {
	_, err = retry(ctx, func() error {
		r, err = s.run(ctx, script, key, args...)
		return err
	})
	return r, err
}

// run runs a script on a record's key once. It sends the script's text to a server that does not know the script.
func (s *Store) run(ctx context.Context, script *redis.Script, key string, args ...any) (*reply, error) {
	sent := time.Now()
	values, err := script.Run(ctx, s.client, []string{s.prefix + key}, args...).Slice()
	if err != nil {
		return nil, err
	}
	return &reply{values: values, sent: sent, received: time.Now(), at: look()}, nil
}

// reply is a script's reply: a status and its values. err is the first value that does not have the expected type.
type reply struct {
	values         []any
	sent, received time.Time // of the attempt that got the reply
	at             moment    // received, on both clocks
	err            error
}

var errReply = errors.New("unexpected reply")

func (r *reply) status() string { return r.text(0) }

func (r *reply) text(i int) string {
	if i < len(r.values) {
		if s, ok := r.values[i].(string); ok {
			return s
		}
	}
	r.fail(i, "a string")
	return ""
}

// bytes returns nil for an empty string.
func (r *reply) bytes(i int) []byte {
	if s := r.text(i); s != "" {
		return []byte(s)
	}
	return nil
}

func (r *reply) number(i int) int64 {
	if i < len(r.values) {
		if n, ok := r.values[i].(int64); ok {
			return n
		}
	}
	r.fail(i, "a number")
	return 0
}

// ownerEnd is a lease's end in the caller's clock, for its owner: never later than the server's. Value i is the rest of the
// lease in milliseconds, counted from when the request was sent. The server's clock is rounded down to the millisecond,
// so the rest may be one millisecond too long.
func (r *reply) ownerEnd(i int) time.Time {
	return r.sent.Add(time.Duration(r.number(i)-1) * time.Millisecond)
}

// othersEnd is a lease's end in the caller's clock, for those who wait for it: never earlier than the server's. It is
// counted from when the reply came.
func (r *reply) othersEnd(i int) time.Time {
	return r.received.Add(time.Duration(r.number(i)) * time.Millisecond)
}

func (r *reply) fail(i int, want string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: value %d of %.80q is not %s", errReply, i, r.values, want)
	}
}

// unexpected returns the error of a reply whose status the caller does not know.
func (r *reply) unexpected() error {
	if r.err == nil && r.status() == "foreign" {
		return dedup.ErrRecord
	}
	if r.err == nil {
		r.err = fmt.Errorf("%w: %.80q", errReply, r.values)
	}
	return r.err
}
