package dynamooutbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/ddberror"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/sdkhttp"
	"github.com/sqsonce/sqsonce/internal/thaw"
)

// callTimeout limits a call with all its attempts: the SDK's default client waits without end for an answer.
const callTimeout = 10 * time.Second

var errNoAnswer = errors.New("the client returned neither an answer nor an error: correct the wrapper that was given to New")

// errAnswer says that an answer can't be DynamoDB's, so that it has no meaning.
var errAnswer = errors.New("the answer is not one to this request")

// caller makes the calls of a client, which may be the user's wrapper.
type caller struct {
	conns thaw.Conns
}

// method is a method of [Client].
type method[In, Out any] func(context.Context, *In, ...func(*dynamodb.Options)) (*Out, error)

// withEvidence makes an error of a call say whether DynamoDB has answered: a role that STS refuses says AccessDenied too, and
// for a moment.
func withEvidence(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, sdkhttp.Evidence)
	o.HTTPClient = sdkhttp.Whole(o.HTTPClient)
}

// call sends a request. Its result is never nil without an error, and a connection from before a freeze of the process is not
// used: see package thaw.
func call[In, Out any](ctx context.Context, c *caller, f method[In, Out], in *In) (out *Out, err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = c.conns.Do(ctx, func(ctx context.Context) error {
		return host.Contain(func() (err error) {
			if out, err = f(ctx, in, withEvidence); err == nil && out == nil {
				return errNoAnswer
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// explain names the operation, the limit and the table of an error. A refusal that no retry mends matches [outbox.ErrDenied].
func (o *Outbox) explain(op string, err error) error {
	if err == nil {
		return nil
	}
	op += ddberror.Limits(err)
	if denied(err) {
		return fmt.Errorf("%w: dynamooutbox: %s: table %s: %w", outbox.ErrDenied, op, o.table, err)
	}
	return fmt.Errorf("dynamooutbox: %s: table %s: %w", op, o.table, err)
}

// denied reports that the role may not do it, that the table's KMS key is not accessible, or that the table is not there.
// Credentials that have expired are not among it: they are refused for every operation, and new ones come.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
func denied(err error) bool {
	if sdkhttp.Unanswered(err) {
		return false
	}
	if _, missing := errors.AsType[*ddbtypes.ResourceNotFoundException](err); missing {
		return true
	}
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && (api.ErrorCode() == "AccessDeniedException" || api.ErrorCode() == "AccessDenied")
}

// throttled reports a refusal of the whole request for its rate.
func throttled(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return false
	}
	_, is := retry.DefaultThrottleErrorCodes[api.ErrorCode()]
	return is
}
