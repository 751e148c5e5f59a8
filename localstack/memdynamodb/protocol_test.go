package memdynamodb_test

import (
	"hash/crc32"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

// TestHTTP: the same over a socket, for a client that checks the CRC of every answer.
func TestHTTP(t *testing.T) {
	t.Parallel()
	srv := memdynamodb.New()
	defer srv.Close()
	web := httptest.NewServer(srv)
	defer web.Close()
	o := client(srv).Options().Copy()
	o.HTTPClient, o.BaseEndpoint = web.Client(), aws.String(web.URL)
	c := dynamodb.New(o)
	createTable(t, c, "orders", "id", "")
	putItem(t, c, "orders", item{"id": str("a"), "text": str("é<&>\"\n")})
	wantItem(t, c, "a", item{"id": str("a"), "text": str("é<&>\"\n")})
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	srv, _ := start(t)
	for _, tt := range []struct{ op, body, want string }{
		{"PutItem", `{`, `SerializationException`},
		{"PutItem", ``, `SerializationException`},
		{"PutItem", `{"TableName":7}`, `SerializationException`},
		{"PutItem", `{"TableName":"orders","Item":{"id":{"S":7}}}`, `NUMBER_VALUE cannot be converted to String`},
		{"PutItem", `{"TableName":"orders","Item":[]}`, `SerializationException`},
		{"PutItem", `{"TableName":"orders","Item":{"id":{}}}`, `Supplied AttributeValue is empty, must contain exactly one of the supported datatypes`},
		{"PutItem", `{"TableName":"orders"}`, `Value null at 'item' failed to satisfy constraint: Member must not be null`},
		{"PutItem", `{"Item":{"id":{"S":"a"}}}`, `Value null at 'tableName' failed to satisfy constraint: Member must not be null`},
		{"PutItem", `{"TableName":"a b","Item":{"id":{"S":"a"}}}`, `Value 'a b' at 'tableName' failed to satisfy constraint`},
		{"GetItem", `{"TableName":"orders"}`, `Value null at 'key'`},
		{"TransactWriteItems", `{"TransactItems":[{"Put":7}]}`, `SerializationException`},
		{"TransactWriteItems", `{"TransactItems":[null]}`, `TransactItems can only contain one of`},
		{"BatchGetItem", `{"RequestItems":{"orders":null}}`, `ValidationException`},
		{"Query", `{"TableName":"orders","KeyConditionExpression":"id = :v","ExpressionAttributeValues":{":v":null}}`, `SerializationException`},
		{"RestoreTable", `{}`, `UnknownOperationException`},
	} {
		status, _, body := send(t, srv, tt.op, tt.body)
		if status != http.StatusBadRequest || !strings.Contains(body, tt.want) {
			t.Errorf("%s %s: %d %s, want %s", tt.op, tt.body, status, body, tt.want)
		}
	}
}

// TestServerClock: Options.Now is the Date of answers, which carry a CRC too.
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
