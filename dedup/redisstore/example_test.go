package redisstore_test

import (
	"context"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/redisstore"
)

func Example() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
	store, err := redisstore.New(client)
	if err != nil {
		log.Fatal(err)
	}
	// Check refuses a server that may lose records. Options.Volatile accepts one that loses them at a restart.
	if err := store.Check(context.Background()); err != nil {
		log.Fatal(err)
	}
	once, err := dedup.New(store, "billing")
	if err != nil {
		log.Fatal(err)
	}
	handler := once.Handler(sqsonce.JSON(func(ctx context.Context, o struct{ ID string }) error {
		return nil // charge the card
	}))
	_ = handler // for a worker or a Lambda function
}

// With Sentinel, and in a cluster, only the client differs.
func ExampleNew_sentinel() {
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: "orders", SentinelAddrs: []string{"sentinel-1:26379", "sentinel-2:26379", "sentinel-3:26379"},
		ContextTimeoutEnabled: true,
	})
	if _, err := redisstore.New(client); err != nil {
		log.Fatal(err)
	}
}
