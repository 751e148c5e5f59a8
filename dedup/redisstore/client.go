package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Client is what a [Store] needs of Redis: scripts, and INFO for [Store.Check]. A [*redis.Client], plain or of
// redis.NewFailoverClient with Sentinel, and a [*redis.ClusterClient] implement it. A [*redis.Ring] does too, and is
// refused: it sends the keys of a server that does not answer to another, where their records are not.
//
// The client retries by itself, which is safe here, and the store goes on when it has given up. Set ContextTimeoutEnabled:
// without it go-redis does not look at a context's deadline while it waits for an answer, but at ReadTimeout alone.
type Client interface {
	redis.Scripter
	Info(ctx context.Context, sections ...string) *redis.StringCmd
}

var (
	_ Client = (*redis.Client)(nil)
	_ Client = (*redis.ClusterClient)(nil)
)
