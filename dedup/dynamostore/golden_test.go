package dynamostore

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/golden"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

const goldenItems = "items.json"

// goldenBed is on the server in memory, also in the run on dynoxide: another server writes an item's attributes otherwise.
func goldenBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{T: t, srv: memdynamodb.New()}
	t.Cleanup(b.srv.Close)
	if err := CreateTable(t.Context(), b.client(b.srv), testTable); err != nil {
		t.Fatal(err)
	}
	return b
}

// The items are those that the newest golden version writes, since each bubble begins at the same time. Those of every version
// are found as they were left.
func TestGolden(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := goldenBed(t)
		golden.WriteRecords(t, b.store())
		golden.Check(t, goldenItems, b.srv.Items(testTable))
	})
	golden.Each(t, goldenItems, func(t *testing.T, items []json.RawMessage) {
		synctest.Test(t, func(t *testing.T) {
			b := goldenBed(t)
			for _, item := range items {
				if got := (packet{op: "PutItem", body: `{"TableName":"` + testTable + `","Item":` + string(item) + `}`}).send(b.srv); got != "granted" {
					t.Fatalf("PutItem %s: %s", item, got)
				}
			}
			golden.CheckRecords(t, b.store(), func(_ string, by time.Duration) { time.Sleep(by) })
		})
	})
}
