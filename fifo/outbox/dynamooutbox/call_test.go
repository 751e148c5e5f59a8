package dynamooutbox

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce/fifo/outbox"
)

// A role that STS refuses for a moment has DynamoDB refuse nothing: the relay does not end.
func TestRefusedCredentialsAreNoDenial(t *testing.T) {
	t.Parallel()
	refused := clientOf(nil, "http://dynamodb.local")
	refused = dynamodb.New(refused.Options(), func(o *dynamodb.Options) {
		o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, &smithy.OperationError{ServiceID: "STS", Err: &smithy.GenericAPIError{Code: "AccessDenied"}}
		})
	})
	o, err := New(refused, testTable, "orders", source)
	if err != nil {
		t.Fatal(err)
	}
	e := outbox.Entry{Seq: 1, Source: source}
	e.ID, e.Group = "1", "g"
	if _, err := o.Delete(t.Context(), []outbox.Entry{e}); err == nil || errors.Is(err, outbox.ErrDenied) {
		t.Errorf("got %v, want an error without ErrDenied", err)
	}
}
