package memdynamodb_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// hammer runs f on eight goroutines, n times on each. This is often enough to find a missing lock without the race
// detector.
func hammer(n int, f func(worker, i int)) {
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range n {
				f(w, i)
			}
		})
	}
	wg.Wait()
}

// TestOneWinner: of concurrent conditional writes to one key exactly one succeeds, and no concurrent addition is lost.
func TestOneWinner(t *testing.T) {
	t.Parallel()
	srv, c := start(t)
	const keys = 500
	var won atomic.Int32
	hammer(keys, func(_, i int) {
		status, _, _ := send(t, srv, "PutItem", fmt.Sprintf(`{"TableName":"orders","Item":{"id":{"S":"%d"}},"ConditionExpression":"attribute_not_exists(id)"}`, i))
		if status == http.StatusOK {
			won.Add(1)
		}
		if status, _, text := send(t, srv, "UpdateItem", `{"TableName":"orders","Key":{"id":{"S":"sum"}},"UpdateExpression":"ADD n :one","ExpressionAttributeValues":{":one":{"N":"1"}}}`); status != http.StatusOK {
			t.Errorf("ADD: %s", text)
		}
	})
	if won.Load() != keys {
		t.Errorf("%d conditional puts of %d new keys succeeded", won.Load(), keys)
	}
	wantItem(t, c, "sum", item{"id": str("sum"), "n": num("4000")})
}

// TestOneWinnerOfStatements is TestOneWinner for statements, single and in batches.
func TestOneWinnerOfStatements(t *testing.T) {
	t.Parallel()
	srv, c := start(t)
	putItem(t, c, "orders", item{"id": str("sum"), "n": num("0")})
	const keys = 500
	var won atomic.Int32
	hammer(keys, func(_, i int) {
		_, _, text := send(t, srv, "BatchExecuteStatement", fmt.Sprintf(`{"Statements":[{"Statement":"INSERT INTO orders VALUE {'id': ?}","Parameters":[{"S":"%d"}]},{"Statement":"INSERT INTO orders VALUE {'id': ?}","Parameters":[{"S":"%d again"}]}]}`, i, i))
		won.Add(int32(2 - strings.Count(text, "DuplicateItem")))
		if status, _, text := send(t, srv, "ExecuteStatement", `{"Statement":"UPDATE orders SET n = n + 1 WHERE id = 'sum'"}`); status != http.StatusOK {
			t.Errorf("UPDATE: %s", text)
		}
	})
	if won.Load() != 2*keys {
		t.Errorf("%d INSERTs of %d new keys succeeded", won.Load(), 2*keys)
	}
	wantItem(t, c, "sum", item{"id": str("sum"), "n": num("4000")})
}

// TestTransactionsAreIsolated: many goroutines move amounts between two accounts and read both in one transaction. The sum
// is the same in every read, and no transfer is lost.
func TestTransactionsAreIsolated(t *testing.T) {
	t.Parallel()
	srv, c := start(t)
	putItem(t, c, "orders", item{"id": str("a"), "n": num("100000")})
	putItem(t, c, "orders", item{"id": str("b"), "n": num("100000")})
	add := func(id string, n int) string {
		return fmt.Sprintf(`{"Update":{"TableName":"orders","Key":{"id":{"S":"%s"}},"UpdateExpression":"ADD n :n","ExpressionAttributeValues":{":n":{"N":"%d"}}}}`, id, n)
	}
	read := `{"TransactItems":[{"Get":{"TableName":"orders","Key":{"id":{"S":"a"}}}},{"Get":{"TableName":"orders","Key":{"id":{"S":"b"}}}}]}`
	hammer(300, func(w, _ int) {
		if status, _, text := send(t, srv, "TransactWriteItems", `{"TransactItems":[`+add("a", -w)+","+add("b", w)+`]}`); status != http.StatusOK {
			t.Errorf("write: %s", text)
		}
		_, _, text := send(t, srv, "TransactGetItems", read)
		sum := 0
		for _, part := range strings.Split(text, `"N":"`)[1:] {
			n, err := strconv.Atoi(part[:strings.IndexByte(part, '"')])
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
			sum += n
		}
		if sum != 200000 {
			t.Errorf("sum %d seen, want 200000", sum)
		}
	})
	moved := 300 * (0 + 1 + 2 + 3 + 4 + 5 + 6 + 7)
	wantItem(t, c, "b", item{"id": str("b"), "n": num(strconv.Itoa(100000 + moved))})
}
