package sqsworker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
)

// TestRejectFitsASmallerDLQ: the dead-letter queue takes messages up to 2 KiB. What a message grows by on its way there is
// ours, and never keeps it out.
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
		{body: most + 1}, // it cannot be there at all, and stays
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
				j := x.start(rejectBad)
				time.Sleep(5 * time.Second)
				j.stopClean()
				dead := x.dead()
				if !tc.dead {
					if len(dead) != 0 || len(x.queued()) != 1 {
						t.Errorf("%d in the dead-letter queue, %d in the queue; want it kept", len(dead), len(x.queued()))
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
				if logged := x.log.has("no room for an attribute"); logged != !(tc.reason) {
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
