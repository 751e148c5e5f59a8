package sqsworker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/settle"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func rejectBad(_ context.Context, m *sqsonce.Message) error {
	if strings.Contains(m.Body, "bad") {
		return sqsonce.Reject(errTest)
	}
	return nil
}

func TestRejectGoesToTheDLQ(t *testing.T) {
	for _, fifo := range []bool{false, true} {
		t.Run(fmt.Sprintf("fifo=%t", fifo), func(t *testing.T) {
			bubble(t, setup{fifo: fifo, maxReceives: 5}, func(x *fixture) {
				x.send("g:bad", "g:good")
				id := x.queued()[0].ID
				j := x.start(withKey(rejectBad))
				time.Sleep(5 * time.Second)
				j.stopClean()
				x.wantEmpty()
				dead := x.dead()
				if len(dead) != 1 || dead[0].Body != "g:bad" {
					t.Fatalf("dead-letter queue: %+v, want the bad one", dead)
				}
				m := dead[0]
				if got := m.Attributes[sqsonce.AttrRejectReason]; !strings.Contains(got, errTest.Error()) {
					t.Errorf("reason: %q", got)
				}
				arn := "arn:aws:sqs:us-east-1:000000000000:jobs"
				if fifo {
					arn += ".fifo"
					if m.Group != "g" || m.DedupID != id {
						t.Errorf("group %q, dedup ID %q; want g and the message ID", m.Group, m.DedupID)
					}
				}
				if got, want := m.Attributes[sqsonce.AttrEventKey], "sqs-message|"+arn+"|"+id; got != want {
					t.Errorf("event key: got %q, want %q", got, want)
				}
				if got := m.Attributes[sqsonce.AttrDeadLetterSource]; got != arn {
					t.Errorf("dead-letter-source: got %q, want the queue's ARN", got)
				}
				if s := j.Stats(); s.Rejected != 1 || s.Done != 1 || s.Failed != 1 {
					t.Errorf("stats: %+v", s)
				}
			})
		})
	}
}

func TestUndecodableBodyStopsNothingElse(t *testing.T) {
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		x.send(`{"n":1}`, `not json`, `{"n":2}`)
		sum := 0
		j := x.start(sqsonce.JSON(func(_ context.Context, v struct{ N int }) error {
			sum += v.N
			return nil
		}), func(o *Options) { o.Concurrency = 1 })
		time.Sleep(5 * time.Second)
		j.stopClean()
		x.wantEmpty()
		if dead := x.dead(); sum != 3 || len(dead) != 1 || dead[0].Body != "not json" {
			t.Errorf("sum %d, dead-letter queue %+v", sum, dead)
		}
	})
}

func TestErrorTextIsTheReason(t *testing.T) {
	bubble(t, setup{maxReceives: 5}, func(x *fixture) {
		x.send("bad")
		j := x.start(rejectBad, func(o *Options) {
			o.ErrorText = func(err error) string { return fmt.Sprint("private: ", errors.Is(err, errTest)) }
		})
		time.Sleep(5 * time.Second)
		j.stopClean()
		if dead := x.dead(); len(dead) != 1 || dead[0].Attributes[sqsonce.AttrRejectReason] != "private: true" {
			t.Errorf("dead-letter queue: %+v", dead)
		}
	})
}

func TestRejectWithoutDLQIsAnyOtherError(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.send("bad")
		j := x.start(rejectBad)
		time.Sleep(10 * time.Minute)
		j.stopClean()
		if q := x.queued(); len(q) != 1 || q[0].ReceiveCount < 3 {
			t.Errorf("queue: %+v, want the message, delivered again and again", q)
		}
		if !x.log.has("no dead-letter queue") {
			t.Error("nothing logged")
		}
	})
}

func TestRejectIsNotDeletedWhenTheSendFails(t *testing.T) {
	rule := fault.Rule{Op: "SendMessage", Nth: 2, Times: 3, Do: fault.Error, Code: "AccessDenied"}
	bubble(t, setup{maxReceives: 50, faults: []fault.Rule{rule}}, func(x *fixture) {
		x.send("bad")
		j := x.start(rejectBad)
		time.Sleep(time.Hour)
		j.stopClean()
		x.wantEmpty()
		if dead := x.dead(); len(dead) != 1 {
			t.Errorf("dead-letter queue: %+v", dead)
		}
		if got := j.Stats().Rejected; got != 1 {
			t.Errorf("Rejected: got %d, want 1", got)
		}
	})
}

