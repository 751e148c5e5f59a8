package main

import (
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

func TestSQLite(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "orders.db")
	bookedOnce(t, "sqlite", "file:"+file+"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)")
}

// bookedOnce delivers the same two orders to five consumers until each has acknowledged both: each order must be booked
// once. The consumers have a connection pool each, as processes have.
func bookedOnce(t *testing.T, store, dsn string) {
	t.Helper()
	calls := filepath.Join(t.TempDir(), "calls")
	messages := []string{`{"id":"a/1","account":"acct","amount":250}`, `{"id":"a/2","account":"acct","amount":-50}`}
	var consumers sync.WaitGroup
	for range 5 {
		l := open(t, store, dsn)
		must.Do(t, l.setup(t.Context())) // does nothing after the first
		handler := must.Get(l.handler(orders.Config{Consumer: "billing", Calls: calls, Lease: 6 * time.Second}))(t)
		consumers.Go(func() {
			for i, body := range messages {
				m := &sqsonce.Message{ID: strconv.Itoa(i + 1), QueueARN: "arn:aws:sqs:us-east-1:000000000000:orders", Body: body, ReceiveCount: 1}
				for deadline := time.Now().Add(30 * time.Second); handler(t.Context(), m) != nil; time.Sleep(20 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Errorf("%s was never acknowledged", body)
						return
					}
				}
			}
		})
	}
	consumers.Wait()
	accounts := must.Get(open(t, store, dsn).read(t.Context()))(t)
	if a := accounts["acct"]; len(accounts) != 1 || a.Balance != 200 || !slices.Equal(a.Entries, []string{"a/1", "a/2"}) {
		t.Errorf("the ledger is %+v, want each order booked once, in order", accounts)
	}
	made, err := orders.ReadCalls(calls)
	if err != nil || len(made) != 2 {
		t.Errorf("calls %v, %v, want two", made, err)
	}
}

func open(t *testing.T, store, dsn string) *ledger {
	t.Helper()
	l := must.Get(openLedger(store, dsn))(t)
	t.Cleanup(func() { _ = l.db.Close() }) // every call has returned
	return l
}

func TestUnknownStore(t *testing.T) {
	t.Parallel()
	if _, err := openLedger("oracle", ""); err == nil {
		t.Error("got nil, want an error for an unknown STORE")
	}
}

func TestMain(m *testing.M) { testserver.Main(m) }

// TestServers is TestSQLite on the servers that this repository's tests start. It is skipped where one is not installed.
func TestServers(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]func(t *testing.T) string{
		"postgres": func(t *testing.T) string { return testserver.PostgreSQL.Shared(t).DSN("postgres") },
		"mariadb": func(t *testing.T) string {
			return testserver.MariaDB.Shared(t).DSN("test") + "?interpolateParams=true"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bookedOnce(t, name, dsn(t))
		})
	}
}
