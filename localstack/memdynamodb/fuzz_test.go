package memdynamodb_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// FuzzRequests: no body makes an operation panic or answer with anything but a result or an error of AWS's shape.
func FuzzRequests(f *testing.F) {
	for _, s := range []string{
		`PutItem {"TableName":"orders","Item":{"id":{"S":"a"},"n":{"N":"1"}},"ConditionExpression":"attribute_not_exists(id)"}`,
		`UpdateItem {"TableName":"orders","Key":{"id":{"S":"a"}},"UpdateExpression":"SET n = if_not_exists(n, :v) + :v","ExpressionAttributeValues":{":v":{"N":"1"}},"ReturnValues":"UPDATED_NEW"}`,
		`DeleteItem {"TableName":"orders","Key":{"id":{"S":"a"}},"ReturnConsumedCapacity":"INDEXES"}`,
		`GetItem {"TableName":"orders","Key":{"id":{"S":"a"}},"ProjectionExpression":"a.b[0]"}`,
		`Query {"TableName":"orders","KeyConditionExpression":"id = :v","ExpressionAttributeValues":{":v":{"S":"a"}},"Limit":1}`,
		`Scan {"TableName":"orders","Segment":0,"TotalSegments":2}`,
		`BatchGetItem {"RequestItems":{"orders":{"Keys":[{"id":{"S":"a"}}]}}}`,
		`BatchWriteItem {"RequestItems":{"orders":[{"PutRequest":{"Item":{"id":{"S":"a"}}}},{"DeleteRequest":{"Key":{"id":{"S":"b"}}}}]}}`,
		`TransactWriteItems {"TransactItems":[{"Put":{"TableName":"orders","Item":{"id":{"S":"a"}}}},{"Update":{"TableName":"orders","Key":{"id":{"S":"b"}},"UpdateExpression":"REMOVE a"}}],"ClientRequestToken":"t"}`,
		`TransactGetItems {"TransactItems":[{"Get":{"TableName":"orders","Key":{"id":{"S":"a"}}}}]}`,
		`ExecuteStatement {"Statement":"UPDATE \"orders\" SET n=? WHERE id='a'","Parameters":[{"N":"1"}]}`,
		`BatchExecuteStatement {"Statements":[{"Statement":"INSERT INTO \"orders\" VALUE {'id':'a'}"},{"Statement":"DELETE FROM orders WHERE id='b'"}]}`,
		`CreateTable {"TableName":"more","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],"BillingMode":"PAY_PER_REQUEST","GlobalSecondaryIndexes":[{"IndexName":"by_x","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}]}`,
		`DescribeTable {"TableName":"orders"}`, `DeleteTable {"TableName":"orders"}`, `ListTables {"Limit":1}`,
		`UpdateTimeToLive {"TableName":"orders","TimeToLiveSpecification":{"AttributeName":"e","Enabled":true}}`, `DescribeTimeToLive {"TableName":"orders"}`,
		`PutItem {`, `PutItem []`, `PutItem {"TableName":1}`, `Nothing {}`, ``,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		srv, _ := start(t)
		op, body, _ := strings.Cut(s, " ")
		if strings.ContainsAny(op, "\r\n") {
			t.Skip("no header has such a value")
		}
		status, _, answer := send(t, srv, op, body)
		var fields map[string]any
		if err := json.Unmarshal([]byte(answer), &fields); err != nil {
			t.Fatalf("answer %q: %v", answer, err)
		}
		kind, _ := fields["__type"].(string)
		if (status == http.StatusOK) == (kind != "") || status >= http.StatusInternalServerError {
			t.Errorf("status %d with %s", status, answer)
		}
	})
}
