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

// decode reads an item written with single quotes.
func decode(t testing.TB, s string) attr.Map {
	t.Helper()
	var m attr.Map
	if err := m.UnmarshalJSON([]byte(strings.ReplaceAll(s, "'", `"`))); err != nil {
		t.Fatalf("item %s: %v", s, err)
	}
	return m
}

const sample = `{'id':{'S':'a'},'n':{'N':'5'},'s':{'S':'hello'},'b':{'B':'aGVsbG8='},'t':{'BOOL':true},'z':{'NULL':true},
	'l':{'L':[{'N':'1'},{'M':{'k':{'S':'v'}}}]},'m':{'M':{'x':{'N':'5'}}},'ss':{'SS':['p','q']},'ns':{'NS':['1','2']}}`
