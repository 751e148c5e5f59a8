package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"runtime/debug"

	"github.com/sqsonce/sqsonce/bench/internal/pipe"
)

var errNotStarted = errors.New("endpoint: not started")

// Serve is the endpoint's process: it starts what Config says when it is asked to, and then answers questions.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	// What the endpoint takes of the CPUs the contestant has not, as it would on AWS: garbage may wait for a larger heap.
	debug.SetGCPercent(400)
	var s *server
	started := func(h func(json.RawMessage) (any, error)) pipe.Handler {
		return func(with json.RawMessage) (any, error) {
			if s == nil {
				return nil, errNotStarted
			}
			return h(with)
		}
	}
	return pipe.Serve(in, out, map[string]pipe.Handler{
		"start": func(with json.RawMessage) (any, error) {
			var cfg Config
			if err := json.Unmarshal(with, &cfg); err != nil {
				return nil, err
			}
			var err error
			if s, err = start(ctx, cfg); err != nil {
				return nil, err
			}
			return s.place, nil
		},
		"await":  started(func(with json.RawMessage) (any, error) { return s.awaitEmpty(ctx, with) }),
		"feed":   started(func(json.RawMessage) (any, error) { return nil, s.feed(ctx) }),
		"state":  started(func(json.RawMessage) (any, error) { return s.state(), nil }),
		"order":  started(func(json.RawMessage) (any, error) { return order(s.sqs.Messages(s.place.QueueURL), s.cfg.Events), nil }),
		"warm":   started(func(json.RawMessage) (any, error) { return s.warm(ctx) }),
		"invoke": started(func(json.RawMessage) (any, error) { return nil, s.invoke(ctx) }),
		"usage":  started(func(json.RawMessage) (any, error) { return s.usage(ctx) }),
	})
}
