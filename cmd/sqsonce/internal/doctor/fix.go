package doctor

import (
	"encoding/json"
	"strings"

	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shell"
	"github.com/sqsonce/sqsonce/internal/host"
)

// awsCommand is a command of the AWS CLI.
func awsCommand(args ...string) string { return shell.Command(append([]string{"aws"}, args...)...) }

// setAttribute is the command that sets an attribute of a queue.
func setAttribute(q *queue, name sqstypes.QueueAttributeName, value string) string {
	return awsCommand("sqs", "set-queue-attributes", "--queue-url", q.url, "--attributes", asJSON(map[string]string{string(name): value}))
}

// setRedrive is the command that sets a queue's redrive policy to so many receives.
func setRedrive(q *queue, deadLetter host.QueueARN, receives int) string {
	return setAttribute(q, sqstypes.QueueAttributeNameRedrivePolicy, asJSON(map[string]any{
		"deadLetterTargetArn": deadLetter.String(), "maxReceiveCount": receives,
	}))
}

// newDeadLetterQueue is the command that gives a queue a dead-letter queue. A queue that exists with other attributes is left as it is:
// SQS refuses the first part, and the second does not run.
func newDeadLetterQueue(q *queue) string {
	arn, err := host.ParseQueueARN(q.arn)
	if err != nil {
		return ""
	}
	base, fifo := strings.CutSuffix(q.name, ".fifo")
	arn.Name = base[:min(len(base), 71)] + "-dlq" // a name has 80 characters at most, .fifo included
	if fifo {
		arn.Name += ".fifo"
	}
	return createQueue(arn.Name) + " && " + setRedrive(q, arn, fewReceives)
}

// createQueue is the command that creates a dead-letter queue.
func createQueue(name string) string {
	attributes := "MessageRetentionPeriod=1209600"
	if host.IsFIFO(name) {
		attributes += ",FifoQueue=true"
	}
	return awsCommand("sqs", "create-queue", "--queue-name", name, "--attributes", attributes)
}

// asJSON is for values that can be written.
func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}
