package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce/internal/backoff"
)

const (
	// retryFor is how long the store goes on after the client has given up: longer than a slot takes to move or a
	// connection to be replaced, shorter than a failover, after which the message simply comes again.
	retryFor     = 2 * time.Second
	firstBackoff = 20 * time.Millisecond
	mostBackoff  = 400 * time.Millisecond
)

// errUnknown is in the error of a call that may have been carried out although no answer came.
var errUnknown = errors.New("outcome unknown")

// call runs a script on a record's key until it has an answer, ctx ends or retryFor has passed. A server that does not
// know the script is sent it. Every script recognises its own repetition, so that a lost reply is asked for again.
func (s *Store) call(ctx context.Context, script *redis.Script, key string, args ...any) (*reply, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	start, unknown := time.Now(), false
	for most := firstBackoff; ; most = min(2*most, mostBackoff) {
		sent := time.Now()
		values, err := script.Run(ctx, s.client, []string{s.prefix + key}, args...).Slice()
		if err == nil {
			return &reply{values: values, sent: sent, received: time.Now()}, nil
		}
		again := transient(err)
		unknown = unknown || again && !refused(err)
		pause := most/2 + rand.N(most/2)
		if again && time.Since(start)+pause <= retryFor && backoff.Wait(ctx, pause) {
			continue
		}
		if unknown {
			err = fmt.Errorf("%w: %w", errUnknown, err)
		}
		return nil, err
	}
}

// passing are the refusals of a server that is starting, of one that was the master until now, of one whose replicas are
// away, and of a cluster that moves slots or has not agreed yet.
var passing = []string{"LOADING", "READONLY", "MASTERDOWN", "NOREPLICAS", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK", "BUSY", "ERR max number of clients"}

// transient reports whether the same call may succeed later: what is not the server's word is the network's.
func transient(err error) bool {
	answer, isAnswer := errors.AsType[redis.Error](err)
	if !isAnswer {
		return !errors.Is(err, redis.ErrClosed)
	}
	for _, code := range passing {
		if says(answer, code) {
			return true
		}
	}
	return false
}

// refused reports whether nothing was carried out: the server said so, or was never reached.
func refused(err error) bool {
	if _, isAnswer := errors.AsType[redis.Error](err); isAnswer {
		return true
	}
	op, isOp := errors.AsType[*net.OpError](err)
	return isOp && op.Op == "dial" || errors.Is(err, redis.ErrPoolTimeout)
}

// says reports whether a server's error has the code: at its beginning, or, before Redis 7, where a script passes on what
// a command in it was refused with.
func says(answer redis.Error, code string) bool {
	text := answer.Error()
	if inside, is := strings.CutPrefix(text, "ERR Error running script "); is {
		return strings.Contains(inside, ": -"+code) || strings.Contains(inside, ": "+code)
	}
	return strings.HasPrefix(text, code)
}
