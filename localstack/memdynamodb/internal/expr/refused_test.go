package expr

import (
	"strings"
	"testing"
)

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

func TestUpdateRefused(t *testing.T) {
	t.Parallel()
	values := decode(t, `{':n':{'N':'1'},':s':{'S':'x'},':l':{'L':[]},':ss':{'SS':['a']}}`)
	for _, tt := range []struct{ src, want string }{
		{"", "can not be empty"}, {"HELLO b = :n", `Syntax error; token: "HELLO"`}, {"SET b", "Syntax error"}, {"SET a = :n b = :n", "Syntax error"}, {"SET :n = :n", "Syntax error"}, {"SET a = :n,", "Syntax error"},
		{"SET a = :n SET b = :n", `The "SET" section can only be used once in an update expression;`}, {"REMOVE a SET b = :n REMOVE c", `The "REMOVE" section can only be used once`},
		{"SET a = :n + :n + :n", "Syntax error"}, {"SET a = (:n + :n) + :n", "Syntax error"}, {"SET a = (:n", "Syntax error"}, {"SET (a) = :n", "Syntax error"}, {"ADD a (:n)", "Syntax error"}, {"SET a = if_not_exists(a, :n + :n)", "Syntax error"}, {"ADD a b", "Syntax error"}, {"DELETE a", "Syntax error"},
		{"SET a = f(:n)", "Invalid function name; function: f"}, {"SET a = size(b)", "The function is not allowed in an update expression; function: size"},
		{"SET a = list_append(list_append(:l, :l), :l)", "The function is not allowed to be used this way in an expression; function: list_append"},
		{"SET a = list_append(:l)", "number of operands: 1"}, {"SET a = if_not_exists(:n, :n)", "Operator or function requires a document path; operator or function: if_not_exists"},
		{"SET a = list_append(:l, :s)", "operator or function: list_append, operand type: S"}, {"SET a = :s + :n", "operator or function: +, operand type: S"},
		{"ADD a :s", "Incorrect operand type for operator or function; operator: ADD, operand type: STRING"}, {"ADD a :l", "operator: ADD, operand type: LIST"}, {"DELETE a :n", "operator: DELETE, operand type: NUMBER"},
		{"SET a = :n, a = :s", "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a], path two: [a]"}, {"SET a.b = :n REMOVE a", "path one: [a, b], path two: [a]"}, {"SET a[1] = :n, a[1].b = :n", "overlap"},
		{"SET a.b = :n, a[1] = :n", "Two document paths conflict with each other"}, {"SET #a = :n, a = :s", "overlap"},
		{"SET status = :n", "reserved keyword: status"}, {"SET a = :nope", "attribute value: :nope"}, {"SET #nope = :n", "attribute name: #nope"},
		{"SET id = :n", "One or more parameter values were invalid: Cannot update attribute id. This attribute is part of the key"}, {"REMOVE id", "Cannot update attribute id"}, {"ADD id :n", "Cannot update attribute id"},
	} {
		u, err := ParseUpdate(tt.src)
		if err == nil {
			err = u.Bind(&Env{Names: map[string]string{"#a": "a"}, Values: values}, "id")
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.src, err, tt.want)
		}
	}
}

func TestPlaceholdersChecked(t *testing.T) {
	t.Parallel()
	c, err := ParseCondition("#a = :v OR #b = :w") // evaluation stops at the first, but all four are used
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ names, values, want string }{
		{"#a #b", ":v :w", ""},
		{"#a #b #c", ":v :w", "Value provided in ExpressionAttributeNames unused in expressions: keys: {#c}"},
		{"#a #b", ":v :w :y :x", "Value provided in ExpressionAttributeValues unused in expressions: keys: {:x, :y}"},
		{"#a #b no", ":v :w", `ExpressionAttributeNames contains invalid key: Syntax error; key: "no"`},
		{"#a #b", ":v :w :x-y", `ExpressionAttributeValues contains invalid key: Syntax error; key: ":x-y"`},
	} {
		e := &Env{Names: map[string]string{}}
		for _, n := range strings.Fields(tt.names) {
			e.Names[n] = "x"
		}
		for _, v := range strings.Fields(tt.values) {
			e.Values = e.Values.With(v, decode(t, `{'v':{'N':'1'}}`).Get("v"))
		}
		got := ""
		if err := e.Check(c); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s %s: got %q, want %q", tt.names, tt.values, got, tt.want)
		}
	}
}

func TestReservedWords(t *testing.T) {
	t.Parallel()
	if len(reserved) != 573 {
		t.Errorf("%d reserved words, want 573", len(reserved))
	}
	for word, want := range map[string]bool{"status": true, "OWNER": true, "Data": true, "ttl": true, "error": true, "id": false, "expiration": false, "attempts": false, "fence": false} {
		if Reserved(word) != want {
			t.Errorf("Reserved(%s) = %t", word, !want)
		}
	}
}
