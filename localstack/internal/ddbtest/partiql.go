package ddbtest

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/internal/suite"
)

// execute runs a statement. "T" in it is replaced by the case's table.
func (x *exam) execute(statement string, parameters ...any) ([]item, error) {
	return x.executeWith(&dynamodb.ExecuteStatementInput{}, statement, parameters...)
}

func (x *exam) executeWith(in *dynamodb.ExecuteStatementInput, statement string, parameters ...any) ([]item, error) {
	in.Statement = aws.String(x.named(statement))
	for _, p := range parameters {
		in.Parameters = append(in.Parameters, value(p))
	}
	out, err := x.client().ExecuteStatement(x.ctx, in)
	if err != nil {
		return nil, err
	}
	return out.Items, nil
}

func (x *exam) named(statement string) string {
	return strings.Replace(statement, `"T"`, `"`+x.table+`"`, 1)
}

// run expects a statement to succeed, and to return these items.
func (x *exam) run(statement string, parameters []any, want ...m) {
	got, err := x.execute(statement, parameters...)
	if err != nil {
		x.fatalf("%s: got error %v, want success", statement, err)
	}
	x.list(statement, got, want...)
}

// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.html
var statementCases = []testCase{
	{name: "statement/insert", keys: "id:S", run: func(x *exam) {
		x.run(`INSERT INTO "T" VALUE {'id': ?, 'v': ?, 'status': 'x', 'l': [1, 'y', null], 'm': {'kid': true}, 's': <<'a', 'b'>>}`, l{"a", 1})
		x.stored(m{"id": "a"}, m{"id": "a", "v": 1, "status": "x", "l": l{1, "y", nil}, "m": m{"kid": true}, "s": ss{"a", "b"}})
	}},
	{name: "statement/insert where an item is", keys: "id:S", run: func(x *exam) {
		x.fill(m{"id": "a", "v": 1})
		_, err := x.execute(`INSERT INTO "T" VALUE {'id': 'a'}`)
		x.refused(err, "DuplicateItemException")
		x.stored(m{"id": "a"}, m{"id": "a", "v": 1})
	}},
	{name: "statement/update", keys: "id:S pos:N", run: func(x *exam) {
		x.fill(m{"id": "a", "pos": 1, "v": 1, "w": 1})
		x.run(`UPDATE "T" SET v=? WHERE id=? AND pos=?`, l{2, "a", 1})
		x.stored(m{"id": "a", "pos": 1}, m{"id": "a", "pos": 1, "v": 2, "w": 1})
	}},
	{name: "statement/update, documented clauses", keys: "id:S", run: func(x *exam) {
		x.fill(m{"id": "a", "v": 1, "w": 1, "l": l{1}, "m": m{"kid": 1}, "s": ss{"x", "y"}})
		x.run(`UPDATE "T" SET v=? SET m.kid=? REMOVE w WHERE id=?`, l{2, 3, "a"})
		x.run(`UPDATE "T" SET l=list_append(l, ?) WHERE id=?`, l{l{2}, "a"})
		x.run(`UPDATE "T" SET v=v+? WHERE id=?`, l{5, "a"})
		x.stored(m{"id": "a"}, m{"id": "a", "v": 7, "l": l{1, 2}, "m": m{"kid": 3}, "s": ss{"x", "y"}})
	}},
	{name: "statement/update of no item", keys: "id:S", run: func(x *exam) {
		_, err := x.execute(`UPDATE "T" SET v=1 WHERE id='a'`)
		x.refused(err, conditionFailed)
		x.stored(m{"id": "a"}, nil)
	}},
	{name: "statement/update with a condition", keys: "id:S", run: func(x *exam) {
		x.fill(m{"id": "a", "v": 1, "owner": "me"})
		_, err := x.execute(`UPDATE "T" SET v=2 WHERE id=? AND "owner"=?`, "a", "you")
		x.refused(err, conditionFailed)
		x.run(`UPDATE "T" SET v=2 WHERE id=? AND "owner"=? AND v < 5`, l{"a", "me"})
		x.stored(m{"id": "a"}, m{"id": "a", "v": 2, "owner": "me"})
	}},
	{name: "statement/quoted reserved words", keys: "id:S", run: func(x *exam) {
		x.fill(m{"id": "a", "status": "INPROGRESS", "owner": "me"})
		x.run(`UPDATE "T" SET "status"=? WHERE "id"=? AND "owner"=?`, l{"COMPLETED", "a", "me"})
		x.stored(m{"id": "a"}, m{"id": "a", "status": "COMPLETED", "owner": "me"})
	}},
	{name: "statement/a failed condition's item", keys: "id:S", run: func(x *exam) {
		x.fill(m{"id": "a", "v": 1})
		_, err := x.executeWith(&dynamodb.ExecuteStatementInput{ReturnValuesOnConditionCheckFailure: allOld}, `UPDATE "T" SET w=1 WHERE id='a' AND v=2`)
		x.refused(err, conditionFailed)
		x.same("the item", failedItem(err), m{"id": "a", "v": 1})
		_, err = x.executeWith(&dynamodb.ExecuteStatementInput{ReturnValuesOnConditionCheckFailure: "DOG"}, `UPDATE "T" SET w=1 WHERE id='a'`)
		x.refused(err, invalid)
	}},
	{name: "statement/returning", keys: "id:S", run: func(x *exam) {
		x.fill(m{"id": "a", "v": 1, "w": 1})
		x.run(`UPDATE "T" SET v=2 WHERE id='a' RETURNING ALL OLD *`, nil, m{"id": "a", "v": 1, "w": 1})
		x.run(`UPDATE "T" SET v=3 WHERE id='a' RETURNING ALL NEW *`, nil, m{"id": "a", "v": 3, "w": 1})
		x.run(`UPDATE "T" SET v=4 WHERE id='a' RETURNING MODIFIED OLD *`, nil, m{"v": 3})
		x.run(`UPDATE "T" SET v=5 WHERE id='a' RETURNING MODIFIED NEW *`, nil, m{"v": 5})
		x.run(`DELETE FROM "T" WHERE id='a' RETURNING ALL OLD *`, nil, m{"id": "a", "v": 5, "w": 1})
		x.stored(m{"id": "a"}, nil)
	}},
	{name: "statement/select", keys: "id:S", run: func(x *exam) {
		x.fill(m{"id": "a", "v": 1, "m": m{"kid": 2}})
		x.run(`SELECT * FROM "T" WHERE id='a'`, nil, m{"id": "a", "v": 1, "m": m{"kid": 2}})
		x.run(`SELECT v FROM "T" WHERE id=?`, l{"a"}, m{"v": 1})
		x.run(`SELECT * FROM "T" WHERE id='none'`, nil)
		x.run(`SELECT v FROM "T" WHERE id='a' AND v=1`, nil, m{"v": 1})
		x.run(`SELECT v FROM "T" WHERE id='a' AND v=2`, nil)
	}},
	{name: "statement/delete", keys: "id:S", run: func(x *exam) {
		x.fill(m{"id": "a", "v": 1})
		_, err := x.execute(`DELETE FROM "T" WHERE id='a' AND v=2`)
		x.refused(err, conditionFailed)
		x.run(`DELETE FROM "T" WHERE id='a' AND v=1`, nil)
		x.stored(m{"id": "a"}, nil)
	}},
	{name: "statement/conditions", keys: "id:S", run: func(x *exam) {
		x.fill(m{"id": "a", "v": 5, "s": "hello", "l": l{1}})
		for condition, want := range map[string]bool{
			"v = 5": true, "v <> 5": false, "v < 6": true, "v >= 6": false, "v BETWEEN 1 AND 5": true, "v IN [1, 5]": true, "v IN [1]": false,
			"gone IS MISSING": true, "v IS MISSING": false, "v IS NOT MISSING": true, "begins_with(s, 'he')": true, "contains(s, 'll')": true, "size(s) = 5": true, "NOT v = 6": true,
			"(v = 6 OR s = 'hello')": true, "v = 5 AND s = 'x'": false, "attribute_type(s, 'S')": true, "l[0] = 1": true,
		} {
			got := suite.Get(x.execute(`SELECT id FROM "T" WHERE id='a' AND ` + condition))
			if (len(got) == 1) != want {
				x.fatalf("%s: got %d items, want it to hold: %t", condition, len(got), want)
			}
		}
	}},
	// nubo-db/dynamodb-conformance, error-messages/partiqlIndexQualifier.test.ts; paritysuite/dynamodb-conformance,
	// partiql/executeStatementIndex.test.ts. AWS, ql-functions.exists: "can only be used in transactions".
	{name: "statement/of an index, refused", run: func(x *exam) {
		x.useIndexed(everything)
		_, err := x.execute(`SELECT * FROM "T"."no_index" WHERE id='a'`)
		x.refused(err, invalid, "The table does not have the specified index")
		_, err = x.execute(`SELECT * FROM "T"."by_owner"."more" WHERE id='a'`)
		x.refused(err, invalid, "A path may contain at most 2 components in the FROM clause")
		_, err = x.execute(`EXISTS (SELECT * FROM "T" WHERE id='a')`)
		x.refused(err, invalid)
		const text = "Select statements within BatchExecuteStatement must specify the primary key in the where clause."
		for i, r := range suite.Get(x.executeBatch(x.statement(`SELECT * FROM "T"."by_owner" WHERE owner='a'`), x.statement(`SELECT * FROM "T" WHERE v=1`))) {
			if x.failed(r, "ValidationError"); aws.ToString(r.Error.Message) != text {
				x.fatalf("statement %d: got %q", i, aws.ToString(r.Error.Message))
			}
		}
	}},
	{name: "statement/no table", run: func(x *exam) {
		x.table = x.newName()
		for _, s := range []string{`INSERT INTO "T" VALUE {'id': 'a'}`, `UPDATE "T" SET v=1 WHERE id='a'`, `DELETE FROM "T" WHERE id='a'`, `SELECT * FROM "T" WHERE id='a'`} {
			_, err := x.execute(s)
			x.refused(err, notFound)
		}
	}},
}

