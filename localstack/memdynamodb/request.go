package memdynamodb

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/expr"
)

// placeholders are the members of every request with expressions.
type placeholders struct {
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues attr.Map
}

func (p *placeholders) env() *expr.Env {
	return &expr.Env{Names: p.ExpressionAttributeNames, Values: p.ExpressionAttributeValues}
}

// check refuses placeholders that are wrong, or unused, or there without an expression.
func (p *placeholders) check(expressions ...expr.Expression) error {
	for _, m := range []struct {
		name         string
		given, empty bool
	}{
		{"ExpressionAttributeNames", p.ExpressionAttributeNames != nil, len(p.ExpressionAttributeNames) == 0},
		{"ExpressionAttributeValues", p.ExpressionAttributeValues != nil, len(p.ExpressionAttributeValues) == 0},
	} {
		switch {
		case m.given && len(expressions) == 0:
			return validation("%s can only be specified when using expressions", m.name)
		case m.given && m.empty:
			return validation("%s must not be empty", m.name)
		}
	}
	return p.env().Check(expressions...)
}

// validCapacity checks ReturnConsumedCapacity.
func validCapacity(asked string) error {
	switch asked {
	case "", "NONE", "TOTAL", "INDEXES":
		return nil
	}
	return constraint(asked, "returnConsumedCapacity", "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]")
}

// validOnFailure checks ReturnValuesOnConditionCheckFailure.
func validOnFailure(asked string) error {
	switch asked {
	case "", "NONE", "ALL_OLD":
		return nil
	}
	return constraint(asked, "returnValuesOnConditionCheckFailure", "Member must satisfy enum value set: [ALL_OLD, NONE]")
}

// validMetrics checks ReturnItemCollectionMetrics.
func validMetrics(asked string) error {
	switch asked {
	case "", "NONE":
		return nil
	case "SIZE":
		return unimplemented("ReturnItemCollectionMetrics")
	}
	return constraint(asked, "returnItemCollectionMetrics", "Member must satisfy enum value set: [SIZE, NONE]")
}

// validRange checks a number that may be left out.
func validRange(n *int, member string, least, most int) error {
	switch {
	case n == nil:
		return nil
	case *n < least:
		return constraint(*n, member, fmt.Sprintf("Member must have value greater than or equal to %d", least))
	case *n > most:
		return constraint(*n, member, fmt.Sprintf("Member must have value less than or equal to %d", most))
	}
	return nil
}

// validLength checks a text that may be left out, and must not be empty.
func validLength(text *string, member string, longest int) error {
	switch {
	case text != nil && *text == "":
		return constraint("", member, "Member must have length greater than or equal to 1")
	case text != nil && len(*text) > longest:
		return constraint(*text, member, fmt.Sprintf("Member must have length less than or equal to %d", longest))
	}
	return nil
}

const invalidParameters = "One or more parameter values were invalid: "

func validation(format string, args ...any) *awsjson.Error {
	return awsjson.Invalid("ValidationException", fmt.Sprintf(format, args...))
}

// brokenError refuses members that break rules of the API's own model. texts are AWS's, one for each rule.
type brokenError struct{ texts []string }

// maxBroken is how many texts AWS returns. Recorded: architect/dynalite, test/scan.js, "for incorrect attributes", where the eleventh is
// missing.
const maxBroken = 10

func (e *brokenError) Error() string { return e.Unwrap().Error() }

// Unwrap returns the error as AWS returns it.
func (e *brokenError) Unwrap() error {
	shown := e.texts[:min(len(e.texts), maxBroken)]
	plural := "s"
	if len(shown) == 1 {
		plural = ""
	}
	return validation("%d validation error%s detected: %s", len(shown), plural, strings.Join(shown, "; "))
}

// enveloped returns an error that a PutItem, an UpdateItem or a DeleteItem has before it looks at the table, as AWS returns it since
// 2026. Recorded: paritysuite/dynamodb-conformance, error-messages/valueLayers.test.ts and deleteItem.test.ts. nubo-db/dynoxide, pull
// request 152: a value without a type, or with two, is refused as before.
func enveloped(err error) error {
	if _, broken := err.(*brokenError); broken || errors.Is(err, attr.ErrNoType) || errors.Is(err, attr.ErrTwoTypes) {
		return err
	}
	e, ok := toAWS(err).(*awsjson.Error)
	if !ok || e.Code != "ValidationException" {
		return err
	}
	return &brokenError{[]string{e.Message}}
}

// constraint refuses a member that breaks a rule of the API's own model. A nil value is a member that is missing.
func constraint(value any, member, rule string) error {
	shown := "null"
	if value != nil {
		shown = fmt.Sprintf("'%v'", value)
	}
	return &brokenError{[]string{fmt.Sprintf("Value %s at '%s' failed to satisfy constraint: %s", shown, member, rule)}}
}

// constraints is one error of all that break a [constraint], as AWS returns it. Where none does, it is the first error.
func constraints(errs ...error) error {
	all := &brokenError{}
	var first error
	for _, err := range errs {
		if broken, ok := err.(*brokenError); ok {
			all.texts = append(all.texts, broken.texts...)
		} else if first == nil {
			first = err
		}
	}
	if len(all.texts) > 0 {
		return all
	}
	return first
}

// onlyConstraints leaves out an error that AWS finds later.
func onlyConstraints(err error) error {
	if _, ok := err.(*brokenError); ok {
		return err
	}
	return nil
}

func required(member string) error { return constraint(nil, member, "Member must not be null") }

func tableNotFound() *awsjson.Error {
	return awsjson.Invalid("ResourceNotFoundException", "Requested resource not found")
}

func unimplemented(what string) *awsjson.Error { return awsjson.Unimplemented(serviceName, what) }

// toAWS gives an error the code that it has in DynamoDB. Errors of other kinds stay as they are, and the client gets
// InternalServerError.
func toAWS(err error) error {
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
	return err
}
