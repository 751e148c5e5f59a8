package orders

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/host"
)

// The call and the booking are apart: a booking that fails does not repeat the call, and a booking that crashed after it
// was made is made once.
func TestGuarded(t *testing.T) {
	inMemory(t)
	calls := filepath.Join(t.TempDir(), "calls")
	synctest.Test(t, func(t *testing.T) {
		_, stack := newHandler(t, "")
		failures := 2
		handler, err := Guarded(memstore.New(), Config{Consumer: "billing", Calls: calls, Lease: 6 * time.Second},
			sqsonce.JSON(func(ctx context.Context, o Order) error {
				if err := BookOnce(ctx, stack.DynamoDB, "ledger", o); err != nil {
					return err
				}
				if failures--; failures >= 0 {
					return errors.New("crashed after the booking")
				}
				return nil
			}))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			m := message(`{"id":"ord-1/placed","account":"acct-1","amount":250,"review":"10s"}`)
			if err := handler(t.Context(), m); (err == nil) != (i >= 2) {
				t.Errorf("delivery %d: %v", i+1, err)
			}
		}
		other := message("not json")
		other.ID = "m-2"
		if _, reject := host.Asked(handler(t.Context(), other)); reject == nil {
			t.Error("poison was not rejected")
		}
		ledger, err := ReadLedger(t.Context(), stack.DynamoDB, "ledger")
		if err != nil {
			t.Fatal(err)
		}
		if got := ledger["acct-1"]; got.Balance != 250 || !slices.Equal(got.Entries, []string{"ord-1/placed"}) {
			t.Errorf("the account holds %+v, want one booking of 250", got)
		}
	})
	made, err := ReadCalls(calls)
	if err != nil || len(made) != 1 {
		t.Errorf("calls %v (%v), want one", made, err)
	}
}
