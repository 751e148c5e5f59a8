package memdynamodb_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

// halfApplied returns a server whose TransactWriteItems are applied as the rule says.
func halfApplied(t *testing.T, rule fault.Rule) (*memdynamodb.Server, *dynamodb.Client) {
	t.Helper()
	rule.Op, rule.Do = "TransactWriteItems", fault.HalfApplied
	return start(t, func(o *memdynamodb.Options) { o.Faults.Rules = []fault.Rule{rule} })
}

// seen are the ids of the table that a Scan, a Query of each id and a GetItem of each id see; they must agree.
func seen(t *testing.T, c *dynamodb.Client, ids ...string) string {
	t.Helper()
	var scanned, queried, got []string
	all := must.Get(c.Scan(t.Context(), &dynamodb.ScanInput{TableName: orders, ConsistentRead: aws.Bool(true)}))(t)
	for _, id := range ids {
		for _, i := range all.Items {
			if i["id"].(*ddbtypes.AttributeValueMemberS).Value == id {
				scanned = append(scanned, id)
			}
		}
		q := must.Get(c.Query(t.Context(), &dynamodb.QueryInput{TableName: orders, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("id=:id"), ExpressionAttributeValues: item{":id": str(id)}}))(t)
		if q.Count == 1 {
			queried = append(queried, id)
		}
		one := must.Get(c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: orders, ConsistentRead: aws.Bool(true), Key: item{"id": str(id)}}))(t)
		if one.Item != nil {
			got = append(got, id)
		}
	}
	if diff := cmp.Diff(scanned, queried) + cmp.Diff(scanned, got); diff != "" {
		t.Errorf("Scan, Query and GetItem: %s", diff)
	}
	return strings.Join(scanned, " ")
}

func wantSeen(t *testing.T, c *dynamodb.Client, want string, ids ...string) {
	t.Helper()
	if got := seen(t, c, ids...); got != want {
		t.Errorf("seen %q, want %q", got, want)
	}
}

func transactGet(t *testing.T, c *dynamodb.Client, ids ...string) error {
	t.Helper()
	in := &dynamodb.TransactGetItemsInput{}
	for _, id := range ids {
		in.TransactItems = append(in.TransactItems, ddbtypes.TransactGetItem{Get: &ddbtypes.Get{TableName: orders, Key: item{"id": str(id)}}})
	}
	_, err := c.TransactGetItems(t.Context(), in)
	return err
}

// TestHalfApplied: "c" is applied first, then "a", then "b", and reads that are no transaction see it so.
func TestHalfApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := halfApplied(t, fault.Rule{Nth: 1, Delays: []time.Duration{5 * time.Second, 9 * time.Second}})
		began := time.Now()
		must.Do(t, transact(t, c, txPut("a", "1"), txPut("b", "2"), txPut("c", "3"), txCheck("d", "attribute_not_exists(id)")))
		if waited := time.Since(began); waited != 0 {
			t.Errorf("answered after %s", waited)
		}
		wantSeen(t, c, "c", "a", "b", "c")
		time.Sleep(5*time.Second - time.Nanosecond)
		wantSeen(t, c, "c", "a", "b", "c")
		time.Sleep(time.Nanosecond)
		wantSeen(t, c, "a c", "a", "b", "c")
		time.Sleep(4 * time.Second)
		wantSeen(t, c, "a b c", "a", "b", "c")
		if err := transactGet(t, c, "a", "b", "c", "d"); err != nil {
			t.Error(err)
		}
		must.Do(t, transact(t, c, txPut("b", "7"), txPut("e", "7"))) // the rule was for one call
		wantSeen(t, c, "b e", "b", "e")
	})
}

