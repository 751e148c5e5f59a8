package expr

import (
	"strings"
	"testing"
)

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
