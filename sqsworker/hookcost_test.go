package sqsworker

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// instantClient is a client that answers at once, and allocates nothing.
type instantClient struct {
	Client
	received *sqs.ReceiveMessageOutput
	deleted  *sqs.DeleteMessageBatchOutput
	changed  *sqs.ChangeMessageVisibilityBatchOutput
}

func (c *instantClient) ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	return c.received, nil
}

func (c *instantClient) DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	return c.deleted, nil
}

func (c *instantClient) ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return c.changed, nil
}

// TestWithoutHooks: nothing is paid for hooks or limits that are not set.
func TestWithoutHooks(t *testing.T) {
	c := &instantClient{
		received: &sqs.ReceiveMessageOutput{}, deleted: &sqs.DeleteMessageBatchOutput{}, changed: &sqs.ChangeMessageVisibilityBatchOutput{},
	}
	l := newTestLoop(t)
	l.client, l.needs.state = safeClient{c}, needsProven
	var ds []*delivery
	for i := range 10 {
		id := aws.String(fmt.Sprint(i))
		ds = append(ds, l.addTest(*id, 1))
		c.received.Messages = append(c.received.Messages, sqstypes.Message{MessageId: id, ReceiptHandle: id, Body: id})
		c.deleted.Successful = append(c.deleted.Successful, sqstypes.DeleteMessageBatchResultEntry{Id: id})
		c.changed.Successful = append(c.changed.Successful, sqstypes.ChangeMessageVisibilityBatchResultEntry{Id: id})
	}
	changes := make([]change, len(ds))
	for i, d := range ds {
		changes[i] = change{d: d, handle: d.lease.handle, visibility: time.Minute}
	}
	p := &poll{reserved: amount{messages: 10}, began: time.Now()}
	for _, tc := range []struct {
		name string
		most float64
		do   func()
	}{
		{"handler call", 5, func() { l.start(ds[0]) }},
		{"receive of ten", 50, func() { l.receive(p) }},
		{"delete of ten", 14, func() { l.sendDeletes(ds) }},
		{"extension of ten", 24, func() { l.changeVisibility(changes, time.Minute, false) }},
	} {
		allocs := testing.AllocsPerRun(200, func() {
			tc.do()
			if e, ok := (<-l.events).(deletesAnswered); ok {
				l.schedule.cancel(e.overdue)
			}
			runtime.Gosched() // its goroutine waits for the next call
		})
		if allocs > tc.most {
			t.Errorf("%s: %v allocations, want at most %v", tc.name, allocs, tc.most)
		}
	}
}

// TestRequestsWithoutHooks: a worker without hooks or limits makes its own requests only: two receives while it is idle.
func TestRequestsWithoutHooks(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.sendMany(10)
		before := len(x.srv.Calls())
		x.start(ok).stopEmptyAfter(10 * time.Second)
		requests := map[string]int{}
		for _, c := range x.srv.Calls()[before:] {
			requests[c.Op]++
		}
		if want := map[string]int{opAttributes: 1, opReceive: 3, opDelete: 1}; !maps.Equal(requests, want) {
			t.Errorf("requests for ten messages: %v, want %v", requests, want)
		}
	})
}
