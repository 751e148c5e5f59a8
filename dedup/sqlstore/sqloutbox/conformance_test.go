package sqloutbox

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/outboxtest"
)

// The suite of all stores. Its cases share the tables of a server; on SQLite each has a file, because an open transaction has
// all of it.
func TestConformance(t *testing.T) {
	eachBed(t, func(t *testing.T, b *bed) { outboxtest.Run(t, harness(b)) })
}

func harness(shared *bed) outboxtest.Harness {
	var boxes atomic.Int64
	ofStore := func(s outbox.Store) (*bed, *Outbox) {
		o := s.(*conformed)
		return o.bed, o.Outbox
	}
	return outboxtest.Harness{
		RealTime: true, NoClaims: shared.Dialect.OneWriter(),
		New: func(t *testing.T) (outbox.Store, func(t *testing.T, es ...fifo.Event)) {
			b := shared
			if !b.HasServer() {
				b = newBed(t, b.kind)
			}
			o := b.named(t, fmt.Sprint("box", boxes.Add(1)))
			return &conformed{o, b}, func(t *testing.T, es ...fifo.Event) { b.commit(t, o, es...) }
		},
		Begin: func(t *testing.T, s outbox.Store, es ...fifo.Event) (commit, rollback func()) {
			b, o := ofStore(s)
			tx := b.begin(t)
			must.Do(t, o.Add(t.Context(), tx, es...))
			end := func(f func() error) func() {
				return func() {
					must.Do(t, f())
				}
			}
			return end(tx.Commit), end(tx.Rollback)
		},
		Break: func(t *testing.T, s outbox.Store, e outbox.Entry) {
			b, _ := ofStore(s)
			b.exec(t, "UPDATE {outbox} SET attributes = '[' WHERE seq = ?", e.Seq)
		},
		Replace: func(t *testing.T, s outbox.Store, e outbox.Entry, with fifo.Event) {
			b, _ := ofStore(s)
			b.exec(t, "UPDATE {outbox} SET id = ?, payload = ? WHERE seq = ?", with.ID, with.Body, e.Seq)
		},
		Reopen: func(t *testing.T, s outbox.Store) outbox.Store {
			b, o := ofStore(s)
			return &conformed{b.named(t, o.name), b}
		},
	}
}

// conformed is an outbox with its database.
type conformed struct {
	*Outbox
	bed *bed
}
