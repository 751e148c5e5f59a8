package awserr

import (
	"errors"
	"fmt"
	"testing"

	"github.com/aws/smithy-go"
)

func TestErrors(t *testing.T) {
	t.Parallel()
	of := func(operation, code string) error {
		return fmt.Errorf("doctor: %w", &smithy.OperationError{ServiceID: "SQS", OperationName: operation,
			Err: &smithy.GenericAPIError{Code: code}})
	}
	for _, test := range []struct {
		err    error
		denied bool
		action string
	}{
		{of("SendMessage", "AccessDenied"), true, "sqs:SendMessage"},
		{of("DeleteMessageBatch", "AWS.SimpleQueueService.AccessDenied"), true, "sqs:DeleteMessage"},
		{of("TransactGetItems", "AccessDeniedException"), true, "sqs:GetItem"},
		{of("GetQueueUrl", "AWS.SimpleQueueService.NonExistentQueue"), false, "sqs:GetQueueUrl"},
		{errors.New("AccessDenied"), false, ""},
		{nil, false, ""},
	} {
		if denied, action := Denied(test.err), Action(test.err); denied != test.denied || action != test.action {
			t.Errorf("%v: %t, %q", test.err, denied, action)
		}
	}
}
