package redisstore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/redisstore"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// consumer returns a handler that acts as another process: it shares no memory with other deliveries.
func consumer(t *testing.T, s *redisstore.Store, h sqsonce.Handler) sqsonce.Handler {
	t.Helper()
	once, err := dedup.New(s, "billing", func(o *dedup.Options) { o.CacheSize, o.Wait, o.Lease = -1, -1, time.Second })
	if err != nil {
		t.Fatal(err)
	}
	return once.Handler(h)
}

func message(receive int) *sqsonce.Message {
	return &sqsonce.Message{
		ID: "m-1", QueueARN: "arn:aws:sqs:us-east-1:000000000000:orders", Body: "{}", ReceiveCount: receive,
		Attributes: map[string]sqsonce.Attribute{sqsonce.AttrEventID: {Type: "String", String: "ord-1/paid"}, sqsonce.AttrEventSource: {Type: "String", String: "orders"}},
	}
}

func TestSameMessage(t *testing.T) {
	t.Parallel()
	for _, deliveries := range []int{1, 2, 10} {
		s := newStore(t, connect(t, testserver.Redis.Shared(t)))
		effects := 0
		for i := range deliveries {
			err := consumer(t, s, func(context.Context, *sqsonce.Message) error { effects++; return nil })(t.Context(), message(i+1))
			if err != nil {
				t.Errorf("delivery %d of %d: %v, want it acknowledged", i+1, deliveries, err)
			}
		}
		if effects != 1 {
			t.Errorf("%d deliveries had %d effects, want 1", deliveries, effects)
		}
	}
}

// The handler takes longer than its lease, which is renewed. Each consumer receives the message until it is acknowledged.
func TestFiveConsumersAndASlowHandler(t *testing.T) {
	t.Parallel()
	s := newStore(t, connect(t, testserver.Redis.Shared(t)))
	var effects, refused atomic.Int64
	var wg sync.WaitGroup
	for range 5 {
		h := consumer(t, s, func(context.Context, *sqsonce.Message) error {
			time.Sleep(1500 * time.Millisecond)
			effects.Add(1)
			return nil
		})
		wg.Go(func() {
			for receive := 1; ; receive++ {
				err := h(t.Context(), message(receive))
				if err == nil {
					return
				}
				if !errors.Is(err, sqsonce.ErrInProgress) {
					t.Errorf("got %v, want in progress", err)
					return
				}
				refused.Add(1)
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	wg.Wait()
	if effects.Load() != 1 || refused.Load() < 4 {
		t.Errorf("%d effects and %d refusals, want 1 effect and at least one refusal for each of the other four", effects.Load(), refused.Load())
	}
}

func TestHandlerError(t *testing.T) {
	t.Parallel()
	s := newStore(t, connect(t, testserver.Redis.Shared(t)))
	declined := errors.New("card declined")
	err := consumer(t, s, func(context.Context, *sqsonce.Message) error { return declined })(t.Context(), message(1))
	if !errors.Is(err, declined) {
		t.Fatalf("got %v, want the handler's error", err)
	}
	effects := 0
	for receive := 2; receive < 4; receive++ { // at once: after a release there is no wait
		if err := consumer(t, s, func(context.Context, *sqsonce.Message) error { effects++; return nil })(t.Context(), message(receive)); err != nil {
			t.Fatal(err)
		}
	}
	if effects != 1 {
		t.Errorf("%d effects after a failure and two deliveries, want 1", effects)
	}
	if r, err := s.Inspect(t.Context(), "billing#"+eventKey(t)); err != nil || !r.Completed || r.LastError != "card declined" {
		t.Errorf("record %+v, %v, want it completed with the last error", r, err)
	}
}

func eventKey(t *testing.T) string {
	t.Helper()
	key, err := sqsonce.EventKey("orders", "ord-1/paid")
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// consumerMain is the process that the tests below kill. It handles one message and has its effect. Then it prints "ready"
// and waits to be killed: inside the handler, or after it and before the acknowledgement.
func consumerMain() {
	prefix := os.Getenv("REDISSTORE_CONSUMER")
	if prefix == "" {
		return
	}
	client := redis.NewClient(&redis.Options{Addr: os.Getenv("REDISSTORE_ADDR")})
	store, err := redisstore.New(client, func(o *redisstore.Options) { o.Prefix, o.Volatile = prefix, true })
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

// killed runs a consumer until it waits at stay, and kills it with SIGKILL.
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
		t.Fatalf("the consumer's first line: got %q, %v, want ready", line, err)
	}
}

// A consumer that is killed before it completes its record has had an effect that the record does not show. The next one
// has the effect again, and its lease is a takeover. Only a store in the effect's own transaction can prevent that.
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
			store, err := redisstore.New(client, func(o *redisstore.Options) { o.Prefix, o.Volatile = prefix, true })
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