func TestRejectToTheQueueGiven(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		other := x.create("elsewhere", nil)
		x.send("bad")
		j := x.start(rejectBad, func(o *Options) { o.DeadLetterQueue = other })
		time.Sleep(5 * time.Second)
		j.stopClean()
		x.wantEmpty()
		if n := len(x.srv.Messages("elsewhere")); n != 1 {
			t.Errorf("%d messages in the queue given, want 1", n)
		}
	})
}

func TestRejectKeepsTheSendersAttributes(t *testing.T) {
	for n, want := range map[int][2]bool{8: {true, true}, 9: {true, false}, 10: {false, false}} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			bubble(t, setup{maxReceives: 5}, func(x *fixture) {
				attrs := map[string]sqstypes.MessageAttributeValue{}
				for i := range n {
					attrs[fmt.Sprintf("a%d", i)] = sqstypes.MessageAttributeValue{DataType: aws.String("String.x"), StringValue: aws.String("v")}
				}
				attrs["a0"] = sqstypes.MessageAttributeValue{DataType: aws.String("Binary"), BinaryValue: []byte{1, 2}}
				if _, err := x.c.SendMessage(x.Context(), &sqs.SendMessageInput{
					QueueUrl: &x.url, MessageBody: aws.String("bad"), MessageAttributes: attrs,
				}); err != nil {
					t.Fatal(err)
				}
				j := x.start(withKey(rejectBad))
				time.Sleep(5 * time.Second)
				j.stopClean()
				x.wantEmpty()
				dead := x.dead()
				if len(dead) != 1 {
					t.Fatalf("dead-letter queue: %+v", dead)
				}
				_, key := dead[0].Attributes[sqsonce.AttrEventKey]
				_, reason := dead[0].Attributes[sqsonce.AttrRejectReason]
				if key != want[0] || reason != want[1] {
					t.Errorf("key %t, reason %t; want %v", key, reason, want)
				}
				if dead[0].Attributes["a1"] != "v" {
					t.Errorf("attributes: %v", dead[0].Attributes)
				}
			})
		})
	}
}

func TestRejectSettlesAfterTheSend(t *testing.T) {
	for _, maxReceives := range []int{0, 5} {
		t.Run(fmt.Sprint(maxReceives), func(t *testing.T) {
			bubble(t, setup{maxReceives: maxReceives}, func(x *fixture) {
				x.send("bad")
				settled := make(chan bool, 10)
				inDLQ := make(chan int, 10)
				j := x.start(func(ctx context.Context, m *sqsonce.Message) error {
					sqsonce.OnSettled(ctx, func(deadLettered bool) {
						inDLQ <- len(x.dead())
						settled <- deadLettered
					})
					return sqsonce.Reject(errTest)
				}, func(o *Options) { o.Wait = time.Second })
				want := maxReceives > 0
				if got := <-settled; got != want {
					t.Errorf("dead-lettered: got %t, want %t", got, want)
				}
				if n := <-inDLQ; want && n != 1 {
					t.Errorf("settled with %d messages in the dead-letter queue", n)
				}
				j.stopClean()
			})
		})
	}
}

