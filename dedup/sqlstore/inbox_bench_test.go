package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
)

// What an inbox adds to a bare business transaction: one statement, which "insert" adds too. The kinds take turns,
// so that whatever else the machine does meets them alike, and each reports its median in microseconds.
func BenchmarkInbox(b *testing.B) {
	for _, k := range beds {
		b.Run(k.name, func(b *testing.B) {
			bed := NewBed(b, k.name)
			newLedger(b, bed)
			store := newStore(b, bed)
			insert := newInboxTexts(bed.Dialect).insert
			inbox := newInbox(b, store).Handler(book)
			kinds := []struct {
				name string
				run  func(ctx context.Context, id string) error
			}{
				{"bare", func(ctx context.Context, _ string) error {
					return transact(ctx, bed.DB, func(*sql.Tx) error { return nil })
				}},
				{"insert", func(ctx context.Context, id string) error {
					return transact(ctx, bed.DB, func(tx *sql.Tx) error {
						_, _, err := bed.Dialect.writeKept(ctx, tx, insert, "bare#orders|"+id, "owner", int64(1e9), 1, "")
						return err
					})
				}},
				{"inbox", func(ctx context.Context, id string) error { return inbox(ctx, order(id, 1)) }},
				{"duplicate", func(ctx context.Context, id string) error {
					s := newStore(b, bed) // remembers nothing
					s.ready.Store(true)
					return newInbox(b, s).Handler(func(context.Context, *sqsonce.Message, *sql.Tx) error { return errBoom })(ctx, order(id, 2))
				}},
			}
			took := make([][]time.Duration, len(kinds))
			n := 0
			for b.Loop() {
				n++
				for i, kind := range kinds {
					start := time.Now()
					if err := kind.run(b.Context(), fmt.Sprint(n)); err != nil {
						b.Fatalf("%s: %v", kind.name, err)
					}
					took[i] = append(took[i], time.Since(start))
				}
			}
			b.ReportMetric(0, "ns/op") // of all kinds together, and of no use
			for i, kind := range kinds {
				slices.Sort(took[i])
				b.ReportMetric(float64(took[i][len(took[i])/2].Nanoseconds())/1000, kind.name+"-µs")
			}
		})
	}
}

func transact(ctx context.Context, db *sql.DB, more func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := addTen(ctx, tx); err != nil {
		return err
	}
	if err := more(tx); err != nil {
		return err
	}
	return tx.Commit()
}
