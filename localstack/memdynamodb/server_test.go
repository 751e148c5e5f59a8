package memdynamodb_test

import (
	"encoding/json"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

// client returns a real SDK client of the server. It makes one attempt a call, so that the test sees every fault.
func client(srv *memdynamodb.Server) *dynamodb.Client {
	return testaws.DynamoDB(srv, func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
}

// start returns a server with the table "orders", whose key is the string "id", and a client of the server.
func start(t testing.TB, optFns ...func(*memdynamodb.Options)) (*memdynamodb.Server, *dynamodb.Client) {
	t.Helper()
	srv := memdynamodb.New(optFns...)
	t.Cleanup(srv.Close)
	c := client(srv)
	createTable(t, c, "orders", "id", "")
	return srv, c
}

func createTable(t testing.TB, c *dynamodb.Client, name, partition, sort string) {
	t.Helper()
	in := &dynamodb.CreateTableInput{
		TableName:            &name,
		BillingMode:          ddbtypes.BillingModePayPerRequest,
		AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: &partition, AttributeType: "S"}},
		KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: &partition, KeyType: "HASH"}},
	}
	if sort != "" {
		in.AttributeDefinitions = append(in.AttributeDefinitions, ddbtypes.AttributeDefinition{AttributeName: &sort, AttributeType: "N"})
		in.KeySchema = append(in.KeySchema, ddbtypes.KeySchemaElement{AttributeName: &sort, KeyType: "RANGE"})
	}
	must.Get(c.CreateTable(t.Context(), in))(t)
}

type item = map[string]ddbtypes.AttributeValue

func str(s string) ddbtypes.AttributeValue { return &ddbtypes.AttributeValueMemberS{Value: s} }
func num(s string) ddbtypes.AttributeValue { return &ddbtypes.AttributeValueMemberN{Value: s} }

// send sends a plain request, without the SDK's own checks and CPU time.
func send(t testing.TB, srv *memdynamodb.Server, op, body string) (status int, header http.Header, answer string) {
	t.Helper()
	return sendTo(t, srv, "DynamoDB_20120810", op, body)
}

func sendTo(t testing.TB, srv *memdynamodb.Server, target, op, body string) (status int, header http.Header, answer string) {
	t.Helper()
	r := must.Get(http.NewRequest(http.MethodPost, "http://dynamodb.local/", strings.NewReader(body)))(t)
	r.Header.Set("X-Amz-Target", target+"."+op)
	r.Header.Set("Authorization", "test")
	resp := must.Get(srv.RoundTrip(r))(t)
	text := must.Get(io.ReadAll(resp.Body))(t)
	return resp.StatusCode, resp.Header, string(text)
}

// TestServerClock: Options.Now is the Date of answers, and every answer has its CRC.
func TestServerClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		skewed := func() time.Time { return time.Now().Add(-30 * time.Second) }
		srv, _ := start(t, func(o *memdynamodb.Options) { o.Now = skewed })
		time.Sleep(time.Hour)
		_, header, body := send(t, srv, "ListTables", `{}`)
		if got, want := header.Get("X-Amz-Crc32"), strconv.Itoa(int(crc32.ChecksumIEEE([]byte(body)))); got != want {
			t.Errorf("CRC %s, want %s", got, want)
		}
		if got, want := header.Get("Date"), skewed().UTC().Format(http.TimeFormat); got != want {
			t.Errorf("Date %s, want %s", got, want)
		}
	})
}

