package memsqs

import (
	"fmt"
	"net/http"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

// shape is how AWS sends an error: the HTTP status and, in a header, the code of the old Query protocol. The SDK for Go
// finds the error's type by the name of the shape. Its ErrorCode returns the query code.
type shape struct {
	status int
	query  string
}

const namespace = "AWS.SimpleQueueService."

// shapes are the errors of SQS's API reference, by name, and errors common to all of AWS.
var shapes = map[string]shape{
	"BatchEntryIdsNotDistinct":          {http.StatusBadRequest, namespace + "BatchEntryIdsNotDistinct"},
	"BatchRequestTooLong":               {http.StatusBadRequest, namespace + "BatchRequestTooLong"},
	"EmptyBatchRequest":                 {http.StatusBadRequest, namespace + "EmptyBatchRequest"},
	"InvalidAddress":                    {http.StatusNotFound, "InvalidAddress"},
	"InvalidAttributeName":              {http.StatusBadRequest, "InvalidAttributeName"},
	"InvalidAttributeValue":             {http.StatusBadRequest, "InvalidAttributeValue"},
	"InvalidBatchEntryId":               {http.StatusBadRequest, namespace + "InvalidBatchEntryId"},
	"InvalidIdFormat":                   {http.StatusBadRequest, "InvalidIdFormat"},
	"InvalidMessageContents":            {http.StatusBadRequest, "InvalidMessageContents"},
	"InvalidParameterValueException":    {http.StatusBadRequest, "InvalidParameterValue"},
	"InvalidSecurity":                   {http.StatusForbidden, "InvalidSecurity"},
	"KmsAccessDenied":                   {http.StatusBadRequest, "KMS.AccessDeniedException"},
	"KmsDisabled":                       {http.StatusBadRequest, "KMS.DisabledException"},
	"KmsInvalidKeyUsage":                {http.StatusBadRequest, "KMS.InvalidKeyUsageException"},
	"KmsInvalidState":                   {http.StatusBadRequest, "KMS.InvalidStateException"},
	"KmsNotFound":                       {http.StatusBadRequest, "KMS.NotFoundException"},
	"KmsOptInRequired":                  {http.StatusForbidden, "KMS.OptInRequired"},
	"KmsThrottled":                      {http.StatusBadRequest, "KMS.ThrottlingException"},
	"MessageNotInflight":                {http.StatusBadRequest, namespace + "MessageNotInflight"},
	"MissingRequiredParameterException": {http.StatusBadRequest, "MissingParameter"},
	"OverLimit":                         {http.StatusForbidden, "OverLimit"},
	"PurgeQueueInProgress":              {http.StatusForbidden, namespace + "PurgeQueueInProgress"},
	"QueueDeletedRecently":              {http.StatusBadRequest, namespace + "QueueDeletedRecently"},
	"QueueDoesNotExist":                 {http.StatusBadRequest, namespace + "NonExistentQueue"},
	"QueueNameExists":                   {http.StatusBadRequest, "QueueAlreadyExists"},
	"ReceiptHandleIsInvalid":            {http.StatusNotFound, "ReceiptHandleIsInvalid"},
	"RequestThrottled":                  {http.StatusForbidden, "RequestThrottled"},
	"ResourceNotFoundException":         {http.StatusNotFound, "ResourceNotFoundException"},
	"SerializationException":            {http.StatusBadRequest, ""},
	"TooManyEntriesInBatchRequest":      {http.StatusBadRequest, namespace + "TooManyEntriesInBatchRequest"},
	"UnsupportedOperation":              {http.StatusBadRequest, namespace + "UnsupportedOperation"},
	"AccessDeniedException":             {http.StatusForbidden, "AccessDenied"},
	"InternalFailure":                   {http.StatusInternalServerError, ""},
	"ServiceUnavailable":                {http.StatusServiceUnavailable, ""},
	"ThrottlingException":               {http.StatusBadRequest, "Throttling"},
}

func newError(name, message string) *awsjson.Error {
	return &awsjson.Error{Status: shapes[name].status, Code: name, QueryCode: shapes[name].query, Message: message}
}

func invalidParameter(format string, args ...any) *awsjson.Error {
	return newError("InvalidParameterValueException", fmt.Sprintf(format, args...))
}

func invalidValue(value any, parameter, reason string) *awsjson.Error {
	return invalidParameter("Value %v for parameter %s is invalid. Reason: %s", value, parameter, reason)
}

func missingParameter(name string) *awsjson.Error {
	return newError("MissingRequiredParameterException", "The request must contain the parameter "+name+".")
}

func queueDoesNotExist() *awsjson.Error {
	return newError("QueueDoesNotExist", "The specified queue does not exist.")
}

func invalidHandle(handle string) *awsjson.Error {
	return newError("ReceiptHandleIsInvalid", fmt.Sprintf("The input receipt handle %q is not a valid receipt handle.", handle))
}

func invalidAttributeName(name string) *awsjson.Error {
	return newError("InvalidAttributeName", "Unknown Attribute "+name+".")
}

func invalidAttributeValue(name string) *awsjson.Error {
	return newError("InvalidAttributeValue", "Invalid value for the parameter "+name+".")
}
