package dedup_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/golden"
)

// goldenRecordKey is the key of the record of an event, which stores keep.
type goldenRecordKey struct{ Consumer, Event, Record string }

// keyStore notes the key of the last acquire.
type keyStore struct {
	dedup.Store
	key string
}

func (s *keyStore) Acquire(ctx context.Context, c dedup.Claim) (dedup.Grant, error) {
	s.key = c.Key
	return s.Store.Acquire(ctx, c)
}

// An event has the record key that every version made of it: under another key it would run again after an update.
func TestGoldenRecordKeys(t *testing.T) {
	t.Parallel()
	recordKey := func(t *testing.T, g goldenRecordKey) goldenRecordKey {
		t.Helper()
		store := &keyStore{Store: memstore.New()}
		once := must.Get(dedup.New(store, g.Consumer, func(o *dedup.Options) { o.Key = func(*sqsonce.Message) (string, error) { return g.Event, nil } }))(t)
		must.Do(t, once.Handler(func(context.Context, *sqsonce.Message) error { return nil })(t.Context(), &sqsonce.Message{ID: "1"}))
		g.Record = store.key
		return g
	}
	var written []goldenRecordKey
	for _, event := range []string{"orders|42", "zamówienie 42", "#42", strings.Repeat("x", 1100)} {
		written = append(written, recordKey(t, goldenRecordKey{Consumer: "billing", Event: event}))
	}
	golden.Check(t, "recordkeys.json", written)

	golden.Each(t, "recordkeys.json", func(t *testing.T, old []goldenRecordKey) {
		for _, want := range old {
			if got := recordKey(t, want); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
	})
}
