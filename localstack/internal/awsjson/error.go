package awsjson

import "net/http"

// Error is an error answer of a service. Operations return it; anything else they return is an internal error.
type Error struct {
	// Status is the HTTP status. Default: 400.
	Status int
	// Code is the error's shape name, such as "QueueDoesNotExist" or "ConditionalCheckFailedException".
	Code string
	// QueryCode is the code that services which once spoke the Query protocol also send (x-amzn-query-error).
	QueryCode string
	Message   string
	// Fields are further members of the error's shape, such as DynamoDB's Item and CancellationReasons.
	Fields map[string]any
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

func (e *Error) status() int {
	if e.Status == 0 {
		return http.StatusBadRequest
	}
	return e.Status
}

func (e *Error) fault() string {
	if e.status() >= 500 {
		return "Receiver"
	}
	return "Sender"
}

// Invalid returns a 400 with the given code and message.
func Invalid(code, message string) *Error { return &Error{Code: code, Message: message} }
