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

// Check asks the server, or each master of a cluster, whether it is configured to keep records. The error joins one
// [*ServerError] per problem. A server without an append-only file is [ErrVolatile], unless [Options.Volatile] accepts it.
// Check uses INFO only, which does not say how often the file is synced and what the replicas have received.
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
	// INFO without a section returns all that are cheap. Redis before 7 accepts only one section per call.
	text, err := client.Info(ctx).Result()
	if err != nil {
		return explain("check", err)
	}
	info := parseInfo(text)
	var errs []error
	add := func(problem error, detail string) {
		errs = append(errs, &ServerError{Problem: problem, Detail: detail})
	}
	version := info["redis_version"]
	if major, _, _ := strings.Cut(version, "."); !atLeast(major, 5) {
		add(ErrVersion, "redis_version "+strconv.Quote(version))
	}
	if role := info["role"]; role != "master" {
		add(ErrReplica, "role "+strconv.Quote(role))
	}
	if policy := info["maxmemory_policy"]; policy != "noeviction" {
		add(ErrEviction, "maxmemory_policy "+strconv.Quote(policy))
	}
	if !s.volatile && info["aof_enabled"] != "1" {
		add(ErrVolatile, "aof_enabled "+strconv.Quote(info["aof_enabled"]))
	}
	return errors.Join(errs...)
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
