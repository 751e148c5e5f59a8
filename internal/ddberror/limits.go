// Package ddberror reads errors of DynamoDB.
package ddberror

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// What the check of a table of records finds.
var (
	ErrKeySchema = errors.New("the table's key is not the string attribute id alone")
	ErrTTL       = errors.New("the table's TTL is not enabled on the attribute expiration")
)

// Limits names the limits that throttled a request, each with its table or index, for the text before the error's own: that says
// that something is throttled, and not which limit. It is empty for any other error.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ThrottlingReason.html
func Limits(err error) string {
	var reasons []types.ThrottlingReason
	if e, ok := errors.AsType[*types.ThrottlingException](err); ok {
		reasons = e.ThrottlingReasons
	} else if e, ok := errors.AsType[*types.ProvisionedThroughputExceededException](err); ok {
		reasons = e.ThrottlingReasons
	} else if e, ok := errors.AsType[*types.RequestLimitExceeded](err); ok {
		reasons = e.ThrottlingReasons
	}
	text := ""
	for _, r := range reasons {
		if r.Reason != nil {
			text += fmt.Sprintf(": %s of %s", *r.Reason, aws.ToString(r.Resource))
		}
	}
	return text
}
