package expr

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// preparedStatements are texts of statements, right and wrong.
var preparedStatements = []string{
	`INSERT INTO "t" VALUE {'id': ?, 'l': [1, ?, {'a': ?}], 'm': {'x': <<'a','b'>>, 'y': ?}, 'c': 'constant'}`, `INSERT INTO t VALUE {}`, `INSERT INTO t VALUE {'a': 1, 'a': ?}`,
	`INSERT INTO t VALUE {?: 1}`, `INSERT INTO t VALUE {'s': <<?, ?>>}`, `INSERT INTO t VALUE {'s': <<'a', ?>>}`, `INSERT INTO t VALUE {'s': <<'a', [?]>>}`,
	`UPDATE "t" SET "status"=? WHERE "id"=? AND "owner"=?`, `UPDATE t SET a = list_append(?, [?]), "#b" = if_not_exists("#b", ?) REMOVE c[0] WHERE ? = id AND "#b" <> ? RETURNING ALL NEW *`,
	`DELETE FROM t WHERE id = ? AND n BETWEEN ? AND 5 AND attribute_type(n, ?)`, `SELECT a, "#b".c FROM "#t" WHERE id = 'is it?' AND n IN [?, ?]`, `SELECT * FROM t WHERE "?" = ? AND a = '?'`,
	`DELETE FROM t WHERE id = ? AND`, `DELETE FROM t WHERE id = ? AND n = 'x`, `DELETE FROM t`, `?`, ``, `SELECT * FROM "" WHERE id = ?`,
}

var preparedParams = []attr.Value{attr.String("x"), attr.Number("1"), attr.List{attr.String("y")}, attr.StringSet{"z"}, attr.Map{}, attr.Null{}, attr.String("S")}

// A statement that is parsed before its parameters are known is equal to one that is parsed with them, and has the same
// error.
func TestPreparedStatements(t *testing.T) {
	t.Parallel()
	for _, src := range preparedStatements {
		for n := range preparedParams {
			for from := range preparedParams {
				var params []attr.Value
				for i := range n {
					params = append(params, preparedParams[(from+i)%len(preparedParams)])
				}
				sameStatement(t, src, params)
			}
		}
	}
}

// FuzzStatements does the same for any text.
func FuzzStatements(f *testing.F) {
	for _, src := range preparedStatements {
		f.Add(src, 0)
	}
	f.Fuzz(func(t *testing.T, src string, from int) {
		for n := range min(strings.Count(src, "?"), 10) + 2 {
			var params []attr.Value
			for i := range n {
				params = append(params, preparedParams[(max(from, 0)%len(preparedParams)+i)%len(preparedParams)])
			}
			sameStatement(t, src, params)
		}
	})
}

func sameStatement(t *testing.T, src string, params []attr.Value) {
	t.Helper()
	got, err := ParseStatement(src, params)
	want, wantErr := parseStatement(src, &parameters{values: params})
	if fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Fatalf("%s with %v: got error %v, want %v", src, params, err, wantErr)
	}
	if err != nil {
		return
	}
	if want.Verb == "INSERT" && reflect.DeepEqual(got.Env, Env{Names: want.Env.Names}) {
		want.Env.Values = nil // an INSERT evaluates nothing
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s with %v:\n got %+v %+v\nwant %+v %+v", src, params, got, got.Env, want, want.Env)
	}
}

// Statements of one text have their own parameters.
func TestPreparedStatementsAreApart(t *testing.T) {
	t.Parallel()
	for _, src := range []string{`INSERT INTO t VALUE {'id': ?, 'l': [?], 'm': {'x': ?}}`, `UPDATE t SET a = [?], b = ? WHERE id = ?`} {
		parse := func(text string) Statement {
			return must.Get(ParseStatement(src, []attr.Value{attr.String(text), attr.String(text), attr.String(text)}))(t)
		}
		first := parse("first")
		parse("second")
		if want := parse("first"); !reflect.DeepEqual(first, want) {
			t.Errorf("%s: got %+v %+v after another was parsed, want %+v %+v", src, first, first.Env, want, want.Env)
		}
	}
}

// TestStatementsAreCached: only right statements with parameters are cached, if their parse does not depend on these.
func TestStatementsAreCached(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]bool{`DELETE FROM t WHERE id = ?`: true, `DELETE FROM t WHERE id = ? AND`: false, `DELETE FROM t WHERE id = 'a'`: false, `INSERT INTO t VALUE {?: 1}`: false} {
		_, _ = ParseStatement(src, []attr.Value{attr.String("a")})
		statements.mu.RLock()
		_, ok := statements.entries[src]
		statements.mu.RUnlock()
		if ok != want {
			t.Errorf("%s: cached is %t, want %t", src, ok, want)
		}
	}
}
