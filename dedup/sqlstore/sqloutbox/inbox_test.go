package sqloutbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/sqlstore"
	"github.com/sqsonce/sqsonce/internal/must"
)

// Handlers of an inbox add to two outboxes in different orders, and meet in a deadlock. The inbox runs the one that the
// database ended again, and the events of each are there once.
func TestInboxRunsAgainAfterDeadlock(t *testing.T) {
	eachServer(t, func(t *testing.T, b *bed) {
		must.Do(t, sqlstore.Migrate(t.Context(), b.db, b.dialect))
		store := must.Get(sqlstore.New(b.db, b.dialect))(t)
		inbox := must.Get(sqlstore.NewInbox(store, "billing"))(t)
		boxes := [2]*Outbox{b.named(t, "one"), b.named(t, "two")}
		var met sync.WaitGroup // both have the lock that the other one needs
		met.Add(2)
		var mu sync.Mutex
		runs := 0
		handler := func(first int) sqsonce.Handler {
			meet := sync.OnceFunc(func() { met.Done(); met.Wait() })
			return inbox.Handler(func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
				mu.Lock()
				runs++
				mu.Unlock()
				if err := boxes[first].Add(ctx, tx, event("g", m.ID)); err != nil {
					return err
				}
				meet()
				return boxes[1-first].Add(ctx, tx, event("g", m.ID))
			})
		}
		errs := make(chan error, 2)
		for i := range 2 {
			go func() {
				errs <- handler(i)(context.WithoutCancel(t.Context()), &sqsonce.Message{
					ID: fmt.Sprint("m", i), Body: "{}", ReceiveCount: 1, Attributes: map[string]sqsonce.Attribute{
						sqsonce.AttrEventSource: {Type: "String", String: "orders"}, sqsonce.AttrEventID: {Type: "String", String: fmt.Sprint(i)},
					},
				})
			}()
		}
		must.Do(t, errors.Join(<-errs, <-errs))
		for _, o := range boxes {
			if n := len(read(t, o, "g", 10)); n != 2 {
				t.Errorf("outbox %s has %d events, want one of each message", o.name, n)
			}
		}
		if runs < 3 {
			t.Errorf("%d runs: there was no deadlock, and the test shows nothing", runs)
		}
	})
}
