package sqldb

import (
	"context"
	"fmt"
)

// CheckKind reports whether the database is of the dialect's kind.
func (r Reporter) CheckKind(ctx context.Context, q Queryer, d Dialect) error {
	q = d.In(q)
	var version string
	err := q.QueryRowContext(ctx, d.engine.identity).Scan(&version)
	switch {
	case err == nil && d.engine.is(version):
		return nil
	case err == nil:
		return r.Unusable(d, ErrDialect, fmt.Sprintf("it is %q", version), nil)
	case d.Classify(err) == ConnPoolClosed:
		return r.Explain(d, "identify", err)
	}
	// The dialect may not recognise the errors of another database's driver, so ask for the other kinds too.
	for _, other := range engines {
		var version string
		if other != d.engine && q.QueryRowContext(ctx, other.identity).Scan(&version) == nil && other.is(version) {
			return r.Unusable(d, ErrDialect, "it is "+other.name+" "+version, err)
		}
	}
	return r.Explain(d, "identify", err)
}

// CheckWrites reports whether writes are accepted and committed. A replica may still accept the writes of a privileged
// user. They are lost later, or break the replication.
func (r Reporter) CheckWrites(ctx context.Context, q Queryer, d Dialect) error {
	q = d.In(q)
	var yes int
	if err := q.QueryRowContext(ctx, d.engine.readOnly).Scan(&yes); err != nil {
		return r.Explain(d, "read only", err)
	}
	if yes != 0 {
		return r.Unusable(d, ErrReadOnly, "", nil)
	}
	if d.engine.autocommit == none {
		return nil
	}
	if err := q.QueryRowContext(ctx, d.engine.autocommit).Scan(&yes); err != nil {
		return r.Explain(d, "autocommit", err)
	}
	if yes == 0 {
		return r.Unusable(d, ErrAutocommit, "", nil)
	}
	return nil
}
