package memdynamodb_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

func execute(t *testing.T, c *dynamodb.Client, statement string, params ...ddbtypes.AttributeValue) ([]map[string]ddbtypes.AttributeValue, error) {
	t.Helper()
	out, err := c.ExecuteStatement(t.Context(), &dynamodb.ExecuteStatementInput{Statement: &statement, Parameters: params, ReturnValuesOnConditionCheckFailure: "ALL_OLD"})
	if err != nil {
		return nil, err
	}
	return out.Items, nil
}

func TestStatements(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	run := func(statement string, params ...ddbtypes.AttributeValue) []map[string]ddbtypes.AttributeValue {
		t.Helper()
		got, err := execute(t, c, statement, params...)
		if err != nil {
			t.Errorf("%s: %v", statement, err)
		}
		return got
	}
	run(`INSERT INTO "orders" VALUE {'id': ?, 'n': 1.5, 'tags': <<'x','y'>>, 'l': [1, {'it''s': true}], 'status': 'new'}`, str("a"))
	_, err := execute(t, c, `INSERT INTO orders VALUE {'id': 'a'}`)
	if _, ok := errors.AsType[*ddbtypes.DuplicateItemException](err); !ok {
		t.Errorf("second INSERT: %v", err)
	}
	got := run(`SELECT n, l[0], "status" FROM "orders" WHERE id = 'a' AND n < 2`)
	if diff := cmp.Diff([]map[string]ddbtypes.AttributeValue{{"n": num("1.5"), "l": &ddbtypes.AttributeValueMemberL{Value: []ddbtypes.AttributeValue{num("1")}}, "status": str("new")}}, got, items); diff != "" {
		t.Error(diff)
	}
	if got := run(`SELECT * FROM "orders" WHERE id = ?`, str("missing")); len(got) != 0 {
		t.Errorf("SELECT of nothing: %v", got)
	}
	got = run(`UPDATE "orders" SET n = n + 1 SET "status" = ? REMOVE l, tags WHERE "id" = ? AND "status" = 'new' AND (owner IS MISSING OR owner IN ['x', ?]) RETURNING ALL NEW *`, str("done"), str("a"), str("y"))
	want := item{"id": str("a"), "n": num("2.5"), "status": str("done")}
	if diff := cmp.Diff([]map[string]ddbtypes.AttributeValue{want}, got, items); diff != "" {
		t.Error(diff)
	}
	_, err = execute(t, c, `UPDATE "orders" SET n = 0 WHERE id = 'a' AND "status" = 'new'`)
	if e, ok := errors.AsType[*ddbtypes.ConditionalCheckFailedException](err); !ok || cmp.Diff(want, item(e.Item), items) != "" {
		t.Errorf("failed WHERE: %v", err)
	}
	_, err = execute(t, c, `DELETE FROM "orders" WHERE "status" = 'new' AND id = 'a' AND n > 0`) // the first of two is false
	wantRefusal(t, "half a condition", err, "ConditionalCheckFailedException: ")
	_, err = execute(t, c, `UPDATE "orders" SET n = 0 WHERE id = 'missing'`)
	wantRefusal(t, "UPDATE of nothing", err, "ConditionalCheckFailedException: ")
	wantItem(t, c, "missing", nil)
	wantItem(t, c, "a", want)
	if got := run(`DELETE FROM "orders" WHERE id = 'a' RETURNING ALL OLD *`); len(got) != 1 || get(t, c, "a") != nil {
		t.Errorf("DELETE: %v", got)
	}
	run(`DELETE FROM "orders" WHERE id = 'a'`)
}