func refusedStatementCases() []testCase {
	var all []testCase
	for _, c := range []struct {
		statement  string
		parameters l
	}{
		{`HELLO`, nil}, {`INSERT INTO "T"`, nil}, {`INSERT INTO "T" VALUE {'id' 'a'}`, nil}, {`INSERT INTO "T" VALUE {'v': 1}`, nil}, {`INSERT INTO "T" VALUE {'id': 1}`, nil},
		{`UPDATE "T" SET v=1`, nil}, {`UPDATE "T" SET v=1 WHERE v=1`, nil}, {`UPDATE "T" SET v=1 WHERE id > 'a'`, nil}, {`UPDATE "T" SET v=1 WHERE id='a' OR id='b'`, nil}, {`UPDATE "T" SET id='b' WHERE id='a'`, nil}, {`UPDATE "T" WHERE id='a'`, nil},
		{`DELETE FROM "T"`, nil}, {`DELETE FROM "T" WHERE v=1`, nil}, {`SELECT * FROM "T" WHERE id=`, nil},
		{`SELECT * FROM "T" WHERE id=?`, nil}, {`SELECT * FROM "T" WHERE id=?`, l{"a", "b"}}, {`DELETE FROM "T" WHERE id='a' garbage`, nil},
	} {
		all = append(all, testCase{name: fmt.Sprint("refused statement/", c.statement, " ", c.parameters), keys: "id:S", run: func(x *exam) {
			_, err := x.execute(c.statement, c.parameters...)
			x.refused(err, invalid)
		}})
	}
	return all
}

