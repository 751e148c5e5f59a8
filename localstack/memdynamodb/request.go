package memdynamodb

import (
	"encoding/json"

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
