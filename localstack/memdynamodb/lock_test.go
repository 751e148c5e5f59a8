package memdynamodb_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

// TestTransactionsOfTwoTables: transactions that name two tables in any order finish, and nobody sees half of one.
func TestTransactionsOfTwoTables(t *testing.T) {
	t.Parallel()
	srv := memdynamodb.New()
	t.Cleanup(srv.Close)
	createTable(t, client(srv), "one", "id", "")
	createTable(t, client(srv), "two", "id", "")
	var running sync.WaitGroup
	for worker, names := range [][]string{{"one", "two"}, {"two", "one"}, {"arn:aws:dynamodb:us-east-1:000000000000:table/two", "one"}} {
		running.Go(func() {
			for i := range 200 {
				body := `{"TransactItems":[%s,%s]}`
				for _, name := range names {
					body = strings.Replace(body, "%s", fmt.Sprintf(`{"Put":{"TableName":%q,"Item":{"id":{"S":"a"},"by":{"S":"%d/%d"}}}}`, name, worker, i), 1)
				}
				if status, _, text := send(t, srv, "TransactWriteItems", body); status != http.StatusOK {
					t.Error(text)
				}
				_, _, text := send(t, srv, "BatchGetItem", `{"RequestItems":{"one":{"Keys":[{"id":{"S":"a"}}]},"two":{"Keys":[{"id":{"S":"a"}}]}}}`)
				if one, two, _ := strings.Cut(text, `"two":`); !strings.Contains(one, strings.TrimSuffix(two, `},"UnprocessedKeys":{}}`)) {
					t.Errorf("half a transaction: %s", text)
				}
			}
		})
	}
	running.Go(func() { // tables that come and go meanwhile
		for range 200 {
			send(t, srv, "DeleteTable", `{"TableName":"three"}`)
			send(t, srv, "CreateTable", `{"TableName":"three","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"KEYS_ONLY"}}`)
		}
	})
	running.Go(func() {
		for range 200 {
			send(t, srv, "PutItem", `{"TableName":"three","Item":{"id":{"S":"a"}}}`)
			sendTo(t, srv, "DynamoDBStreams_20120810", "ListStreams", `{"TableName":"three"}`)
			send(t, srv, "ListTables", `{}`)
			srv.SweepTTL()
		}
	})
	running.Wait()
}