// TestHalfAppliedConflicts: what is not yet applied refuses whatever is no plain read, also where no item is. What is applied
// does not.
func TestHalfAppliedConflicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, c := halfApplied(t, fault.Rule{Nth: 1, Entries: []int{0, 1, 2}, Delays: []time.Duration{9 * time.Second, 9 * time.Second, 9 * time.Second, 9 * time.Second}})
		ttl := &dynamodb.UpdateTimeToLiveInput{TableName: orders, TimeToLiveSpecification: &ddbtypes.TimeToLiveSpecification{AttributeName: aws.String("n"), Enabled: aws.Bool(true)}}
		must.Get(c.UpdateTimeToLive(t.Context(), ttl))(t)
		expired := fmt.Sprint(time.Now().Add(-time.Hour).Unix())
		putItem(t, c, "orders", item{"id": str("old"), "n": num(expired)})
		must.Do(t, transact(t, c, txPut("new", "1"), txAdd("old", "1"), txCheck("seen", "attribute_not_exists(id)"), txPut("done", expired)))
		for _, id := range []string{"new", "old", "seen"} {
			codes, e := reasons(t, transactGet(t, c, "done", id))
			if diff := cmp.Diff([]string{"None", "TransactionConflict"}, codes); diff != "" || aws.ToString(e.CancellationReasons[1].Message) != "Transaction is ongoing for the item" {
				t.Errorf("TransactGetItems of %s: %s, message %v", id, diff, aws.ToString(e.CancellationReasons[1].Message))
			}
			for what, action := range map[string]ddbtypes.TransactWriteItem{
				"Put": txPut(id, "7"), "Update": txAdd(id, "7"), "ConditionCheck": txCheck(id, "attribute_exists(nothing)"),
				"Delete": {Delete: &ddbtypes.Delete{TableName: orders, Key: item{"id": str(id)}}},
			} {
				codes, _ := reasons(t, transact(t, c, txPut("other", "7"), action))
				if diff := cmp.Diff([]string{"None", "TransactionConflict"}, codes); diff != "" {
					t.Errorf("%s of %s in another transaction: %s", what, id, diff)
				}
			}
			for op, body := range map[string]string{
				"PutItem":          `{"TableName":"orders","Item":{"id":{"S":"` + id + `"}}}`,
				"UpdateItem":       `{"TableName":"orders","Key":{"id":{"S":"` + id + `"}},"ConditionExpression":"attribute_exists(nothing)"}`,
				"DeleteItem":       `{"TableName":"orders","Key":{"id":{"S":"` + id + `"}}}`,
				"ExecuteStatement": `{"Statement":"DELETE FROM orders WHERE id='` + id + `'"}`,
			} {
				if status, _, answer := send(t, srv, op, body); status != 400 || !strings.Contains(answer, `TransactionConflictException","message":"Transaction is ongoing for the item"`) {
					t.Errorf("%s of %s: %d %s", op, id, status, answer)
				}
			}
			for _, statement := range []string{"INSERT INTO orders VALUE {'id':'" + id + "'}", "UPDATE orders SET n=7 WHERE id='" + id + "'"} {
				if _, _, answer := send(t, srv, "BatchExecuteStatement", `{"Statements":[{"Statement":"`+statement+`"}]}`); !strings.Contains(answer, `"Code":"TransactionConflict"`) {
					t.Errorf("%s: %s", statement, answer)
				}
			}
			batch := `{"RequestItems":{"orders":[{"DeleteRequest":{"Key":{"id":{"S":"` + id + `"}}}}]}}`
			if _, _, answer := send(t, srv, "BatchWriteItem", batch); !strings.Contains(answer, `"UnprocessedItems":`+strings.TrimSuffix(strings.TrimPrefix(batch, `{"RequestItems":`), "}")) {
				t.Errorf("BatchWriteItem of %s: %s", id, answer)
			}
			if status, _, answer := send(t, srv, "ExecuteStatement", `{"Statement":"SELECT * FROM orders WHERE id='`+id+`'"}`); status != 200 {
				t.Errorf("SELECT of %s: %s", id, answer)
			}
		}
		if n := srv.SweepTTL(); n != 1 { // "done", not "old"
			t.Errorf("SweepTTL deleted %d items", n)
		}
		wantItem(t, c, "old", item{"id": str("old"), "n": num(expired)})
		wantItem(t, c, "other", nil)
		time.Sleep(9 * time.Second)
		if err := transactGet(t, c, "new", "old", "seen"); err != nil {
			t.Error(err)
		}
		wantSeen(t, c, "new old", "new", "old", "seen", "other")
		if err := transact(t, c, txAdd("new", "1"), txPut("old", "1"), txPut("seen", "1")); err != nil {
			t.Error(err)
		}
		wantItem(t, c, "new", item{"id": str("new"), "n": num("2")})
	})
}

