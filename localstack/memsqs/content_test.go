package memsqs_test

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

type sendOption = func(*sqs.SendMessageInput)

func (x *fixture) try(body string, optFns ...sendOption) error {
	in := &sqs.SendMessageInput{QueueUrl: &x.url, MessageBody: &body}
	for _, f := range optFns {
		f(in)
	}
	_, err := x.c.SendMessage(x.Context(), in)
	return err
}

func attribute(name, dataType, value string) sendOption {
	return func(in *sqs.SendMessageInput) {
		if in.MessageAttributes == nil {
			in.MessageAttributes = map[string]types.MessageAttributeValue{}
		}
		v := types.MessageAttributeValue{DataType: &dataType}
		if strings.HasPrefix(dataType, "Binary") {
			v.BinaryValue = []byte(value)
		} else if value != "" {
			v.StringValue = &value
		}
		in.MessageAttributes[name] = v
	}
}
