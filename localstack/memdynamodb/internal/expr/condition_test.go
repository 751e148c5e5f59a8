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

func TestCondition(t *testing.T) {
	t.Parallel()
	item := decode(t, sample)
	values := decode(t, sampleValues)
	for _, tt := range []struct {
		src  string
		want bool
	}{
		{"n = :five", true}, {":five = n", true}, {"n <> :five", false}, {"n < :six", true}, {"n >= :six", false}, {"n <= :five", true}, {"n > :one", true},
		{"n = :str", false}, {"n <> :str", true}, {"n < :str", false}, {"n > :str", false}, // types differ
		{"gone = :five", false}, {"gone <> :five", true}, {"gone < :five", false}, {"gone = alsogone", false}, {"gone <> alsogone", true}, {"NOT gone < :five", true},
		{"ss = :qp", true}, {"t = :true", true}, {"z = :null", true}, {"z <> :true", true},
		{"m.x = n", true}, {"l[0] = :one", true}, {"l[1].k = :p", false}, {"l[1] = :k", true}, {"l[2] = :one", false}, {"m[0] = :one", false}, {"l.x = :one", false}, {"s.x = :one", false},
		{"n BETWEEN :five AND :six", true}, {"n between :six and :six", false}, {"gone BETWEEN :five AND :six", false}, {"n BETWEEN l[0] AND :six AND s = :hell", false},
		{"n IN (:one, :five)", true}, {"n in (:one,:str)", false}, {"gone IN (gonetoo)", false},
		{"attribute_exists(z)", true}, {"attribute_exists(m.x)", true}, {"attribute_exists(m.y)", false}, {"attribute_not_exists(id)", false}, {"attribute_not_exists ( gone )", true},
		{"attribute_type(s, :S)", true}, {"attribute_type(l, :L)", true}, {"attribute_type(n, :S)", false}, {"attribute_type(gone, :S)", false},
		{"begins_with(s, :hell)", true}, {"begins_with(b, :bin)", true}, {"begins_with(n, :hell)", false}, {"begins_with(gone, :hell)", false},
		{"contains(s, :hell)", true}, {"contains(ss, :p)", true}, {"contains(ns, :two)", true}, {"contains(l, :k)", true}, {"contains(s, :five)", false}, {"contains(ns, :str)", false}, {"contains(gone, :p)", false},
		{"size(s) = n", true}, {"size(l) = :two", true}, {"size(ss) >= :two", true}, {"size(m) = :one", true}, {"size(b) < :six", true}, {"size(n) = :one", false}, {"size(gone) < :six", false}, {"size(s) = :str", false},
		// NOT binds before AND, AND before OR.
		{"n = :five OR n = :one AND n = :six", true}, {"(n = :five OR n = :one) AND n = :six", false},
		{"NOT n = :six AND n = :five", true}, {"NOT (n = :six AND n = :five)", true}, {"NOT n = :five OR n = :five", true}, {"NOT NOT n = :five", true},
		{"(n) = (:five)", true}, {"((n) = :five)", true}, {"NOT (n) < :five AND (s) IN ((:p), (:hell))", false}, {"(size(s)) BETWEEN (:five) AND (:six)", true}, {"contains((ss), (:p))", true}, {"(n = :one OR (n) = :five)", true},
		{"n = :one AND n = :six OR n = :five", true}, {"n = :six AND (n = :one OR n = :five)", false}, {"nOt n = :one aNd n = :five oR n = :six", true},
	} {
		c, err := ParseCondition(tt.src)
		if err != nil {
			t.Errorf("%s: %v", tt.src, err)
			continue
		}
		e := &Env{Values: values}
		if err := c.Bind(e); err != nil {
			t.Errorf("%s: %v", tt.src, err)
			continue
		}
		if got := c.Eval(e, item); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.src, got, tt.want)
		}
	}
}

func TestConditionWithoutItem(t *testing.T) {
	t.Parallel()
	e := &Env{Values: decode(t, sampleValues)}
	for src, want := range map[string]bool{"attribute_not_exists(id)": true, "attribute_exists(id)": false, "n = :one": false, "n <> :one": true} {
		c, err := ParseCondition(src)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Eval(e, nil); got != want {
			t.Errorf("%s of no item: got %t, want %t", src, got, want)
		}
	}
}

func TestConditionNames(t *testing.T) {
	t.Parallel()
	item := decode(t, `{'a.b':{'N':'1'},'status':{'M':{'or':{'N':'2'}}}}`)
	e := &Env{Names: map[string]string{"#dot": "a.b", "#s": "status", "#o": "or"}, Values: decode(t, sampleValues)}
	c, err := ParseCondition("#dot = :one AND #s.#o = :two")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Bind(e); err != nil {
		t.Fatal(err)
	}
	if !c.Eval(e, item) {
		t.Error("a placeholder is one name, dots and all, and may stand for a reserved word")
	}
}

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
