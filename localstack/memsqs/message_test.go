package memsqs_test

import (
	"regexp"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/google/go-cmp/cmp"
)

// The request's trace header is that of its messages, but for those that have one of their own.
func TestTraceHeaderOfTheRequest(t *testing.T) {
	standard(t, func(x *fixture) {
		_, err := x.c.SendMessageBatch(x.Context(), &sqs.SendMessageBatchInput{QueueUrl: &x.url, Entries: []types.SendMessageBatchRequestEntry{
			{Id: aws.String("1"), MessageBody: aws.String("a")},
			{Id: aws.String("2"), MessageBody: aws.String("b"), MessageSystemAttributes: map[string]types.MessageSystemAttributeValue{
				"AWSTraceHeader": {DataType: aws.String("String"), StringValue: aws.String("Root=1-6")},
			}},
		}}, func(o *sqs.Options) {
			o.APIOptions = append(o.APIOptions, smithyhttp.AddHeaderValue("X-Amzn-Trace-Id", "Root=1-5"))
		})
		x.ok(err)
		x.send("c")
		got := map[string]string{}
		for _, m := range x.want("a", "b", "c") {
			got[*m.Body] = m.Attributes["AWSTraceHeader"]
		}
		if d := cmp.Diff(map[string]string{"a": "Root=1-5", "b": "Root=1-6", "c": ""}, got); d != "" {
			x.Errorf("trace headers (-want +got):\n%s", d)
		}
	})
}

// Message IDs are UUIDs of version 4, as on AWS.
func TestMessageIDs(t *testing.T) {
	t.Parallel()
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	standard(t, func(x *fixture) {
		for range 20 {
			if id := *x.send("a").MessageId; !uuid.MatchString(id) {
				x.Errorf("message ID %s", id)
			}
		}
	})
}

func TestUnknownSystemAttribute(t *testing.T) {
	standard(t, func(x *fixture) {
		_, err := x.c.ReceiveMessage(x.Context(), &sqs.ReceiveMessageInput{QueueUrl: &x.url, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"Nonsense"}})
		x.code(err, "InvalidAttributeName")
	})
}
