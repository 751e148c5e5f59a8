package memdynamodb

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/expr"
)

const invalidParameters = "One or more parameter values were invalid: "

func validation(format string, args ...any) *awsjson.Error {
	return awsjson.Invalid("ValidationException", fmt.Sprintf(format, args...))
}

// constraint refuses a member of the request that breaks the API's own model.
func constraint(value any, member, rule string) *awsjson.Error {
	shown := "null"
	if value != nil {
		shown = fmt.Sprintf("'%v'", value)
	}
	return validation("1 validation error detected: Value %s at '%s' failed to satisfy constraint: %s", shown, member, rule)
}

func required(member string) *awsjson.Error {
	return constraint(nil, member, "Member must not be null")
}

func tableNotFound() *awsjson.Error {
	return awsjson.Invalid("ResourceNotFoundException", "Requested resource not found")
}

// unimplemented refuses a part of DynamoDB that this server does not have, as DynamoDB refuses an operation it does not
// know: anything else would be a guess that a test believes.
func unimplemented(what string) *awsjson.Error {
	return awsjson.Invalid("UnknownOperationException", "memdynamodb does not implement "+what)
}

// answerError gives every error the code AWS gives it.
func answerError(err error) error {
	if e, ok := errors.AsType[*awsjson.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*expr.Error](err); ok {
		return validation("%s", e.Message)
	}
	if e, ok := errors.AsType[*attr.InvalidError](err); ok {
		return validation("%s", e.Message)
	}
	if e, ok := errors.AsType[*attr.SyntaxError](err); ok {
		return awsjson.Invalid("SerializationException", e.Message)
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return awsjson.Invalid("SerializationException", fmt.Sprintf("%s value cannot be converted to %s", e.Value, e.Type))
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return awsjson.Invalid("SerializationException", "")
	}
	return err
}
