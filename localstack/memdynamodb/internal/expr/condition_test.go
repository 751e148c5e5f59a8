package expr

import (
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// decode reads an item written with single quotes.
func decode(t testing.TB, s string) attr.Map {
	t.Helper()
	m, err := attr.DecodeMap([]byte(strings.ReplaceAll(s, "'", `"`)))
	if err != nil {
		t.Fatalf("item %s: %v", s, err)
	}
	return m
}

const sample = `{'id':{'S':'a'},'n':{'N':'5'},'s':{'S':'hello'},'b':{'B':'aGVsbG8='},'t':{'BOOL':true},'z':{'NULL':true},
	'l':{'L':[{'N':'1'},{'M':{'k':{'S':'v'}}}]},'m':{'M':{'x':{'N':'5'}}},'ss':{'SS':['p','q']},'ns':{'NS':['1','2']}}`

const sampleValues = `{':five':{'N':'5.0'},':six':{'N':'6'},':hell':{'S':'hell'},':str':{'S':'5'},':bin':{'B':'aGVs'},':S':{'S':'S'},':L':{'S':'L'},
	':qp':{'SS':['q','p']},':one':{'N':'1'},':two':{'N':'2'},':p':{'S':'p'},':k':{'M':{'k':{'S':'v'}}},':true':{'BOOL':true},':null':{'NULL':true}}`

func TestConditionRefused(t *testing.T) {
	t.Parallel()
	values := decode(t, strings.TrimSuffix(sampleValues, "}")+`,':list':{'L':[]},':dog':{'S':'DOG'}}`)
	many := func(n int) string { return "n IN (" + strings.TrimSuffix(strings.Repeat("n2,", n), ",") + ")" }
	for _, tt := range []struct{ src, want string }{
		{"", "The expression can not be empty;"}, {"  ", "The expression can not be empty;"},
		{"n = ", `Syntax error; token: "<EOF>", near: "="`}, {"n", `Syntax error; token: "<EOF>", near: "n"`},
		{"n != :five", `Syntax error; token: "!", near: "n !="`}, {"n = :five AND", "Syntax error"}, {"(n = :five", "Syntax error"}, {"n = :five)", "Syntax error"},
		{"_n = :five", `token: "_"`}, {"n = 5", `token: "5"`}, {"n IN ()", "Syntax error"}, {"a[:five] = n", "Syntax error"}, {"a[x] = n", "Syntax error"}, {"# = n", "Syntax error"}, {"n = :", "Syntax error"},
		{"n == :five", "Syntax error"}, {"n BETWEEN :one", "Syntax error"}, {"AND n = :five", "Syntax error"}, {"n = :five n = :six", "Syntax error"}, {"a..b = n", "Syntax error"},
		{"((n = :five))", "The expression has redundant parentheses;"},
		{"status = :five", "Attribute name is a reserved keyword; reserved keyword: status"}, {"m.Value = :five", "reserved keyword: Value"}, {"owner = :five", "reserved keyword: owner"},
		{"#x = :five", "An expression attribute name used in the document path is not defined; attribute name: #x"},
		{"n = :nope", "An expression attribute value used in expression is not defined; attribute value: :nope"},
		{"dog(n)", "Invalid function name; function: dog"}, {"n = dog(n)", "Invalid function name; function: dog"}, {"ATTRIBUTE_EXISTS(n)", "Invalid function name; function: ATTRIBUTE_EXISTS"},
		{"size(n)", "The function is not allowed to be used this way in an expression; function: size"},
		{"attribute_exists(n) = :five", "not allowed to be used this way in an expression; function: attribute_exists"}, {"n = attribute_exists(n)", "not allowed to be used this way in an expression; function: attribute_exists"}, {"if_not_exists(n, n) = :five", "not allowed"},
		{"attribute_exists(:five)", "Operator or function requires a document path; operator or function: attribute_exists"},
		{"attribute_exists(n, s)", "Incorrect number of operands for operator or function; operator or function: attribute_exists, number of operands: 2"}, {"size(n, s) = n", "number of operands: 2"}, {"contains(n)", "number of operands: 1"},
		{"n < :list", "Incorrect operand type for operator or function; operator or function: <, operand type: L"}, {":true >= n", "operand type: BOOL"}, {"n BETWEEN :list AND :six", "operator or function: BETWEEN, operand type: L"},
		{"begins_with(n, :five)", "operator or function: begins_with, operand type: N"}, {"size(:five) = n", "operator or function: size, operand type: N"},
		{"attribute_type(n, :dog)", "Invalid attribute type name found; type: DOG, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}"}, {"attribute_type(n, s)", "attribute_type"}, {"attribute_type(n, :five)", "operand type: N"},
		{"n BETWEEN :six AND :five", "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; lower bound operand: AttributeValue: {N:6}, upper bound operand: AttributeValue: {N:5}"},
		{"n BETWEEN :five AND :str", "The BETWEEN operator requires same data type for lower and upper bounds"},
		{"n = n", "The first operand must be distinct from the remaining operands for this operator or function; operator: =, first operand: [n]"}, {"contains(m.x, m.x)", "operator: contains, first operand: [m, x]"},
		{many(101), "operator or function: IN"}, {strings.Repeat("NOT ", 301) + "n = s", "too many operators; operator count: 301"}, {strings.Repeat("(", 400) + "n = s", "too many operators"},
		{"((n)) = :five", "Syntax error"}, {"(n = :five", "Syntax error"}, {"(n) (= :five)", "Syntax error"}, {"(n, s) = :five", "Syntax error"}, {"()", "Syntax error"}, {")(", "Syntax error"},
		{"n = " + strings.Repeat("a", 4097), "Expression size has exceeded the maximum allowed size;  expression size: 4101"},
		{"a" + strings.Repeat(".a", 32) + " = n", "The document path has too many nesting elements; nesting levels: 33"}, {"a[99999999999999999999] = n", "List index"},
	} {
		c, err := ParseCondition(tt.src)
		if err == nil {
			err = c.Bind(&Env{Values: values})
		}
		if err == nil || !strings.HasPrefix(err.Error(), "Invalid ConditionExpression: ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.60s: got %v, want %q", tt.src, err, tt.want)
		}
	}
}
