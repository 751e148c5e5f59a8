package redisstore_test

import (
	"crypto/rand"
	"strconv"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce/dedup/redisstore"
	"github.com/sqsonce/sqsonce/internal/golden"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// goldenHash is a record as it stands in Redis: times and the key's expiry as what remains until them.
type goldenHash struct {
	Fields map[string]string
	Expiry string
}

var goldenTimes = []string{"fence", "until"}

// The hashes are those that the newest golden version writes. Those of every version are found as they were left.
func TestGolden(t *testing.T) {
	t.Parallel()
	client := connect(t, testserver.Redis.Shared(t))
	prefix := rand.Text() + ":"
	golden.WriteRecords(t, goldenStore(t, client, prefix))
	written := map[string]goldenHash{}
	for _, key := range []string{golden.Done, golden.Busy, golden.Released} {
		written[key] = readHash(t, client, prefix+key)
	}
	golden.Check(t, "hashes.json", written)

	golden.Each(t, "hashes.json", func(t *testing.T, old map[string]goldenHash) {
		prefix := rand.Text() + ":"
		for key, hash := range old {
			writeHash(t, client, prefix+key, hash)
		}
		golden.CheckRecords(t, goldenStore(t, client, prefix), func(key string, by time.Duration) { ageHash(t, client, prefix+key, by) })
	})
}

func goldenStore(t *testing.T, client *redis.Client, prefix string) *redisstore.Store {
	t.Helper()
	return newStore(t, client, func(o *redisstore.Options) { o.Prefix = prefix })
}

func readHash(t *testing.T, client *redis.Client, key string) goldenHash {
	t.Helper()
	fields := must.Get(client.HGetAll(t.Context(), key).Result())(t)
	for _, name := range goldenTimes {
		if fields[name] != "0" {
			fields[name] = rounded(time.Until(time.UnixMilli(milliseconds(t, fields[name]))))
		}
	}
	expiry := must.Get(client.PTTL(t.Context(), key).Result())(t)
	return goldenHash{Fields: fields, Expiry: rounded(expiry)}
}

func writeHash(t *testing.T, client *redis.Client, key string, hash goldenHash) {
	t.Helper()
	for _, name := range goldenTimes {
		if hash.Fields[name] != "0" {
			hash.Fields[name] = strconv.FormatInt(time.Now().Add(duration(t, hash.Fields[name])).UnixMilli(), 10)
		}
	}
	must.Do(t, client.HSet(t.Context(), key, hash.Fields).Err())
	must.Do(t, client.PExpire(t.Context(), key, duration(t, hash.Expiry)).Err())
}

func ageHash(t *testing.T, client *redis.Client, key string, by time.Duration) {
	t.Helper()
	must.Do(t, redisstore.AgeHash(t.Context(), client, key, by))
}

func rounded(d time.Duration) string { return d.Round(10 * time.Minute).String() }

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	return must.Get(time.ParseDuration(text))(t)
}

func milliseconds(t *testing.T, text string) int64 {
	t.Helper()
	return must.Get(strconv.ParseInt(text, 10, 64))(t)
}
