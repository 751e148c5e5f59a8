package sqlstore

import (
	"testing"
	"time"
)

// Between the read of a free record and the statement that takes it others may have come: it takes nothing else than what
// was read, and nothing that is not free.
func TestInboxTakesWhatItRead(t *testing.T) {
	t.Parallel()
	EachDialect(t, func(t *testing.T, b *Bed) {
		s := newStore(t, b)
		i := newInbox(t, s)
		take := func(fence, until int64) bool {
			t.Helper()
			_, written, err := b.Dialect.writeKept(t.Context(), b.DB, i.text.take,
				"taker", time.Hour.Milliseconds(), 1, "", "k", fence, until)
			if err != nil {
				t.Fatal(err)
			}
			return written
		}
		read := func() record {
			t.Helper()
			r, err := s.find(t.Context(), b.DB, "k")
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		l := mustAcquire(t, s, claim("k", "holder"))
		if r := read(); take(r.fence, r.until) {
			t.Error("a live lease was taken")
		}
		if err := s.Release(t.Context(), l, errBoom); err != nil {
			t.Fatal(err)
		}
		r := read()
		if take(r.fence-1, r.until) || take(r.fence, r.until+1) {
			t.Error("a record was taken that is not the one that was read")
		}
		if !take(r.fence, r.until) {
			t.Error("a free record was not taken")
		}
		if r := read(); r.status != completed || take(r.fence, r.until) {
			t.Errorf("record: got %+v, want it completed, and not to be taken", r)
		}
	})
}