// TestRejectFitsASmallerDLQ: the dead-letter queue takes messages up to 2 KiB. The attributes that the worker adds never
// make a message too large for it.
func TestRejectFitsASmallerDLQ(t *testing.T) {
	const most = 2048
	for _, tc := range []struct {
		body        int
		key, reason bool
		sendersOwn  map[string]string
		dead        bool
	}{
		{body: 1000, key: true, reason: true, dead: true},
		{body: most - 120, key: true, dead: true}, // the key is about 110 bytes, the reason 60
		{body: most - 20, dead: true},
		{body: most, dead: true},
		{body: most + 1}, // too large without them: it stays in its queue
		{body: most - 60, key: true, sendersOwn: map[string]string{sqsonce.AttrEventKey: "orders|1"}, dead: true},
	} {
		t.Run(fmt.Sprint(tc.body), func(t *testing.T) {
			bubble(t, setup{maxReceives: 1000}, func(x *fixture) {
				if _, err := x.c.SetQueueAttributes(x.Context(), &sqs.SetQueueAttributesInput{
					QueueUrl: &x.dlq, Attributes: map[string]string{"MaximumMessageSize": fmt.Sprint(most)},
				}); err != nil {
					t.Fatal(err)
				}
				attrs := map[string]sqstypes.MessageAttributeValue{}
				for name, v := range tc.sendersOwn {
					attrs[name] = sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: &v}
				}
				body := "bad" + strings.Repeat("x", tc.body-3)
				if _, err := x.c.SendMessage(x.Context(), &sqs.SendMessageInput{
					QueueUrl: &x.url, MessageBody: &body, MessageAttributes: attrs,
				}); err != nil {
					t.Fatal(err)
				}
				j := x.start(withKey(rejectBad))
				time.Sleep(5 * time.Second)
				j.stopClean()
				dead := x.dead()
				if !tc.dead {
					if len(dead) != 0 || len(x.queued()) != 1 {
						t.Errorf("%d in the dead-letter queue, %d in the queue; want it in the queue", len(dead), len(x.queued()))
					}
					return
				}
				x.wantEmpty()
				if len(dead) != 1 || dead[0].Body != body {
					t.Fatalf("%d in the dead-letter queue, want the message", len(dead))
				}
				_, key := dead[0].Attributes[sqsonce.AttrEventKey]
				_, reason := dead[0].Attributes[sqsonce.AttrRejectReason]
				if key != tc.key || reason != tc.reason {
					t.Errorf("key %t, reason %t; want %t, %t", key, reason, tc.key, tc.reason)
				}
				if logged := x.log.has("attribute not added"); logged != !(tc.reason) {
					t.Errorf("logged: %t", logged)
				}
				for name, v := range tc.sendersOwn {
					if got := dead[0].Attributes[name]; got != v {
						t.Errorf("the sender's %s: got %q, want %q", name, got, v)
					}
				}
			})
		})
	}
}

// TestTrustedDedupIDSurvivesARedrive: the copy has another MessageDeduplicationId, and its event the same record.
func TestTrustedDedupIDSurvivesARedrive(t *testing.T) {
	bubble(t, setup{fifo: true, maxReceives: 5}, func(x *fixture) {
		o, err := dedup.New(memstore.New(), "billing", func(o *dedup.Options) { o.TrustDedupID = true })
		if err != nil {
			t.Fatal(err)
		}
		keys := make(chan string, 2)
		j := x.start(o.Handler(func(_ context.Context, m *sqsonce.Message) error {
			key, err := o.Key(m)
			if err != nil {
				return err
			}
			if keys <- key; len(keys) == 1 {
				return sqsonce.Reject(errTest)
			}
			return nil
		}))
		x.send("g:a")
		time.Sleep(time.Minute)
		if n := len(x.dead()); n != 1 {
			t.Fatalf("%d messages in the dead-letter queue, want the rejected one", n)
		}
		if _, err := x.c.StartMessageMoveTask(x.Context(), &sqs.StartMessageMoveTaskInput{
			SourceArn:      aws.String("arn:aws:sqs:us-east-1:000000000000:jobs-dlq.fifo"),
			DestinationArn: aws.String("arn:aws:sqs:us-east-1:000000000000:jobs.fifo"),
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		j.stopClean()
		const want = "billing#sqs-dedup|arn:aws:sqs:us-east-1:000000000000:jobs.fifo|g|g:a"
		if first, second := <-keys, <-keys; first != want || second != want {
			t.Errorf("keys before and after the redrive: %q and %q, want %q", first, second, want)
		}
	})
}

// withKey tells the host the message's key, as dedup does.
func withKey(h sqsonce.Handler) sqsonce.Handler {
	return func(ctx context.Context, m *sqsonce.Message) error {
		key, _, err := m.Key()
		if err != nil {
			return err
		}
		settle.KeepKey(ctx, key)
		return h(ctx, m)
	}
}
