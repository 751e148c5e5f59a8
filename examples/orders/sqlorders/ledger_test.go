package main

import (
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// Five consumers with a pool each, as processes have, get the same two orders again and again: each is booked once.
func TestEachStore(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]func(t *testing.T) string{
		"sqlite": func(t *testing.T) string {
			return "file:" + filepath.Join(t.TempDir(), "orders.db") + "?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"
		},
		"postgres": func(t *testing.T) string { return testserver.PostgreSQL.Shared(t).DSN("postgres") },
		"mariadb": func(t *testing.T) string {
			return testserver.MariaDB.Shared(t).DSN("test") + "?interpolateParams=true"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, calls := dsn(t), filepath.Join(t.TempDir(), "calls")
			bodies := []string{`{"id":"a/1","account":"acct","amount":250}`, `{"id":"a/2","account":"acct","amount":-50}`}
			var wg sync.WaitGroup
			for range 5 {
				l, err := openLedger(name, url)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = l.db.Close() })       // nothing is under way
				if err := l.setup(t.Context()); err != nil { // also where it is done
					t.Fatal(err)
				}
				handler, err := l.handler(orders.Config{Consumer: "billing", Calls: calls, Lease: 6 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				wg.Go(func() {
					for i, body := range bodies {
						m := &sqsonce.Message{ID: string(rune('1' + i)), QueueARN: "arn:aws:sqs:us-east-1:000000000000:orders", Body: body, ReceiveCount: 1}
						for deadline := time.Now().Add(30 * time.Second); handler(t.Context(), m) != nil; time.Sleep(20 * time.Millisecond) {
							if time.Now().After(deadline) {
								t.Errorf("%s was never acknowledged", body)
								return
							}
						}
					}
				})
			}
			wg.Wait()
			l, err := openLedger(name, url)
			if err != nil {
				t.Fatal(err)
			}
			defer l.db.Close()
			accounts, err := l.read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if a := accounts["acct"]; len(accounts) != 1 || a.Balance != 200 || !slices.Equal(a.Entries, []string{"a/1", "a/2"}) {
				t.Errorf("the ledger is %+v, want each order booked once, in order", accounts)
			}
			made, err := orders.ReadCalls(calls)
			if err != nil || len(made) != 2 {
				t.Errorf("calls %v, %v, want two", made, err)
			}
		})
	}
}

func TestUnknownStore(t *testing.T) {
	t.Parallel()
	if _, err := openLedger("oracle", ""); err == nil {
		t.Error("an unknown STORE was taken")
	}
}
