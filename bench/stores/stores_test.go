//go:build unix

package stores

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/dedup/redisstore"
	"github.com/sqsonce/sqsonce/dedup/sqlstore"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// BenchmarkStore measures an acquire and a complete of a new event.
func BenchmarkStore(b *testing.B) {
	for _, s := range []struct {
		name string
		open func(b *testing.B) dedup.Store
	}{
		{"Redis,no-file", func(b *testing.B) dedup.Store { return openRedis(b) }},
		{"Redis,everysec", func(b *testing.B) dedup.Store {
			return openRedis(b, func(o *testserver.Options) { o.Args = []string{"--appendonly", "yes", "--appendfsync", "everysec"} })
		}},
		{"Redis,always", func(b *testing.B) dedup.Store { return openRedis(b, testserver.AppendOnly) }},
		{"PostgreSQL", func(b *testing.B) dedup.Store { return openSQL(b, "PostgreSQL").store }},
		{"MariaDB", func(b *testing.B) dedup.Store { return openSQL(b, "MariaDB").store }},
		{"SQLite", func(b *testing.B) dedup.Store { return openSQL(b, "SQLite").store }},
		{"DynamoDB(dynoxide)", openDynamo},
	} {
		b.Run(s.name, func(b *testing.B) {
			store := s.open(b)
			runHandlers(b, func(ctx context.Context, event string) error {
				c := dedup.Claim{Key: "bench#" + event, Owner: rand.Text(), Lease: 30 * time.Second, Retention: time.Hour, ReceiveCount: 1}
				l, err := granted.Lease(store.Acquire(ctx, c))
				if err != nil {
					return err
				}
				return store.Complete(ctx, l, dedup.Result{})
			})
		})
	}
}

func openRedis(b *testing.B, optFns ...func(*testserver.Options)) dedup.Store {
	b.Helper()
	client := redis.NewClient(&redis.Options{Addr: testserver.Redis.Start(b, optFns...).Addr(), PoolSize: mostHandlers, ContextTimeoutEnabled: true})
	b.Cleanup(func() { _ = client.Close() }) // the measurement is over
	return must.Get(redisstore.New(client, func(o *redisstore.Options) { o.Volatile = true }))(b)
}

func openDynamo(b *testing.B) dedup.Store {
	b.Helper()
	client := dynamodb.New(dynamodb.Options{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
		BaseEndpoint: aws.String(testserver.Dynoxide.Shared(b).URL),
		HTTPClient:   awshttp.NewBuildableClient().WithTransportOptions(keepConnections),
	})
	table := "bench-" + rand.Text()
	must.Do(b, dynamostore.CreateTable(b.Context(), client, table))
	return must.Get(dynamostore.New(client, table))(b)
}

// BenchmarkInbox measures a business transaction of two writes: without an inbox, and with the event's record. The load of
// the machine may change between the two.
func BenchmarkInbox(b *testing.B) {
	for _, name := range []string{"PostgreSQL", "MariaDB", "SQLite"} {
		b.Run(name, func(b *testing.B) {
			d := openSQL(b, name)
			b.Run("bare", func(b *testing.B) {
				runHandlers(b, func(ctx context.Context, event string) error {
					tx, err := d.db.BeginTx(ctx, nil)
					if err != nil {
						return err
					}
					defer tx.Rollback() // does nothing after a commit
					if err := d.book(ctx, tx, event); err != nil {
						return err
					}
					return tx.Commit()
				})
			})
			b.Run("inbox", func(b *testing.B) {
				inbox := must.Get(sqlstore.NewInbox(d.store, "bench", func(o *dedup.Options) { o.CallTimeout = time.Minute }))(b)
				handler := inbox.Handler(d.handle)
				runHandlers(b, func(ctx context.Context, event string) error { return handler(ctx, message(event)) })
			})
		})
	}
}

func eventName(run string, i int64) string { return fmt.Sprintf("%s/%d", run, i) }
