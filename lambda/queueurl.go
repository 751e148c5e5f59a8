package lambda

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce/internal/host"
)

// queueURL returns the URL of the queue with that ARN, asked for once per process. Where the role may not ask, the URL
// has AWS's own form.
func (a *adapter) queueURL(ctx context.Context, arn string) (string, error) {
	if url, ok := a.queueURLs.Load(arn); ok {
		return url.(string), nil
	}
	q, err := host.ParseQueueARN(arn)
	if err != nil {
		return "", err
	}
	var out *sqs.GetQueueUrlOutput
	err = a.conns.Do(ctx, func(ctx context.Context) (err error) {
		out, err = a.opts.Client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &q.Name, QueueOwnerAWSAccountId: &q.Account})
		return err
	})
	url := ""
	switch {
	case err == nil:
		url = aws.ToString(out.QueueUrl)
	case isAccessDenied(err):
		a.log.WarnContext(ctx, "lambda: sqs:GetQueueUrl is not allowed: the queue's URL is made from its ARN", keyError, err)
		url = q.URL()
	default:
		return "", err // not remembered: the next invocation asks again
	}
	a.queueURLs.Store(arn, url)
	return url, nil
}

func isAccessDenied(err error) bool {
	e, ok := errors.AsType[smithy.APIError](err)
	return ok && strings.Contains(e.ErrorCode(), "AccessDenied")
}
