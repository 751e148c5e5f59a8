package memsqs_test

import (
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// put sends body to a group with a deduplication ID, "" for none.
func (x *fixture) put(body, group, id string) (*sqs.SendMessageOutput, error) {
	in := &sqs.SendMessageInput{QueueUrl: &x.url, MessageBody: &body, MessageGroupId: &group}
	if id != "" {
		in.MessageDeduplicationId = &id
	}
	return x.c.SendMessage(x.Context(), in)
}

func (x *fixture) mustPut(body, group, id string) *sqs.SendMessageOutput {
	x.Helper()
	out, err := x.put(body, group, id)
	x.ok(err)
	return out
}
