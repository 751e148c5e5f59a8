package redisstore

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/internal/operate"
)

// scanCount is how many keys of the server a SCAN looks at. Tests have a smaller one.
var scanCount int64 = 1000

// List implements [dedup.Lister]. It uses SCAN, on every master of a cluster, and one request for each record. It always
// walks the server's whole keyspace, including other data, other prefixes and other consumers. A record may come more than
// once if the server grows or shrinks its table, or if a cluster moves slots. Redis doesn't order its keys, so List refuses
// After.
func (s *Store) List(ctx context.Context, optFns ...func(*dedup.ListOptions)) iter.Seq2[dedup.Record, error] {
	return func(yield func(dedup.Record, error) bool) {
		l := operate.NewList(time.Now, optFns)
		if l.After != "" {
			yield(dedup.Record{}, fieldError("ListOptions.After", "is set, and Redis has no order of keys"))
			return
		}
		nodes, err := s.masters(ctx)
		if err != nil {
			yield(dedup.Record{}, explain("list", err))
			return
		}
		for _, node := range nodes {
			if !s.listNode(ctx, node, l, yield) {
				return
			}
		}
	}
}

// masters returns the servers that have keys.
func (s *Store) masters(ctx context.Context) ([]Client, error) {
	cluster, isCluster := s.client.(interface {
		ForEachMaster(context.Context, func(context.Context, *redis.Client) error) error
	})
	if !isCluster {
		return []Client{s.client}, nil
	}
	var mu sync.Mutex
	var nodes []Client
	_, err := retry(ctx, func() error {
		nodes = nil
		return cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			nodes = append(nodes, node)
			return nil
		})
	})
	return nodes, err
}

// listNode lists a server's records, and reports whether the list goes on.
func (s *Store) listNode(ctx context.Context, node Client, l *operate.List, yield func(dedup.Record, error) bool) bool {
	match := glob.Replace(s.prefix+l.Prefix()) + "*"
	for cursor := uint64(0); ; {
		var keys []string
		var next uint64
		_, err := retry(ctx, func() (err error) {
			keys, next, err = node.Scan(ctx, cursor, match, scanCount).Result()
			return err
		})
		if err != nil {
			return yield(dedup.Record{}, explain("list", err)) && false
		}
		for _, key := range keys {
			key = strings.TrimPrefix(key, s.prefix)
			r, err := s.Inspect(ctx, key)
			switch {
			case errors.Is(err, dedup.ErrNotFound): // it expired
			case errors.Is(err, dedup.ErrRecord):
				if !yield(dedup.Record{Lease: dedup.Lease{Key: key}}, err) {
					return false
				}
			case err != nil:
				return yield(dedup.Record{}, err) && false
			case !l.Send(r, yield):
				return false
			}
		}
		if cursor = next; cursor == 0 {
			return true
		}
	}
}

// glob quotes the special characters of SCAN's patterns.
var glob = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)
