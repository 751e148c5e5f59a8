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

// Check asks the server, or each master of a cluster, whether it is fit to hold records, and joins a [*ServerError] for
// everything that is not. It needs INFO alone. A server without an append-only file, [ErrVolatile], is an error unless
// [Options.Volatile] accepts it. How often the file is synced, and what the replicas have, INFO does not say.
func (s *Store) Check(ctx context.Context) error {
	cluster, isCluster := s.client.(interface {
		ForEachMaster(context.Context, func(context.Context, *redis.Client) error) error
	})
	if !isCluster {
		return s.check(ctx, s.client)
	}
	var mu sync.Mutex
	var errs []error
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		if err := s.check(ctx, node); err != nil {
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, fmt.Errorf("%s: %w", node.Options().Addr, err))
		}
		return nil
	})
	return errors.Join(append(errs, explain("check", err))...)
}

func (s *Store) check(ctx context.Context, client Client) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// Without sections: all that are not costly. Redis before 7 takes one section a call.
	text, err := client.Info(ctx).Result()
	if err != nil {
		return explain("check", err)
	}
	info := parseInfo(text)
	var errs []error
	bad := func(problem error, detail string) {
		errs = append(errs, &ServerError{Problem: problem, Detail: detail})
	}
	version := info["redis_version"]
	if major, _, _ := strings.Cut(version, "."); !atLeast(major, 5) {
		bad(ErrVersion, "redis_version "+strconv.Quote(version))
	}
	if role := info["role"]; role != "master" {
		bad(ErrReplica, "role "+strconv.Quote(role))
	}
	if policy := info["maxmemory_policy"]; policy != "noeviction" {
		bad(ErrEviction, "maxmemory_policy "+strconv.Quote(policy))
	}
	if !s.volatile && info["aof_enabled"] != "1" {
		bad(ErrVolatile, "aof_enabled "+strconv.Quote(info["aof_enabled"]))
	}
	return errors.Join(errs...)
}

func atLeast(number string, least int) bool {
	n, err := strconv.Atoi(number)
	return err == nil && n >= least
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
