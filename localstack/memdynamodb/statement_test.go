package memdynamodb_test

import (
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
	for statement, want := range map[string]string{
		`SELECT * FROM "orders" WHERE id = 'a`:        "ValidationException: Statement wasn't well formed, can't be processed: Unterminated quote",
		`SELECT * FROM "orders" WHERE n = 2`:          "UnknownOperationException: memdynamodb does not implement a SELECT of more than one item",
		`UPDATE "orders" SET n = f(n) WHERE id = 'a'`: "ValidationException: Statement wasn't well formed, can't be processed: Invalid function name; function: f",
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
		o.Faults = fault.Plan{Rules: []fault.Rule{{Op: "BatchExecuteStatement", Nth: 1, Do: fault.FailEntries, Entries: []int{1}, Code: "InternalServerError"}}}
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
	putItem(t, c, "orders", item{"id": str("a")})
	got, _, err := batch(`INSERT INTO "orders" VALUE {'id':'a'}`, `INSERT INTO "orders" VALUE {'id':'b'}`)
	if err != nil {
		t.Fatal(err)
	}
	if codes := [2]string{code(got[0]), code(got[1])}; codes != [2]string{"DuplicateItem", "InternalServerError"} {
		t.Errorf("%v, want a fault of the second", codes)
	}
	failed, _, err := batch(`INSERT INTO "gone" VALUE {'id':'x'}`, `UPDATE "orders" SET n = 1 WHERE n = 2`, `INSERT INTO "orders" VALUE {'id':'x'}`, `INSERT INTO "orders" VALUE {'id':?}`)
	if err != nil {
		t.Fatal(err)
	}
	if codes := [4]string{code(failed[0]), code(failed[1]), code(failed[2]), code(failed[3])}; codes != [4]string{"ResourceNotFound", "ValidationError", "", "ValidationError"} {
		t.Errorf("wrong statements beside a right one: %v", codes)
	}
	got, _, err = batch(`SELECT * FROM "orders" WHERE id = 'a'`, `SELECT * FROM "orders" WHERE id = 'c'`)
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
