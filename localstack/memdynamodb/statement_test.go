package memdynamodb_test

import (
	"strings"
	"testing"

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

func TestBatchStatementFault(t *testing.T) {
	t.Parallel()
	srv, c := start(t, func(o *memdynamodb.Options) {
		o.Faults = fault.Plan{Rules: []fault.Rule{{Op: "BatchExecuteStatement", Nth: 1, Do: fault.FailEntries, Entries: []int{1}, Code: "InternalServerError"}}}
	})
	_, _, got := send(t, srv, "BatchExecuteStatement", `{"Statements":[{"Statement":"INSERT INTO orders VALUE {'id':'a'}"},{"Statement":"INSERT INTO orders VALUE {'id':'b'}"}]}`)
	if !strings.HasPrefix(got, `{"Responses":[{"TableName":"orders"},{"Error":{"Code":"InternalServerError"`) {
		t.Error(got)
	}
	wantItem(t, c, "a", item{"id": str("a")})
	wantItem(t, c, "b", nil)
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
