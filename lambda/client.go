package lambda

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Client is the part of the SQS client that the host calls for retries, rejects and suspects. *sqs.Client implements it. The
// host abandons a call that ignores its context when the context ends. A call that panics, or returns neither an answer nor
// an error, has failed.
//
// docs/lambda.md lists the permissions of the function's role, and the consequence of each missing one.
//
// The host reads visibility timeout, retention and redrive policy with one call of GetQueueAttributes, when a message needs
// them. It reads them again after 5 min, and sooner if SQS contradicts them. It then logs a visibility timeout below 6
// function timeouts, and a maxReceiveCount below 5 (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html).
//
// Without a client a failed message is visible again when the visibility timeout of the queue ends, also after RetryAfter. A
// Reject is then a failure like any other, and only the redrive policy of the queue moves the message. The host logs the
// first such error.
type Client interface {
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
}

var _ Client = (*sqs.Client)(nil)

// NoClient as Options.Client keeps Start from making a client.
var NoClient Client = noClient{}

type noClient struct{ Client }

// newClient returns a client from the variables that Lambda sets in a function's environment. They are the first thing that
// the SDK's own configuration looks at, whose package a function would pay for at each cold start. Lambda sets no others for
// Go: only SnapStart, which OS-only runtimes do not have, gives its credentials by another way.
// https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
// https://docs.aws.amazon.com/lambda/latest/dg/snapstart.html
func newClient(getenv func(string) string) (Client, error) {
	var missing []string
	need := func(name string) string {
		v := getenv(name)
		if v == "" {
			missing = append(missing, name)
		}
		return v
	}
	region := need("AWS_REGION")
	credentials := aws.Credentials{
		AccessKeyID: need("AWS_ACCESS_KEY_ID"), SecretAccessKey: need("AWS_SECRET_ACCESS_KEY"),
		SessionToken: getenv("AWS_SESSION_TOKEN"), Source: "environment",
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("not set in the environment: %s", strings.Join(missing, ", "))
	}
	o := sqs.Options{Region: region, Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return credentials, nil
	})}
	if endpoint := cmp.Or(getenv("AWS_ENDPOINT_URL_SQS"), getenv("AWS_ENDPOINT_URL")); endpoint != "" {
		o.BaseEndpoint = &endpoint
	}
	return sqs.New(o), nil
}
