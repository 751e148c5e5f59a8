package redisstore_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/redisstore"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// consumerMain is the process that the tests below kill: it takes one message, has its effect, says so, and then either
// stays inside the handler or returns from it and stays before the acknowledgement.
func consumerMain() {
	prefix := os.Getenv("REDISSTORE_CONSUMER")
	if prefix == "" {
		return
	}
	client := redis.NewClient(&redis.Options{Addr: os.Getenv("REDISSTORE_ADDR")})
	store, err := redisstore.New(client, func(o *redisstore.Options) { o.Prefix = prefix })
	if err != nil {
		panic(err)
	}
	once, err := dedup.New(store, "billing", func(o *dedup.Options) { o.Lease = time.Second })
	if err != nil {
		panic(err)
	}
	err = once.Handler(func(ctx context.Context, _ *sqsonce.Message) error {
		if err := client.Incr(ctx, prefix+"effects").Err(); err != nil {
			return err
		}
		if os.Getenv("REDISSTORE_STAY") == "in the handler" {
			fmt.Println("ready")
			select {}
		}
		return nil
	})(context.Background(), message(1))
	if err != nil {
		panic(err)
	}
	fmt.Println("ready")
	select {}
}

// killed runs a consumer up to the point and kills it with SIGKILL there.
func killed(t *testing.T, server *testserver.Server, prefix, stay string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "REDISSTORE_CONSUMER="+prefix, "REDISSTORE_ADDR="+server.Addr(), "REDISSTORE_STAY="+stay)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed
	if err != nil || strings.TrimSpace(line) != "ready" {
		t.Fatalf("the consumer said %q, %v", line, err)
	}
}

// The record is what a crash after the effect leaves behind. Killed before it could be completed, the consumer has had an
// effect that nobody knows of: the next one has it again, and is told that it took over. That is what no store outside
// the effect's own transaction can prevent.
func TestConsumerIsKilled(t *testing.T) {
	t.Parallel()
	server := testserver.Redis.Shared(t)
	client := connect(t, server)
	for _, tt := range []struct {
		stay      string
		effects   string
		takeovers int64
	}{
		{"before the acknowledgement", "1", 0},
		{"in the handler", "2", 1},
	} {
		t.Run(tt.stay, func(t *testing.T) {
			t.Parallel()
			prefix := t.Name() + ":"
			killed(t, server, prefix, tt.stay)
			store, err := redisstore.New(client, func(o *redisstore.Options) { o.Prefix = prefix })
			if err != nil {
				t.Fatal(err)
			}
			once, err := dedup.New(store, "billing", func(o *dedup.Options) { o.Lease = time.Second })
			if err != nil {
				t.Fatal(err)
			}
			h := once.Handler(func(ctx context.Context, _ *sqsonce.Message) error {
				return client.Incr(ctx, prefix+"effects").Err()
			})
			start := time.Now()
			for receive := 2; ; receive++ {
				if err = h(t.Context(), message(receive)); err == nil || time.Since(start) > 10*time.Second {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := client.Get(t.Context(), prefix+"effects").Val(); got != tt.effects {
				t.Errorf("%s effects, want %s", got, tt.effects)
			}
			if got := once.Stats().Takeovers; got != tt.takeovers {
				t.Errorf("%d takeovers, want %d", got, tt.takeovers)
			}
		})
	}
}