// executeBatch returns the item of each statement, or the code of its error.
func (x *exam) executeBatch(requests ...ddbtypes.BatchStatementRequest) ([]ddbtypes.BatchStatementResponse, error) {
	out, err := x.client().BatchExecuteStatement(x.ctx, &dynamodb.BatchExecuteStatementInput{Statements: requests})
	if err != nil {
		return nil, err
	}
	equal(x, "responses", len(out.Responses), len(requests))
	return out.Responses, nil
}

func (x *exam) statement(s string, parameters ...any) ddbtypes.BatchStatementRequest {
	r := ddbtypes.BatchStatementRequest{Statement: aws.String(x.named(s))}
	for _, p := range parameters {
		r.Parameters = append(r.Parameters, value(p))
	}
	return r
}

// failed expects the error of one statement of a batch.
func (x *exam) failed(r ddbtypes.BatchStatementResponse, code ddbtypes.BatchStatementErrorCodeEnum) {
	if r.Error == nil || r.Error.Code != code {
		x.fatalf("got error %v, want %s", r.Error, code)
	}
}

var batchStatementCases = []testCase{
	{name: "batch statement/each its own answer", keys: "id:S", run: func(x *exam) {
		x.fill(m{"id": "there", "v": 1}, m{"id": "mine", "owner": "me"}, m{"id": "yours", "owner": "you"})
		got := suite.Get(x.executeBatch(
			x.statement(`INSERT INTO "T" VALUE {'id': ?}`, "new"),
			x.statement(`INSERT INTO "T" VALUE {'id': ?}`, "there"),
			x.statement(`UPDATE "T" SET v=? WHERE id=? AND "owner"=?`, 1, "mine", "me"),
			x.statement(`UPDATE "T" SET v=? WHERE id=? AND "owner"=?`, 1, "yours", "me"),
			x.statement(`UPDATE "T" SET v=? WHERE id=?`, 1, "none"),
		))
		x.failed(got[1], ddbtypes.BatchStatementErrorCodeEnumDuplicateItem)
		x.failed(got[3], ddbtypes.BatchStatementErrorCodeEnumConditionalCheckFailed)
		x.failed(got[4], ddbtypes.BatchStatementErrorCodeEnumConditionalCheckFailed)
		for _, i := range []int{0, 2} {
			if got[i].Error != nil {
				x.fatalf("statement %d: got error %v, want success", i, *got[i].Error.Message)
			}
		}
		x.stored(m{"id": "new"}, m{"id": "new"})
		x.stored(m{"id": "there"}, m{"id": "there", "v": 1})
		x.stored(m{"id": "mine"}, m{"id": "mine", "owner": "me", "v": 1})
		x.stored(m{"id": "yours"}, m{"id": "yours", "owner": "you"})
	}},
	{name: "batch statement/reads", keys: "id:S", run: func(x *exam) {
		x.fill(m{"id": "a", "v": 1}, m{"id": "b", "v": 2})
		got := suite.Get(x.executeBatch(x.statement(`SELECT v FROM "T" WHERE id='b'`), x.statement(`SELECT * FROM "T" WHERE id='none'`), x.statement(`SELECT * FROM "T" WHERE id='a'`)))
		x.same("the first", got[0].Item, m{"v": 2})
		x.same("the second", got[1].Item, nil)
		x.same("the third", got[2].Item, m{"id": "a", "v": 1})
	}},
	{name: "batch statement/a failed condition's item", keys: "id:S", run: func(x *exam) {
		x.fill(m{"id": "a", "v": 1})
		r := x.statement(`UPDATE "T" SET w=1 WHERE id='a' AND v=2`)
		r.ReturnValuesOnConditionCheckFailure = allOld
		got := suite.Get(x.executeBatch(r))
		x.failed(got[0], ddbtypes.BatchStatementErrorCodeEnumConditionalCheckFailed)
		x.same("the item", got[0].Error.Item, m{"id": "a", "v": 1})
	}},
	{name: "batch statement/25 statements", keys: "id:S", run: func(x *exam) {
		var all []ddbtypes.BatchStatementRequest
		for i := range 26 {
			all = append(all, x.statement(`INSERT INTO "T" VALUE {'id': ?}`, fmt.Sprint(i)))
		}
		_, err := x.executeBatch(all...)
		x.refused(err, invalid)
		x.stored(m{"id": "0"}, nil)
		suite.Get(x.executeBatch(all[:25]...))
		x.stored(m{"id": "24"}, m{"id": "24"})
	}},
	{name: "batch statement/reads and writes", keys: "id:S", run: func(x *exam) {
		_, err := x.executeBatch(x.statement(`INSERT INTO "T" VALUE {'id': 'a'}`), x.statement(`SELECT * FROM "T" WHERE id='b'`))
		x.refused(err, invalid)
		x.stored(m{"id": "a"}, nil)
	}},
	{name: "batch statement/one item twice", keys: "id:S", run: func(x *exam) {
		_, err := x.executeBatch(x.statement(`INSERT INTO "T" VALUE {'id': 'a'}`), x.statement(`INSERT INTO "T" VALUE {'id': 'b'}`), x.statement(`UPDATE "T" SET v=1 WHERE id='a'`))
		x.refused(err, invalid)
		x.stored(m{"id": "b"}, nil)
	}},
	{name: "batch statement/a statement that is wrong fails alone", keys: "id:S", run: func(x *exam) {
		got := suite.Get(x.executeBatch(x.statement(`INSERT INTO "T" VALUE {'id': 'a'}`), x.statement(`INSERT INTO "T" VALUE {'v': 1}`), x.statement(`INSERT INTO "`+x.newName()+`" VALUE {'id': 'a'}`)))
		x.failed(got[1], ddbtypes.BatchStatementErrorCodeEnumValidationError)
		x.failed(got[2], ddbtypes.BatchStatementErrorCodeEnumResourceNotFound)
		x.stored(m{"id": "a"}, m{"id": "a"})
	}},
	{name: "batch statement/none", run: func(x *exam) {
		_, err := x.client().BatchExecuteStatement(x.ctx, &dynamodb.BatchExecuteStatementInput{Statements: []ddbtypes.BatchStatementRequest{}})
		x.refused(err, invalid, "1 validation error detected: Value '[]' at 'statements' failed to satisfy constraint: Member must have length greater than or equal to 1")
	}},
}