// FuzzRequests: for every body an operation returns a result, or an error in AWS's form, and does not panic.
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
		`UpdateTable {"TableName":"orders","AttributeDefinitions":[{"AttributeName":"x","AttributeType":"S"}],"GlobalSecondaryIndexUpdates":[{"Create":{"IndexName":"by_x","KeySchema":[{"AttributeName":"x","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}}]}`,
		`UpdateTable {"TableName":"orders","BillingMode":"PROVISIONED","ProvisionedThroughput":{"ReadCapacityUnits":1,"WriteCapacityUnits":2}}`, `UpdateTable {"TableName":"orders","SSESpecification":{"Enabled":true}}`,
		`TagResource {"ResourceArn":"arn:aws:dynamodb:us-east-1:000000000000:table/orders","Tags":[{"Key":"k","Value":"v"}]}`, `UntagResource {"ResourceArn":"arn:aws:dynamodb:us-east-1:000000000000:table/orders","TagKeys":["k"]}`,
		`ListTagsOfResource {"ResourceArn":"arn:aws:dynamodb:us-east-1:000000000000:table/orders"}`,
		`UpdateContinuousBackups {"TableName":"orders","PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true}}`, `DescribeContinuousBackups {"TableName":"orders"}`,
		`DescribeTable {"TableName":"orders"}`, `DeleteTable {"TableName":"orders"}`, `ListTables {"Limit":1}`,
		`UpdateTimeToLive {"TableName":"orders","TimeToLiveSpecification":{"AttributeName":"e","Enabled":true}}`, `DescribeTimeToLive {"TableName":"orders"}`,
		`CreateTable {"TableName":"more","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],"BillingMode":"PAY_PER_REQUEST","StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_IMAGE"}}`,
		`ListStreams {"Limit":1}`, `DescribeStream {"StreamArn":"arn:aws:dynamodb:us-east-1:000000000000:table/orders/stream/x"}`,
		`GetShardIterator {"StreamArn":"arn:aws:dynamodb:us-east-1:000000000000:table/orders/stream/x","ShardId":"shardId-00000000000000000000-00000000","ShardIteratorType":"LATEST"}`,
		`GetRecords {"ShardIterator":"|1|e30="}`,
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
		target := "DynamoDB_20120810"
		if op == "GetRecords" || op == "GetShardIterator" || strings.HasSuffix(op, "Stream") || strings.HasSuffix(op, "Streams") {
			target = "DynamoDBStreams_20120810"
		}
		status, _, answer := sendTo(t, srv, target, op, body)
		var fields map[string]any
		if err := json.Unmarshal([]byte(answer), &fields); err != nil && (answer != "" || status != http.StatusOK) {
			t.Fatalf("answer %q: %v", answer, err)
		}
		kind, _ := fields["__type"].(string)
		if (status == http.StatusOK) == (kind != "") || status >= http.StatusInternalServerError {
			t.Errorf("status %d with %s", status, answer)
		}
	})
}

// A member of another verb, which AWS would not look at, is refused by name.
func TestMembersOfOtherVerbs(t *testing.T) {
	t.Parallel()
	srv, _ := start(t)
	const key, item = `"TableName":"orders","Key":{"id":{"S":"a"}}`, `"TableName":"orders","Item":{"id":{"S":"a"}}`
	for _, tt := range []struct{ op, body, want string }{
		{"PutItem", `{` + item + `,"Key":{"id":{"S":"a"}}}`, "the member Key here"},
		{"PutItem", `{` + item + `,"UpdateExpression":"SET v = v"}`, "the member UpdateExpression here"},
		{"UpdateItem", `{` + key + `,"Item":{"id":{"S":"a"}}}`, "the member Item here"},
		{"DeleteItem", `{` + key + `,"UpdateExpression":"SET v = v"}`, "the member UpdateExpression here"},
		{"TransactWriteItems", `{"TransactItems":[{"Put":{` + item + `,"Key":{"id":{"S":"a"}}}}]}`, "the member Key here"},
		{"TransactWriteItems", `{"TransactItems":[{"ConditionCheck":{` + key + `,"ConditionExpression":"attribute_exists(id)","UpdateExpression":"SET v = v"}}]}`, "the member UpdateExpression here"},
		{"TransactWriteItems", `{"TransactItems":[{"Put":{` + item + `,"ReturnValues":"ALL_OLD"}}]}`, "the member Put.ReturnValues"},
	} {
		status, _, answer := send(t, srv, tt.op, tt.body)
		if want := "memdynamodb does not implement " + tt.want; status != http.StatusBadRequest || !strings.Contains(answer, want) {
			t.Errorf("%s %s: %d %s, want %s", tt.op, tt.body, status, answer, want)
		}
	}
	if items := srv.Items("orders"); len(items) != 0 {
		t.Errorf("a refused request wrote %s", items)
	}
}
