package lambda

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/esm"
)

// mapping runs f behind an event source mapping for d.
func (x *fixture) mapping(f function, d time.Duration) {
	x.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- esm.Run(ctx, x.c, esm.Config{QueueURL: x.url, FunctionTimeout: 30 * time.Second, ReportBatchItemFailures: true},
			func(ctx context.Context, payload []byte) ([]byte, error) {
				var e events.SQSEvent
				if err := json.Unmarshal(payload, &e); err != nil {
					return nil, err
				}
				r, err := f(ctx, e)
				if err != nil {
					return nil, err
				}
				return json.Marshal(r)
			})
	}()
	time.Sleep(d)
	cancel()
	if err := <-ended; err != nil {
		x.Errorf("mapping: %v", err)
	}
}

// TestBehindAMapping runs the host behind an event source mapping. In the end every message has succeeded or was rejected and
// is in the dead-letter queue, the messages of a group succeeded in order, and the queue is empty.
func TestBehindAMapping(t *testing.T) {
	for _, fifo := range []bool{false, true} {
		t.Run(fmt.Sprintf("fifo %t", fifo), func(t *testing.T) {
			withQueue(t, fifo, nil, func(x *fixture) {
				for i := range 30 {
					x.send(fmt.Sprintf("%c%02d", 'a'+i%3, i/3))
				}
				var mu sync.Mutex
				done := map[string][]string{} // by group
				f := x.wrap(func(ctx context.Context, m *sqsonce.Message) error {
					switch k := m.Body[1:]; {
					case k == "03":
						return sqsonce.Reject(errTest)
					case k == "05" && m.ReceiveCount == 1:
						panic("boom")
					case k == "07" && m.ReceiveCount == 1:
						return exits(ctx, m)
					case k == "08" && m.ReceiveCount == 1:
						return ignores(time.Minute)(ctx, m)
					}
					mu.Lock()
					defer mu.Unlock()
					done[m.Body[:1]] = append(done[m.Body[:1]], m.Body[1:])
					return nil
				})
				x.mapping(f, time.Hour)
				if ms := x.srv.Messages(x.url); len(ms) > 0 {
					t.Errorf("in the queue: %v", ms)
				}
				if dead := x.srv.Messages(x.dlq); len(dead) != 3 {
					t.Errorf("%d in the dead-letter queue, want 3", len(dead))
				}
				mu.Lock()
				defer mu.Unlock()
				for _, g := range []string{"a", "b", "c"} {
					want := "[00 01 02 04 05 06 07 08 09]"
					seen := map[string]bool{}
					for _, k := range done[g] {
						seen[k] = true
					}
					if got := fmt.Sprint(done[g]); fifo && got != want {
						t.Errorf("group %s succeeded as %s, want %s", g, got, want)
					}
					if len(seen) != 9 || len(done[g]) != 9 {
						t.Errorf("group %s: %d successes of %d messages, want 9 of 9", g, len(done[g]), len(seen))
					}
				}
			})
		})
	}
}
