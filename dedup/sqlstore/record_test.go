package sqlstore

import (
	"context"
	"errors"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce/dedup"
)

// A table that refuses a result, like one with a shorter column, gets the record without it: the effect does not happen again.
func TestRefusedResult(t *testing.T) {
	each(t, servers, NewBed, func(t *testing.T, b *Bed) {
		exec(t, b.DB, b.Dialect.sql("ALTER TABLE {records} ADD CONSTRAINT short CHECK (length(result) < 8)"))
		once := must.Get(dedup.New(newStore(t, b), "billing"))(t)
		effects := 0
		for _, want := range []error{nil, dedup.ErrNoResult} {
			_, err := dedup.Do(t.Context(), once, "order-1", func(context.Context) (string, error) { effects++; return "a long result", nil })
			if !errors.Is(err, want) || effects != 1 {
				t.Errorf("got error %v and %d effects, want %v and 1", err, effects, want)
			}
		}
	})
}
