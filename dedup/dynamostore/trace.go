package dynamostore

import (
	"context"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// trace is what one attempt's way through the SDK shows: whether a request went at all, when, and the Date of the
// answer, be it a success or an error.
type trace struct {
	look         func() moment
	begun, went  bool
	sent         moment
	date         time.Time
	dateReceived bool
}

// single makes a call one attempt, and traces it. The SDK would send an acquire again without asking whether its lease
// is still ahead, would not retry a transaction conflict at all, and would hide that an earlier attempt of the call is
// unknown.
func (t *trace) single(o *dynamodb.Options) {
	o.Retryer = aws.NopRetryer{}
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		begin := middleware.InitializeMiddlewareFunc("dynamostore.begin", t.begin)
		if err := stack.Initialize.Add(begin, middleware.Before); err != nil {
			return err
		}
		// The last one before the transport: the request is made, has credentials and is signed.
		return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("dynamostore.send", t.send), middleware.After)
	})
}

func (t *trace) begin(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	t.begun = true
	return next.HandleInitialize(ctx, in)
}

func (t *trace) send(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	t.went, t.sent = true, t.look()
	out, md, err := next.HandleDeserialize(ctx, in)
	if response, ok := out.RawResponse.(*smithyhttp.Response); ok && response != nil {
		date, parseErr := http.ParseTime(response.Header.Get("Date"))
		t.date, t.dateReceived = date, parseErr == nil // without one the clocks go on from the last
	}
	return out, md, err
}

// unsent reports that no request can have reached DynamoDB. A client that does not pass the options on leaves no trace:
// then it cannot be said.
func (t *trace) unsent() bool { return t.begun && !t.went }
