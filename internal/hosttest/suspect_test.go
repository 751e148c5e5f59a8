package hosttest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/lambda"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// crashing is a worker whose process dies when it runs a poison message, and is started again.
type crashing struct {
	*fixture
	takes  time.Duration
	poison string
	client bool // of a function

	mu   sync.Mutex
	done map[string]bool
	ends bool
}

// handler is the handler of a process, with a record for each event.
func (c *crashing) handler(p *process) sqsonce.Handler {
	store, err := dynamostore.New(p.ddb, table, func(o *dynamostore.Options) { o.Logger = c.log })
	if err != nil {
		c.Error(err)
	}
	once, err := dedup.New(store, consumer, func(o *dedup.Options) { o.Logger = c.log })
	if err != nil {
		c.Error(err)
	}
	return once.Handler(func(_ context.Context, m *sqsonce.Message) error { return c.handle(p, m) })
}

// live runs processes one after the other.
func (c *crashing) live() {
	for !c.ended() {
		p := c.newProcess()
		k, err := sqsworker.New(p.sqs, c.url, c.handler(p),
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

// liveFunction runs processes of a function, one invocation after the other, as an event source mapping does with MaximumConcurrency 1.
func (c *crashing) liveFunction() {
	for !c.ended() {
		p := c.newProcess()
		f, err := lambda.Wrap(c.handler(p),
			func(o *lambda.Options) {
				o.Logger = c.log
				if c.client {
					o.Client = p.sqs
				}
			})
		if err != nil {
			c.Error(err)
		}
		for p.alive() && !c.ended() {
			c.invoke(p, f)
		}
		p.kill()
	}
}

// invoke receives a batch and invokes the function with it. What the response does not name is deleted.
func (c *crashing) invoke(p *process, f func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)) {
	out, err := c.admin.sqs.ReceiveMessage(context.Background(), &sqs.ReceiveMessageInput{
		QueueUrl: &c.url, MaxNumberOfMessages: 10, WaitTimeSeconds: 20,
		MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"All"},
	})
	if err != nil || len(out.Messages) == 0 {
		return
	}
	var e events.SQSEvent
	for _, m := range out.Messages {
		attributes := map[string]events.SQSMessageAttribute{}
		for name, a := range m.MessageAttributes {
			attributes[name] = events.SQSMessageAttribute{DataType: *a.DataType, StringValue: a.StringValue}
		}
		e.Records = append(e.Records, events.SQSMessage{
			MessageId: *m.MessageId, ReceiptHandle: *m.ReceiptHandle, Body: *m.Body, Attributes: m.Attributes, MessageAttributes: attributes,
			EventSource: "aws:sqs", EventSourceARN: c.named(queueARN),
		})
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	ended := make(chan struct{})
	failed := map[string]bool{}
	go func() {
		defer close(ended)
		r, err := f(ctx, e)
		for _, m := range e.Records {
			failed[m.MessageId] = err != nil
		}
		for _, m := range r.BatchItemFailures {
			failed[m.ItemIdentifier] = true
		}
	}()
	select {
	case <-ended:
	case <-p.dead:
		<-ended // of a process that died nothing counts
		return
	}
	for _, m := range e.Records {
		if !p.alive() || failed[m.MessageId] {
			continue
		}
		if _, err := c.admin.sqs.DeleteMessage(context.Background(), &sqs.DeleteMessageInput{QueueUrl: &c.url, ReceiptHandle: &m.ReceiptHandle}); err != nil {
			c.Error(err)
		}
	}
}

// TestCrashingMessage: a message kills its process each time it runs. It goes to the dead-letter queue alone. All that was received with
// it is done.
func TestCrashingMessage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fifo                 bool
		maxReceives, workers int
		takes                time.Duration
		function             bool
		noClient             bool
	}{
		{false, 3, 1, 200 * time.Millisecond, false, false}, {false, 5, 1, 8 * time.Second, false, false}, {true, 3, 1, 3 * time.Second, false, false},
		{true, 5, 5, 200 * time.Millisecond, false, false}, {false, 3, 1, 10 * time.Minute, false, false}, {false, 5, 5, 3 * time.Second, false, false},
		{true, 5, 1, 10 * time.Minute, false, false},
		{false, 3, 1, 200 * time.Millisecond, true, false}, {false, 5, 1, 5 * time.Second, true, false}, {true, 3, 2, 200 * time.Millisecond, true, false},
		{false, 5, 1, 5 * time.Second, true, true},
	} {
		t.Run(fmt.Sprintf("fifo=%t, %d receives, %d hosts, %s, function=%t, without a client=%t", c.fifo, c.maxReceives, c.workers, c.takes, c.function, c.noClient), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				visibility := 30 * time.Second
				if c.function {
					visibility = 5 * time.Minute
				}
				w := &crashing{
					fixture: newFixture(t, setup{fifo: c.fifo, visibility: visibility, maxReceives: c.maxReceives, quiet: true}),
					takes:   c.takes, poison: "g3-3", done: map[string]bool{}, client: !c.noClient,
				}
				const messages = 30
				for n := range messages {
					w.send(message{name: fmt.Sprintf("g%d-%d", n, n)})
				}
				var lives sync.WaitGroup
				live := w.live
				if c.function {
					live = w.liveFunction
				}
				for range c.workers {
					lives.Go(live)
				}
				time.Sleep(40*time.Minute + 12*c.takes)
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