// A name that begins with # or : is a name, not a placeholder.
func TestStatementOnOddNames(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	for _, statement := range []string{
		`INSERT INTO "orders" VALUE {'id': 'a', '#0': 'x', '#1': {':0': 1}}`,
		`UPDATE "orders" SET "#0" = 'y' SET "#1".":0" = 2 WHERE "id" = 'a' AND "#0" = 'x' AND "#1".":0" = 1`,
	} {
		if _, err := execute(t, c, statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
	got, err := execute(t, c, `SELECT "#0" FROM "orders" WHERE "id" = 'a' AND "#1".":0" = 2`)
	if diff := cmp.Diff([]map[string]ddbtypes.AttributeValue{{"#0": str("y")}}, got, items); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
}

func TestStatementsRefused(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	_, err := execute(t, c, `DELETE FROM "orders" WHERE id = ?`, str("a"), str("b"))
	wantRefusal(t, "two parameters for one", err, "ValidationException: Number of parameters in request and statement don't match.")
	for statement, want := range map[string]string{
		`DROP TABLE "orders"`:                         "ValidationException: Statement wasn't well formed, can't be processed: Syntax error",
		`SELECT * FROM "orders" WHERE id = 'a`:        "ValidationException: Statement wasn't well formed, can't be processed: Unterminated quote",
		`SELECT * FROM "orders" WHERE id = ?`:         "ValidationException: Number of parameters in request and statement don't match.",
		`SELECT * FROM "orders" WHERE n = 2`:          "UnknownOperationException: memdynamodb does not implement a SELECT of more than one item",
		`DELETE FROM "orders" WHERE n = 1`:            "ValidationException: Where clause does not contain a mandatory equality on all key attributes",
		`UPDATE "orders" SET n = 1`:                   "ValidationException: Where clause does not contain a mandatory equality on all key attributes",
		`UPDATE "orders" SET id = 'b' WHERE id = 'a'`: "ValidationException: One or more parameter values were invalid: Cannot update attribute id.",
		`UPDATE "orders" SET n = f(n) WHERE id = 'a'`: "ValidationException: Statement wasn't well formed, can't be processed: Invalid function name; function: f",
		`INSERT INTO "orders" VALUE {'n': 1}`:         "ValidationException: One or more parameter values were invalid: Missing the key id in the item",
		`INSERT INTO "gone" VALUE {'id': 'a'}`:        "ResourceNotFoundException: ",
		`DELETE FROM "orders" WHERE id = 'a' LIMIT 1`: "ValidationException: Statement wasn't well formed",
		`DELETE FROM "orders" WHERE id = 'a' AND n !`: "ValidationException: Statement wasn't well formed",
		`SELECT * FROM "orders" WHERE id = 1`:         "ValidationException: The provided key element does not match the schema",
	} {
		_, err := execute(t, c, statement)
		wantRefusal(t, statement, err, want)
	}
}

func TestBatchStatements(t *testing.T) {
	t.Parallel()
	_, c := start(t, func(o *memdynamodb.Options) {
		o.Faults = fault.Plan{Rules: []fault.Rule{{Op: "BatchExecuteStatement", Nth: 2, Do: fault.FailEntries, Entries: []int{1}, Code: "InternalServerError"}}}
	})
	batch := func(statements ...string) ([]ddbtypes.BatchStatementResponse, float64, error) {
		in := &dynamodb.BatchExecuteStatementInput{ReturnConsumedCapacity: "TOTAL"}
		for _, s := range statements {
			in.Statements = append(in.Statements, ddbtypes.BatchStatementRequest{Statement: &s})
		}
		out, err := c.BatchExecuteStatement(t.Context(), in)
		if err != nil {
			return nil, 0, err
		}
		return out.Responses, aws.ToFloat64(out.ConsumedCapacity[0].CapacityUnits), nil
	}
	code := func(r ddbtypes.BatchStatementResponse) string {
		if r.Error == nil {
			return ""
		}
		return string(r.Error.Code)
	}
	putItem(t, c, "orders", item{"id": str("b")})
	for i, want := range [][3]string{{"", "DuplicateItem", "ConditionalCheckFailed"}, {"DuplicateItem", "InternalServerError", "ConditionalCheckFailed"}} {
		got, units, err := batch(`INSERT INTO "orders" VALUE {'id':'a'}`, `INSERT INTO "orders" VALUE {'id':'b'}`, `UPDATE "orders" SET n = 1 WHERE id = 'c'`)
		if err != nil {
			t.Fatal(err)
		}
		if codes := [3]string{code(got[0]), code(got[1]), code(got[2])}; codes != want {
			t.Errorf("call %d: %v, want %v", i+1, codes, want)
		}
		if i == 0 && units != 3 {
			t.Errorf("%g units, want 3", units)
		}
	}
	failed, _, err := batch(`INSERT INTO "gone" VALUE {'id':'x'}`, `UPDATE "orders" SET n = 1 WHERE n = 2`, `INSERT INTO "orders" VALUE {'id':'x'}`, `INSERT INTO "orders" VALUE {'id':?}`)
	if err != nil {
		t.Fatal(err)
	}
	if codes := [4]string{code(failed[0]), code(failed[1]), code(failed[2]), code(failed[3])}; codes != [4]string{"ResourceNotFound", "ValidationError", "", "ValidationError"} {
		t.Errorf("wrong statements beside a right one: %v", codes)
	}
	got, _, err := batch(`SELECT * FROM "orders" WHERE id = 'a'`, `SELECT * FROM "orders" WHERE id = 'c'`)
	if err != nil || got[0].Item == nil || got[1].Item != nil {
		t.Errorf("reads: %+v, %v", got, err)
	}
	_, _, err = batch(`DELETE FROM "orders" WHERE id = 'a'`, `UPDATE "orders" SET n = 1 WHERE id = 'b'`, `DELETE FROM "orders" WHERE id = 'a'`)
	wantRefusal(t, "one key twice", err, "ValidationException: Provided list of item keys contains duplicates")
	_, _, err = batch(`DELETE FROM "orders" WHERE id = 'a'`, `SELECT * FROM "orders" WHERE id = 'b'`)
	wantRefusal(t, "reads and writes", err, "ValidationException: ")
	if get(t, c, "a") == nil {
		t.Error("a refused call deleted an item")
	}
}

// TestBatchStatementsAnswer is the answer to a batch byte for byte. A wrong parameter fails its own statement only.
func TestBatchStatementsAnswer(t *testing.T) {
	t.Parallel()
	srv, c := start(t)
	putItem(t, c, "orders", item{"id": str("<b>"), "n": num("1")})
	for _, tt := range []struct{ request, want string }{
		{`{"Statements":[{"Statement":"INSERT INTO orders VALUE {'id':?}","Parameters":[{"S":"a"}]},{"Statement":"INSERT INTO orders VALUE {'id':?}","Parameters":[{"N":"x"}]},` +
			`{"Statement":"UPDATE orders SET n = 2 WHERE id = '<b>' AND n = 2","ReturnValuesOnConditionCheckFailure":"ALL_OLD"}],"ReturnConsumedCapacity":"TOTAL"}`,
			`{"Responses":[{"TableName":"orders"},{"Error":{"Code":"ValidationError","Message":"The parameter cannot be converted to a numeric value: x"}},` +
				`{"Error":{"Code":"ConditionalCheckFailed","Message":"The conditional request failed","Item":{"id":{"S":"\u003cb\u003e"},"n":{"N":"1"}}},"TableName":"orders"}],` +
				`"ConsumedCapacity":[{"TableName":"orders","CapacityUnits":2}]}`},
		{`{"Statements":[{"Statement":"SELECT * FROM orders WHERE id = 'a'"},{"Statement":"SELECT * FROM orders WHERE id = 'gone'"}],"ReturnConsumedCapacity":"INDEXES"}`,
			`{"Responses":[{"TableName":"orders","Item":{"id":{"S":"a"}}},{"TableName":"orders"}],"ConsumedCapacity":[{"TableName":"orders","CapacityUnits":1,"Table":{"CapacityUnits":1}}]}`},
	} {
		if _, _, got := send(t, srv, "BatchExecuteStatement", tt.request); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.request, got, tt.want)
		}
	}
}
