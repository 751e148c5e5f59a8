package dynamostore

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// What can be wrong with a table. A [*TableError] matches one of them.
var (
	ErrNoTable      = errors.New("there is no such table")
	ErrKeySchema    = errors.New("the table's key is not the string attribute id alone")
	ErrTTL          = errors.New("the table's TTL is not enabled on the attribute expiration")
	ErrAccessDenied = errors.New("access was refused")
)

// TableError says why the table, or with an Inbox one of the user's tables, cannot be used. No retry mends it.
type TableError struct {
	// Table is the store's table; a transaction's answer does not say which of its tables it is about.
	Table string
	// Problem is ErrNoTable, ErrKeySchema, ErrTTL or ErrAccessDenied.
	Problem error
	// Detail is what was found instead, if anything.
	Detail string
	// Err is DynamoDB's answer, if there was one.
	Err error
}

func (e *TableError) Error() string {
	s := fmt.Sprintf("dynamostore: table %s: %v", e.Table, e.Problem)
	if e.Detail != "" {
		s += " (" + e.Detail + ")"
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the problem and DynamoDB's answer.
func (e *TableError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Problem}
	}
	return []error{e.Problem, e.Err}
}

// accessCodes are the refusals of access that do not all come with the status 403.
var accessCodes = map[string]bool{
	"AccessDenied": true, "AccessDeniedException": true, "ExpiredToken": true, "ExpiredTokenException": true,
	"IncompleteSignature": true, "IncompleteSignatureException": true, "InvalidSignatureException": true,
	"MissingAuthenticationToken": true, "MissingAuthenticationTokenException": true, "SignatureDoesNotMatch": true,
	"UnrecognizedClientException": true,
}

// explain gives an operation's final error its type and its name.
func (s *Store) explain(op string, err error) error {
	problem := error(nil)
	api, isAPI := errors.AsType[smithy.APIError](err)
	response, _ := errors.AsType[*smithyhttp.ResponseError](err)
	switch {
	case err == nil:
		return nil
	case isMissing(err):
		problem = ErrNoTable
	case isAPI && accessCodes[api.ErrorCode()], response != nil && response.HTTPStatusCode() == http.StatusForbidden:
		problem = ErrAccessDenied
	// The one ValidationException that says something about the table. AWS has no code for it.
	case isAPI && api.ErrorCode() == "ValidationException" && strings.Contains(api.ErrorMessage(), "key element does not match the schema"):
		problem = ErrKeySchema
	}
	if problem != nil {
		return &TableError{Table: s.table, Problem: problem, Detail: op, Err: err}
	}
	return fmt.Errorf("dynamostore: %s: %w", op, err)
}

func isMissing(err error) bool {
	_, missing := errors.AsType[*ddbtypes.ResourceNotFoundException](err)
	return missing
}

// because is why a call was given up, with what its last attempt had met.
func because(reason, last error) error {
	if last == nil {
		return reason
	}
	return fmt.Errorf("%w: %w", reason, last)
}
