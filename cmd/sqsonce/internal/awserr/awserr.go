// Package awserr says what AWS's errors mean for a person at the command line.
package awserr

import (
	"errors"
	"slices"
	"strings"

	"github.com/aws/smithy-go"
)

// deniedCodes are those of AWS's errors that end with other credentials or another policy.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html
var deniedCodes = []string{
	"AccessDenied", "AccessDeniedException", "AuthorizationError", "ExpiredToken", "ExpiredTokenException", "IncompleteSignature",
	"InvalidClientTokenId", "InvalidSignatureException", "KMS.AccessDeniedException", "KmsAccessDenied", "MissingAuthenticationToken",
	"MissingAuthenticationTokenException", "NotAuthorized", "OptInRequired", "RequestExpired", "SignatureDoesNotMatch",
	"UnrecognizedClientException",
}

// Denied reports whether AWS has refused the credentials, or what they may do.
func Denied(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && slices.Contains(deniedCodes, strings.TrimPrefix(api.ErrorCode(), "AWS.SimpleQueueService."))
}

// Action returns the action of the call that failed, as policies name it: "sqs:SendMessage". It is "" where the error is of no call.
func Action(err error) string {
	op, ok := errors.AsType[*smithy.OperationError](err)
	if !ok {
		return ""
	}
	return service(op) + ":" + ActionOf(op.OperationName)
}

// service is the service of a call, as policies name it.
func service(op *smithy.OperationError) string { return strings.ToLower(op.ServiceID) }

// ActionOf returns the action of an operation: one of SQS covers its batches too, and a transaction needs those of its parts.
func ActionOf(operation string) string {
	if operation == "TransactGetItems" {
		return "GetItem"
	}
	return strings.TrimSuffix(operation, "Batch")
}