// TestHalfAppliedThenNext: a transaction that needs only what is applied commits before the one before it is whole. The later
// of two events is there without the earlier one.
func TestHalfAppliedThenNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := halfApplied(t, fault.Rule{Nth: 1, Delays: []time.Duration{0, time.Minute}})
		for _, n := range []string{"1", "2"} {
			must.Do(t, transact(t, c, txAdd("order", "1"), txPut("event"+n, n)))
		}
		wantItem(t, c, "order", item{"id": str("order"), "n": num("2")})
		wantSeen(t, c, "event2", "event1", "event2")
		time.Sleep(time.Minute)
		wantSeen(t, c, "event1 event2", "event1", "event2")
	})
}

// TestHalfAppliedAnswer: with After the answer waits for the last change, or for Close, which applies the rest.
func TestHalfAppliedAnswer(t *testing.T) {
	for _, closed := range []bool{false, true} {
		must.Run(t, fmt.Sprint("closed ", closed), func(t *testing.T) {
			srv, c := halfApplied(t, fault.Rule{After: true, Delays: []time.Duration{time.Hour, time.Minute}})
			began := time.Now()
			want := time.Hour
			if closed {
				want = time.Second
				time.AfterFunc(want, srv.Close)
			}
			must.Do(t, transact(t, c, txPut("a", "1"), txPut("b", "1")))
			if waited := time.Since(began); waited != want {
				t.Errorf("answered after %s, want %s", waited, want)
			}
			wantSeen(t, c, "a b", "a", "b")
			time.Sleep(2 * time.Hour)
			putItem(t, c, "orders", item{"id": str("a"), "n": num("7")})
			wantItem(t, c, "a", item{"id": str("a"), "n": num("7")}) // not made twice
		})
	}
}

// TestHalfAppliedToken: the repetition of a transaction that is not yet whole is told so, and makes no second one.
func TestHalfAppliedToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := halfApplied(t, fault.Rule{Nth: 1, Delays: []time.Duration{time.Minute}})
		run := func() error {
			_, err := c.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String("t"), TransactItems: []ddbtypes.TransactWriteItem{txAdd("a", "1"), txAdd("b", "1")}})
			return err
		}
		must.Do(t, run())
		if _, ok := errors.AsType[*ddbtypes.TransactionInProgressException](run()); !ok {
			t.Error("the repetition is no TransactionInProgressException")
		}
		time.Sleep(time.Minute)
		if err := run(); err != nil {
			t.Error(err)
		}
		wantItem(t, c, "a", item{"id": str("a"), "n": num("1")})
		wantItem(t, c, "b", item{"id": str("b"), "n": num("1")})
	})
}

// TestHalfAppliedDrawn: with a Delay each change draws its time within it, the same for the same seed.
func TestHalfAppliedDrawn(t *testing.T) {
	order := func(seed uint64) (seenInTurn []string) {
		synctest.Test(t, func(t *testing.T) {
			_, c := start(t, func(o *memdynamodb.Options) {
				o.Faults = fault.Plan{Seed: seed, Rules: []fault.Rule{{Op: "TransactWriteItems", Do: fault.HalfApplied, Delay: time.Second}}}
			})
			must.Do(t, transact(t, c, txPut("a", "1"), txPut("b", "1"), txPut("c", "1")))
			for range 100 {
				now := seen(t, c, "a", "b", "c")
				if len(seenInTurn) == 0 || seenInTurn[len(seenInTurn)-1] != now {
					seenInTurn = append(seenInTurn, now)
				}
				time.Sleep(time.Second / 100)
			}
			wantSeen(t, c, "a b c", "a", "b", "c")
		})
		return seenInTurn
	}
	orders := map[string]bool{}
	for seed := range uint64(20) {
		first := order(seed)
		if diff := cmp.Diff(first, order(seed)); diff != "" {
			t.Errorf("seed %d again: %s", seed, diff)
		}
		orders[strings.Join(first, ", ")] = true
	}
	if len(orders) < 6 {
		t.Errorf("20 seeds show only %v", orders)
	}
}
