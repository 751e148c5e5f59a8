package memdynamodb

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/expr"
)

// placeholders are the members that every request with expressions has.
type placeholders struct {
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues attr.Map
}

func (p *placeholders) env() *expr.Env {
	return &expr.Env{Names: p.ExpressionAttributeNames, Values: p.ExpressionAttributeValues}
}

// check refuses placeholders that are wrong, unused, or given without an expression.
func (p *placeholders) check(expressions ...expr.Expression) error {
	for _, given := range []struct {
		member       string
		given, empty bool
	}{
		{"ExpressionAttributeNames", p.ExpressionAttributeNames != nil, len(p.ExpressionAttributeNames) == 0},
		{"ExpressionAttributeValues", p.ExpressionAttributeValues != nil, len(p.ExpressionAttributeValues) == 0},
	} {
		switch {
		case given.given && len(expressions) == 0:
			return validation("%s can only be specified when using expressions", given.member)
		case given.given && given.empty:
			return validation("%s must not be empty", given.member)
		}
	}
	return p.env().Check(expressions...)
}

// legacy are members that expressions have replaced.
type legacy struct {
	Expected, AttributeUpdates, ConditionalOperator, AttributesToGet, KeyConditions, QueryFilter, ScanFilter json.RawMessage
}

func (l *legacy) refuse() error {
	for _, m := range []struct {
		name  string
		value json.RawMessage
	}{
		{"Expected", l.Expected}, {"AttributeUpdates", l.AttributeUpdates}, {"ConditionalOperator", l.ConditionalOperator},
		{"AttributesToGet", l.AttributesToGet}, {"KeyConditions", l.KeyConditions}, {"QueryFilter", l.QueryFilter}, {"ScanFilter", l.ScanFilter},
	} {
		if m.value != nil && string(m.value) != "null" {
			return unimplemented("the legacy parameter " + m.name)
		}
	}
	return nil
}

func validCapacity(asked string) error {
	switch asked {
	case "", "NONE", "TOTAL", "INDEXES":
		return nil
	}
	return constraint(asked, "returnConsumedCapacity", "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]")
}

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
