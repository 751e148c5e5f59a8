package doctor

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/middleware"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/awserr"
)

// callTimeout bounds one call, its retries included. Where each try is refused at once a call takes less than a second.
const callTimeout = 10 * time.Second

// bounded returns clients whose calls end after callTimeout. A service that did not answer one call is not asked again: all checks
// together wait for it once.
func (c Clients) bounded() Clients {
	type stackFn = func(*middleware.Stack) error
	with := func(fns []stackFn, service string) []stackFn {
		return append(fns[:len(fns):len(fns)], (&bound{service: service}).add)
	}
	if c.SQS != nil {
		c.SQS = sqs.New(c.SQS.Options(), func(o *sqs.Options) {
			o.APIOptions, o.Retryer, o.HTTPClient = with(o.APIOptions, "sqs"), awserr.Retryer(), awserr.Limited(o.HTTPClient)
		})
	}
	if c.DynamoDB != nil {
		c.DynamoDB = dynamodb.New(c.DynamoDB.Options(), func(o *dynamodb.Options) {
			o.APIOptions, o.Retryer, o.HTTPClient = with(o.APIOptions, "dynamodb"), awserr.Retryer(), awserr.Limited(o.HTTPClient)
		})
	}
	if c.Lambda != nil {
		c.Lambda = lambda.New(c.Lambda.Options(), func(o *lambda.Options) {
			o.APIOptions, o.Retryer, o.HTTPClient = with(o.APIOptions, "lambda"), awserr.Retryer(), awserr.Limited(o.HTTPClient)
		})
	}
	if c.IAM != nil {
		c.IAM = iam.New(c.IAM.Options(), func(o *iam.Options) {
			o.APIOptions, o.Retryer, o.HTTPClient = with(o.APIOptions, "iam"), awserr.Retryer(), awserr.Limited(o.HTTPClient)
		})
	}
	if c.CloudWatch != nil {
		protocol := c.CloudWatch.Options().Protocol // which New sets to its default
		c.CloudWatch = cloudwatch.New(c.CloudWatch.Options(), func(o *cloudwatch.Options) {
			o.APIOptions, o.Retryer, o.HTTPClient = with(o.APIOptions, "cloudwatch"), awserr.Retryer(), awserr.Limited(o.HTTPClient)
			o.Protocol = protocol
		})
	}
	if c.STS != nil {
		c.STS = sts.New(c.STS.Options(), func(o *sts.Options) {
			o.APIOptions, o.Retryer, o.HTTPClient = with(o.APIOptions, "sts"), awserr.Retryer(), awserr.Limited(o.HTTPClient)
		})
	}
	if c.Scheduler != nil {
		c.Scheduler = scheduler.New(c.Scheduler.Options(), func(o *scheduler.Options) {
			o.APIOptions, o.Retryer, o.HTTPClient = with(o.APIOptions, "scheduler"), awserr.Retryer(), awserr.Limited(o.HTTPClient)
		})
	}
	return c
}

// bound bounds the calls of one service.
type bound struct {
	service string
	away    atomic.Pointer[awayError] // why it is not asked again
}

// awayError says that a service does not answer.
type awayError struct {
	service string
	err     error
}

func (e *awayError) Error() string { return fmt.Sprintf("%s does not answer: %v", e.service, e.err) }
func (e *awayError) Unwrap() error { return e.err }

var errTimeout = fmt.Errorf("nothing within %v", callTimeout)

// add adds to what a client does with each call, around the retries.
func (b *bound) add(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("sqsonce.Bound", b.call), middleware.Before)
}

func (b *bound) call(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput,
	middleware.Metadata, error) {
	if away := b.away.Load(); away != nil {
		return middleware.InitializeOutput{}, middleware.Metadata{}, away
	}
	if err := ctx.Err(); err != nil {
		return middleware.InitializeOutput{}, middleware.Metadata{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, callTimeout, errTimeout)
	defer cancel()
	out, md, err := next.HandleInitialize(ctx, in)
	if err == nil {
		return out, md, nil
	}
	switch {
	case context.Cause(ctx) == errTimeout:
		err = errTimeout
	case !awserr.Unsent(err) || ctx.Err() != nil:
		return out, md, err
	}
	away := &awayError{b.service, err}
	b.away.Store(away)
	return out, md, away
}
