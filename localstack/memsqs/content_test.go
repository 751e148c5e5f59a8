package memsqs_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func (x *fixture) try(body string, optFns ...func(*sqs.SendMessageInput)) error {
	in := &sqs.SendMessageInput{QueueUrl: &x.url, MessageBody: &body}
	for _, f := range optFns {
		f(in)
	}
	_, err := x.c.SendMessage(x.Context(), in)
	return err
}

func TestAttributeWithoutType(t *testing.T) {
	standard(t, func(x *fixture) {
		none, value := "", "v"
		x.code(x.try("a", func(in *sqs.SendMessageInput) {
			in.MessageAttributes = map[string]types.MessageAttributeValue{"k": {DataType: &none, StringValue: &value}}
		}), invalidValue)
	})
}
