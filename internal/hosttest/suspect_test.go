package hosttest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// crashing is a worker whose process dies when it runs a poison message, and is started again.
type crashing struct {
	*fixture
	takes  time.Duration
	poison string

	mu   sync.Mutex
	done map[string]bool
	ends bool
}

// live runs processes one after the other.
func (c *crashing) live() {
	for !c.ended() {
		p := c.newProcess()
		store, err := dynamostore.New(p.ddb, table, func(o *dynamostore.Options) { o.Logger = c.log })
		if err != nil {
			c.Error(err)
		}
		once, err := dedup.New(store, consumer, func(o *dedup.Options) { o.Logger = c.log })
		if err != nil {
			c.Error(err)
		}
		k, err := sqsworker.New(p.sqs, c.url, once.Handler(func(_ context.Context, m *sqsonce.Message) error { return c.handle(p, m) }),
			func(o *sqsworker.Options) { o.Logger = c.log })
		if err != nil {
			c.Error(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			_ = k.Run(ctx) // of a process that died it cannot end well
		}()
		for p.alive() && !c.ended() {
			time.Sleep(time.Second)
		}
		cancel()
		<-stopped
		p.kill()
		time.Sleep(2 * time.Second)
	}
}

func (c *crashing) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ends
}

func (c *crashing) handle(p *process, m *sqsonce.Message) error {
	event := m.Attributes[sqsonce.AttrEventID].String
	if event == c.poison {
		p.sleep(100 * time.Millisecond)
		p.kill()
		return errDead
	}
	if !p.sleep(c.takes) {
		return errDead
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done[event] = true
	return nil
}

// TestCrashingMessage: a message kills its process each time it runs. It goes to the dead-letter queue alone. All that was received with
// it is done.
func TestCrashingMessage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fifo                 bool
		maxReceives, workers int
		takes                time.Duration
	}{
		{false, 3, 1, 200 * time.Millisecond}, {false, 5, 1, 8 * time.Second}, {true, 3, 1, 3 * time.Second}, {true, 5, 5, 200 * time.Millisecond},
		{false, 3, 1, 10 * time.Minute}, {false, 5, 5, 3 * time.Second}, {true, 5, 1, 10 * time.Minute},
	} {
		t.Run(fmt.Sprintf("fifo=%t, %d receives, %d workers, %s", c.fifo, c.maxReceives, c.workers, c.takes), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &crashing{
					fixture: newFixture(t, setup{fifo: c.fifo, visibility: 30 * time.Second, maxReceives: c.maxReceives, quiet: true}),
					takes:   c.takes, poison: "g3-3", done: map[string]bool{},
				}
				const messages = 30
				for n := range messages {
					w.send(message{name: fmt.Sprintf("g%d-%d", n, n)})
				}
				var lives sync.WaitGroup
				for range c.workers {
					lives.Go(w.live)
				}
				time.Sleep(20*time.Minute + 12*c.takes)
				w.mu.Lock()
				w.ends = true
				w.mu.Unlock()
				lives.Wait()
				w.admin.kill()
				if len(w.done) != messages-1 {
					t.Errorf("%d of %d done", len(w.done), messages-1)
				}
				dead := w.sqs.Messages(w.dlq)
				if len(dead) != 1 || dead[0].Attributes[sqsonce.AttrEventID] != w.poison {
					t.Errorf("%d dead-lettered, want the poison alone", len(dead))
				}
				for _, m := range w.sqs.Messages(w.url) {
					t.Errorf("left: %s, received %d times", m.Attributes[sqsonce.AttrEventID], m.ReceiveCount)
				}
			})
		})
	}
}
