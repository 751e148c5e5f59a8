package main

import (
	"cmp"
	"context"
	"errors"
	"os"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/sqloutbox"
	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/examples/orders/publishing"
	"github.com/sqsonce/sqsonce/fifo"
)

func (l *ledger) outbox() (*sqloutbox.Outbox, error) {
	return sqloutbox.New(l.db, l.dialect, cmp.Or(os.Getenv("OUTBOX"), "orders"), publishing.Namespace())
}

func (l *ledger) orders(ctx context.Context) (publishing.Outbox, error) {
	box, err := l.outbox()
	if err != nil {
		return publishing.Outbox{}, err
	}
	return publishing.Outbox{Store: box, Commit: func(ctx context.Context, _ string, events []orders.Event) error {
		return l.place(ctx, box, events)
	}}, box.Check(ctx)
}

// place places orders and adds their events, in one transaction. Those that were placed before are left out: the transaction may
// have been committed while its answer was lost.
func (l *ledger) place(ctx context.Context, box *sqloutbox.Outbox, events []orders.Event) (err error) {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	var added []fifo.Event
	for _, e := range events {
		n := 0
		if err := tx.QueryRowContext(ctx, l.countOrder, e.ID).Scan(&n); err != nil {
			return err
		}
		if n > 0 {
			continue
		}
		if _, err := tx.ExecContext(ctx, l.addOrder, e.ID, e.Account, e.Body); err != nil {
			return err
		}
		added = append(added, publishing.EventOf(e))
	}
	if err := box.Add(ctx, tx, added...); err != nil { // last: others of the accounts wait for its locks
		return err
	}
	return tx.Commit()
}
