package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
)

// BenchmarkInbox measures what an inbox adds to a bare business transaction, compared with what the same
// INSERT and UPDATE add when the transaction sends them itself: by the same driver, as text, on a context that can be
// cancelled, like a host's.
//
// An iteration is a round in which the kinds take turns, so that other load on the machine affects them equally. Each kind
// reports the median of its rounds' medians in microseconds. The added time is computed within a round. -spread-µs is the
// width of the middle half of the rounds; smaller differences are not significant.
//
// Before each message there is a short busy wait that is not measured. A transaction that follows another one at once is
// faster, the bare one most of all: each microsecond of work before its BEGIN would seem to cost three.
//
//	go test -run '^$' -bench Inbox -benchtime 60x
func BenchmarkInbox(b *testing.B) {
	const messages = 40 // of each kind in a round
	for _, name := range sqlbed.Names {
		b.Run(name, func(b *testing.B) {
			kinds := inboxKinds(b, NewBed(b, name))
			took, adds := make([][]float64, len(kinds)), make([][]float64, len(kinds))
			n := 0
			for b.Loop() {
				round := make([][]float64, len(kinds))
				for range messages {
					n++
					for i, kind := range kinds {
						for idle := time.Now(); time.Since(idle) < 100*time.Microsecond; {
						}
						start := time.Now()
						if err := kind.run(b.Context(), fmt.Sprint(n)); err != nil {
							b.Fatalf("%s: %v", kind.name, err)
						}
						round[i] = append(round[i], float64(time.Since(start).Nanoseconds())/1000)
					}
				}
				bare := quantile(round[0], 1, 2)
				for i := range kinds {
					m := quantile(round[i], 1, 2)
					took[i], adds[i] = append(took[i], m), append(adds[i], m-bare)
				}
			}
			b.ReportMetric(0, "ns/op") // hides the time of all kinds together
			for i, kind := range kinds {
				b.ReportMetric(quantile(took[i], 1, 2), kind.name+"-µs")
				if i > 0 {
					b.ReportMetric(quantile(adds[i], 1, 2), kind.name+"-adds-µs")
					b.ReportMetric(quantile(adds[i], 3, 4)-quantile(adds[i], 1, 4), kind.name+"-spread-µs")
				}
			}
		})
	}
}

// quantile sorts its argument.
func quantile(s []float64, n, of int) float64 {
	slices.Sort(s)
	return s[min(len(s)*n/of, len(s)-1)]
}

type inboxKind struct {
	name string
	run  func(ctx context.Context, id string) error
}

func inboxKinds(b *testing.B, bed *Bed) []inboxKind {
	newLedger(b, bed)
	store := newStore(b, bed)
	complete := newInboxStatements(sqldb.Dialect(bed.Dialect)).complete
	inbox := newInbox(b, store).Handler(book)
	again := newStore(b, bed)
	must.Do(b, again.Check(b.Context()))
	return []inboxKind{
		{"bare", func(ctx context.Context, _ string) error {
			return transact(ctx, bed.DB, nil, nil)
		}},
		{"statements", func(ctx context.Context, id string) error {
			key := "bare#orders|" + id
			return transact(ctx, bed.DB, func(tx *sql.Tx) error {
				_, _, err := sqldb.Dialect(bed.Dialect).WriteReturning(ctx, tx, store.stmts().insert, insertArgs(claim(key, "owner"))...)
				return err
			}, func(tx *sql.Tx) error {
				_, err := sqldb.Dialect(bed.Dialect).Write(ctx, tx, complete, completeArgs(dedup.Lease{Key: key, Owner: "owner"}, dedup.Result{})...)
				return err
			})
		}},
		{"inbox", func(ctx context.Context, id string) error { return inbox(ctx, order(id, 1)) }},
		{"duplicate", func(ctx context.Context, id string) error {
			return newInbox(b, again).Handler(func(context.Context, *sqsonce.Message, *sql.Tx) error { // a new inbox has nothing cached
				return errBoom
			})(ctx, order(id, 2))
		}},
	}
}

// transact is a business transaction with a statement before and one after it, if not nil.
func transact(ctx context.Context, db *sql.DB, first, last func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if first != nil {
		if err := first(tx); err != nil {
			return err
		}
	}
	if err := addTen(ctx, tx); err != nil {
		return err
	}
	if last != nil {
		if err := last(tx); err != nil {
			return err
		}
	}
	return tx.Commit()
}
