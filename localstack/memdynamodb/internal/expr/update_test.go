package expr

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

func TestUpdate(t *testing.T) {
	t.Parallel()
	values := decode(t, `{':n':{'N':'3'},':s':{'S':'x'},':l':{'L':[{'S':'y'}]},':set':{'SS':['b','c']},':ns':{'NS':['2']},':m':{'M':{}}}`)
	for _, tt := range []struct{ src, item, want string }{
		{"SET a = :n", `{}`, `{'a':{'N':'3'}}`},
		{"SET a = a + :n, b = :n - a", `{'a':{'N':'0.5'}}`, `{'a':{'N':'3.5'},'b':{'N':'2.5'}}`},
		{"SET a = b, b = a", `{'a':{'N':'1'},'b':{'S':'x'}}`, `{'a':{'S':'x'},'b':{'N':'1'}}`}, // all read the item as it was
		{"SET a = (a + :n), b = (:n) - (a), c = ((a) + :n), d = (:s), e = list_append((:l), (:l))", `{'a':{'N':'1'}}`, `{'a':{'N':'4'},'b':{'N':'2'},'c':{'N':'4'},'d':{'S':'x'},'e':{'L':[{'S':'y'},{'S':'y'}]}}`},
		{"REMOVE a SET b = a", `{'a':{'N':'1'}}`, `{'b':{'N':'1'}}`},
		{"SET a = if_not_exists(a, :n)", `{'a':{'N':'1'}}`, `{'a':{'N':'1'}}`},
		{"SET a = if_not_exists(b, if_not_exists(c, :n)) + :n", `{}`, `{'a':{'N':'6'}}`},
		{"SET a = list_append(a, :l), b = list_append(:l, a)", `{'a':{'L':[{'N':'1'}]}}`, `{'a':{'L':[{'N':'1'},{'S':'y'}]},'b':{'L':[{'S':'y'},{'N':'1'}]}}`},
		{"SET a = list_append(if_not_exists(a, :l), :l)", `{}`, `{'a':{'L':[{'S':'y'},{'S':'y'}]}}`},
		{"SET a.b = :n, a.c.d = :s REMOVE a.x", `{'a':{'M':{'x':{'N':'1'},'c':{'M':{}}}}}`, `{'a':{'M':{'b':{'N':'3'},'c':{'M':{'d':{'S':'x'}}}}}}`},
		{"SET a[1] = :n", `{'a':{'L':[{'N':'1'},{'N':'2'}]}}`, `{'a':{'L':[{'N':'1'},{'N':'3'}]}}`},
		{"SET a[9] = :s, a[5] = :n", `{'a':{'L':[]}}`, `{'a':{'L':[{'N':'3'},{'S':'x'}]}}`}, // beyond the end: appended, by index
		{"REMOVE a[0], a[2] SET a[1] = :s", `{'a':{'L':[{'N':'0'},{'N':'1'},{'N':'2'},{'N':'3'}]}}`, `{'a':{'L':[{'S':'x'},{'N':'3'}]}}`},
		{"REMOVE a[7], b, c.d", `{'a':{'L':[]},'c':{'M':{}}}`, `{'a':{'L':[]},'c':{'M':{}}}`},
		{"ADD a :n, b :n", `{'a':{'N':'-1'}}`, `{'a':{'N':'2'},'b':{'N':'3'}}`},
		{"ADD a :set, b :set", `{'a':{'SS':['a','b']}}`, `{'a':{'SS':['a','b','c']},'b':{'SS':['b','c']}}`},
		{"ADD a.b :n", `{'a':{'M':{}}}`, `{'a':{'M':{'b':{'N':'3'}}}}`},
		{"DELETE a :set, b :set, c :ns", `{'a':{'SS':['a','b']},'b':{'SS':['b']}}`, `{'a':{'SS':['a']}}`}, // an empty set goes
		{"set a = :m remove b add c :n delete d :set", `{'b':{'N':'1'}}`, `{'a':{'M':{}},'c':{'N':'3'}}`},
	} {
		item := decode(t, tt.item)
		before := string(appendMap(item))
		got, err := applyUpdate(t, tt.src, &Env{Values: values}, item)
		if err != nil {
			t.Errorf("%s: %v", tt.src, err)
			continue
		}
		if diff := cmp.Diff(string(appendMap(decode(t, tt.want))), string(appendMap(got))); diff != "" {
			t.Errorf("%s of %s: %s", tt.src, tt.item, diff)
		}
		if after := string(appendMap(item)); after != before {
			t.Errorf("%s changed the old item itself: %s", tt.src, after)
		}
	}
}

func TestUpdateFails(t *testing.T) {
	t.Parallel()
	values := decode(t, `{':n':{'N':'1'},':l':{'L':[]},':set':{'SS':['b']},':big':{'N':'9E125'}}`)
	for _, tt := range []struct {
		src, item string
		want      error
	}{
		{"SET a = b", `{}`, errMissing}, {"SET a = b + :n", `{}`, errMissing}, {"SET a = list_append(b, :l)", `{}`, errMissing}, {"SET x = :n, y = x", `{}`, errMissing},
		{"SET a = a + :n", `{'a':{'S':'x'}}`, errType}, {"SET a = list_append(a, :l)", `{'a':{'N':'1'}}`, errType}, {"ADD a :n", `{'a':{'S':'x'}}`, errType}, {"ADD a :set", `{'a':{'NS':['1']}}`, errType}, {"DELETE a :set", `{'a':{'N':'1'}}`, errType},
		{"SET a.b = :n", `{}`, errPath}, {"SET a.b = :n", `{'a':{'L':[]}}`, errPath}, {"SET a[0] = :n", `{'a':{'M':{}}}`, errPath}, {"SET a[0] = :n", `{}`, errPath}, {"SET a[3].b = :n", `{'a':{'L':[]}}`, errPath}, {"REMOVE a.b", `{'a':{'S':'x'}}`, errPath}, {"REMOVE c.d", `{}`, errPath}, {"REMOVE b[0]", `{}`, errPath},
		{"ADD a :big", `{'a':{'N':'9E125'}}`, attr.ErrOverflow},
	} {
		_, err := applyUpdate(t, tt.src, &Env{Values: values}, decode(t, tt.item))
		if err == nil || err.Error() != tt.want.Error() {
			t.Errorf("%s of %s: got %v, want %v", tt.src, tt.item, err, tt.want)
		}
	}
}

func applyUpdate(t *testing.T, src string, e *Env, item attr.Map) (attr.Map, error) {
	t.Helper()
	u, err := ParseUpdate(src)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	if err := u.Bind(e); err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	return u.Apply(e, item)
}

func appendMap(m attr.Map) []byte { return attr.Append(nil, m) }

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
