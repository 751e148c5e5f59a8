package sqloutbox

import (
	"context"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/fifo/outbox"
)

// Groups implements [outbox.Store], in the order of the names' bytes. It is one statement, which looks at the first and the
// last row of each group it returns, so its cost doesn't depend on the number of events.
func (o *Outbox) Groups(ctx context.Context, after string, limit int) (found []outbox.Group, next string, err error) {
	if err := checkLimit(limit); err != nil {
		return nil, "", err
	}
	err = o.run(ctx, "find groups", func(ctx context.Context) (err error) {
		found, err = o.findGroups(ctx, after, limit)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	if len(found) == limit {
		next = found[limit-1].Name
	}
	return found, next, nil
}

func (o *Outbox) findGroups(ctx context.Context, after string, limit int) ([]outbox.Group, error) {
	return sqldb.All(ctx, o.q, func(r sqldb.Row) (g outbox.Group, err error) {
		var ms int64
		var parked string
		err = r.Scan(&g.Name, &g.Last, &ms, &parked)
		g.Age = age(ms)
		// An unknown mark is for Read, which names the event.
		g.Parked, _ = policyOf(parked)
		return g, err
	}, o.stmts().groups, o.stmts().groupArgs(o.name, after, limit)...)
}
