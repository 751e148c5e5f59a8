package expr

import (
	"strings"
	"testing"
)

var keyTypes = map[string]string{"p": "S", "c": "N"}

func TestKeyConditionRefused(t *testing.T) {
	t.Parallel()
	values := decode(t, `{':p':{'S':'x'},':c':{'N':'3'}}`)
	for _, tt := range []struct{ src, want string }{
		{"", "empty"}, {"p", "Syntax error"}, {"p < :p", "Query key condition not supported"}, {"c = :c", "Query condition missed key schema element: p"}, {"p = :p AND p = :p", "must only contain one condition per key"}, {"p = :p AND c > :c AND c < :c", "one condition per key"},
		{"p = :p OR c = :c", "Invalid operator used in KeyConditionExpression: OR"}, {"NOT p = :p", "Invalid operator used in KeyConditionExpression: NOT"}, {"p = :p AND c <> :c", "Invalid operator used in KeyConditionExpression: <>"}, {"p = :p AND c IN (:c)", "IN"}, {"p = :p AND attribute_exists(c)", "attribute_exists"}, {"p = :p AND dog(c)", "dog"},
		{"p = :p AND begins_with(c, :c)", "begins_with"}, {"p = :p AND a < :c", "Query condition missed key schema element: c"}, {"p = :p AND a.b < :c", "nested"}, {"p = c", "only values"}, {":p = :c", "key"},
		{"p = :c", "Condition parameter type does not match schema type"}, {"p = :p AND c = :p", "Condition parameter type does not match schema type"}, {"((c = :c) AND ((p = :p)))", "redundant parentheses"}, {"p = :x", "attribute value: :x"},
	} {
		k, err := ParseKeyCondition(tt.src)
		if err == nil {
			_, err = k.Bind(&Env{Values: values}, "p", "c", keyTypes)
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.src, err, tt.want)
		}
	}
}
