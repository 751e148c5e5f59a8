package expr

import (
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// FuzzExpressions: no text makes a parser, a binding or an evaluation panic.
func FuzzExpressions(f *testing.F) {
	for _, s := range []string{
		"attribute_not_exists(id) OR (#s = :n AND n < :n)", "n BETWEEN :n AND :n AND NOT (contains(s, :n))", "size(s) IN (:n, n)", "l[0].m[1].#s <> :n",
		"SET a = if_not_exists(a, :n) + :n, b = list_append(:n, l) REMOVE c[0] ADD d :n DELETE e :n", "id = :n AND begins_with(n, :n)", "a, b.c, d[0]", "((a", "SET", "#", ":", "a[", "NOT NOT",
	} {
		f.Add(s)
	}
	item := decode(f, sample)
	e := &Env{Names: map[string]string{"#s": "status"}, Values: decode(f, `{':n':{'N':'1'},':s':{'S':'x'},':l':{'L':[]},':x':{'SS':['a']}}`)}
	for _, s := range []string{`INSERT INTO "t" VALUE {'id':?,'l':[1,-2.5,{'a':true}],'s':<<'a','b'>>}`, `UPDATE "t" SET a=a+1 SET "b".c=list_append(?,[]) REMOVE d[0] WHERE id=? AND (n<5 OR s IS NOT MISSING) RETURNING ALL NEW *`, `SELECT a,b.c FROM t WHERE id='x' AND n IN [1,2]`, `DELETE FROM t WHERE id=?`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		if c, err := parseCondition("ConditionExpression", src); err == nil && c.Bind(e) == nil {
			c.Eval(e, item)
			c.Eval(e, nil)
		}
		if k, err := parseKeyCondition(src); err == nil {
			if r, err := k.Bind(e, "id", "n", map[string]string{"id": "S", "n": "N"}); err == nil {
				r.Sort.Matches(item.Get("n"))
			}
		}
		if u, err := parseUpdate(src); err == nil && u.Bind(e, "id") == nil {
			if now, err := u.Apply(e, item); err == nil {
				Project(u.Paths(e), now)
			}
		}
		for n := range 3 { // parameters
			s, err := ParseStatement(src, []attr.Value{attr.String("x"), attr.List{}}[:n])
			if err != nil {
				continue
			}
			if _, c, err := s.Split("id"); err == nil && c != nil {
				c.Eval(&s.Env, item)
			}
			if s.Update != nil && s.Update.Bind(&s.Env, "id") == nil {
				if now, err := s.Update.Apply(&s.Env, item); err == nil {
					Project(s.Update.Paths(&s.Env), now)
				}
			}
		}
		if p, err := parseProjection(src); err == nil {
			if paths, err := p.Bind(e); err == nil {
				Project(paths, item)
			}
		}
	})
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
