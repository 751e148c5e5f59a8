package sqlstore

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/internal/operate"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
)

// listPage is how many rows a statement of List reads. They may have large results. Tests have a smaller one.
var listPage = 100

// List implements [dedup.Lister]. It lists the records in the order of their keys' bytes. A statement reads 100 rows, by
// the primary key. While its caller's loop runs, List doesn't keep a statement or a transaction open.
func (s *Store) List(ctx context.Context, optFns ...func(*dedup.ListOptions)) iter.Seq2[dedup.Record, error] {
	return func(yield func(dedup.Record, error) bool) {
		l := operate.NewList(time.Now, optFns)
		where := ""
		args := []any{max(l.After, l.Prefix())}
		if l.Consumer != "" {
			where = " AND id < ?"
			args = append(args, l.Consumer+"$") // which follows '#'
		}
		if l.OpenOnly() {
			where += " AND status <> 'COMPLETED'"
		}
		text := "SELECT " + recordColumns + " FROM {records} WHERE id > ?" + where + " ORDER BY id LIMIT " + strconv.Itoa(listPage)
		for more := true; more; {
			sent := time.Now()
			page, err := s.page(ctx, text, args)
			if err != nil {
				yield(dedup.Record{}, err)
				return
			}
			for _, row := range page {
				if row.err != nil && !yield(dedup.Record{Lease: dedup.Lease{Key: row.key}}, row.err) || row.err == nil && !l.Send(row.public(sent), yield) {
					return
				}
				args[0] = row.key
			}
			more = len(page) == listPage
		}
	}
}

// listed is a row of a list. err says that it is not a record.
type listed struct {
	record
	err error
}

func (s *Store) page(ctx context.Context, text string, args []any) (all []listed, err error) {
	err = s.retry(ctx, "list", func(ctx context.Context) (err error) {
		all, err = sqldb.All(ctx, s.q, readListed, s.place.Dialect().SQL(text), args...)
		return err
	})
	return all, err
}

func readListed(row sqldb.Row) (listed, error) {
	r, err := scan(row)
	if err != nil && !errors.Is(err, dedup.ErrRecord) {
		return listed{}, err
	}
	return listed{r, err}, nil
}
