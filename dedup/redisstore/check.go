package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Check asks the server, or each master of a cluster, whether it is configured to keep records. The error joins one error
// per problem. A server without an append-only file is a problem, unless [Options.Volatile] accepts it. Check uses INFO
// only, which doesn't say how often the file is synced and which writes the replicas have received.
//
// The first acquire calls Check by itself, until it has succeeded once. If the server doesn't say how it is configured, the
// first acquire only warns. Call Check at start, or in a deployment's test, to know before the first
// message comes.
func (s *Store) Check(ctx context.Context) error {
	return errors.Join(s.problems(ctx)...)
}

// ensureChecked calls Check until it has succeeded once.
func (s *Store) ensureChecked(ctx context.Context) error {
	if s.checked.Load() {
		return nil
	}
	var known, notTold []error
	for _, err := range s.problems(ctx) {
		if errors.Is(err, errNotTold) {
			notTold = append(notTold, err)
		} else {
			known = append(known, err)
		}
	}
	if len(known) > 0 {
		return errors.Join(known...)
	}
	if !s.checked.Swap(true) && len(notTold) > 0 {
		s.logger.WarnContext(ctx, "redisstore: configuration of the server not known: records may be lost", "error", errors.Join(notTold...))
	}
	return nil
}

// problems returns an error for each problem of each server.
func (s *Store) problems(ctx context.Context) []error {
	cluster, isCluster := s.client.(interface {
		ForEachMaster(context.Context, func(context.Context, *redis.Client) error) error
	})
	if !isCluster {
		return s.serverProblems(ctx, s.client)
	}
	var mu sync.Mutex
	var errs []error
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		for _, err := range s.serverProblems(ctx, node) {
			mu.Lock()
			errs = append(errs, fmt.Errorf("%s: %w", node.Options().Addr, err))
			mu.Unlock()
		}
		return nil
	})
	if err != nil {
		errs = append(errs, explain("check", err))
	}
	return errs
}

func (s *Store) serverProblems(ctx context.Context, client Client) []error {
	var text string
	_, err := retry(ctx, func() (err error) {
		// INFO without a section returns all that are cheap. Redis before 7 accepts only one section per call.
		text, err = client.Info(ctx).Result()
		return err
	})
	switch {
	case isRefused(err):
		return []error{&serverError{Problem: errNotTold, Detail: "INFO is refused", Err: explain("check", err)}}
	case err != nil:
		return []error{explain("check", err)}
	}
	var errs []error
	info := parseInfo(text)
	for _, w := range wanted {
		value, told := info[w.name]
		switch {
		case w.problem == errVolatile && s.volatile:
		case !told:
			errs = append(errs, &serverError{Problem: errNotTold, Detail: "INFO has no " + w.name})
		case !w.fits(value):
			errs = append(errs, &serverError{Problem: w.problem, Detail: fmt.Sprintf("%s %q", w.name, value)})
		}
	}
	return errs
}

// isRefused reports whether the server refuses the command INFO, and possibly no other.
func isRefused(err error) bool {
	serverErr, isServer := errors.AsType[redis.Error](err)
	return isServer && (hasCode(serverErr, "NOPERM") || hasCode(serverErr, "ERR unknown command"))
}

// wanted are the fields of INFO that are checked.
var wanted = []struct {
	name    string
	fits    func(value string) bool
	problem error
}{
	{"redis_version", func(v string) bool { major, _, _ := strings.Cut(v, "."); return atLeast(major, 5) }, errVersion},
	{"role", func(v string) bool { return v == "master" }, errReplica},
	{"maxmemory_policy", func(v string) bool { return v == "noeviction" }, errEviction},
	{"aof_enabled", func(v string) bool { return v == "1" }, errVolatile},
}

func atLeast(number string, minimum int) bool {
	n, err := strconv.Atoi(number)
	return err == nil && n >= minimum
}

// parseInfo reads INFO's lines of name:value.
func parseInfo(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}
