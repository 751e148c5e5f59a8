package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

func checkDB(db *sql.DB) error {
	if db == nil {
		return fieldError("db", "is nil")
	}
	return nil
}

// identify reports whether the database is of the dialect's kind.
func identify(ctx context.Context, q queryer, d Dialect) error {
	var answer string
	err := q.QueryRowContext(ctx, d.engine.identity).Scan(&answer)
	switch {
	case err == nil && d.engine.is(answer):
		return nil
	case err == nil:
		return &DatabaseError{Dialect: d, Problem: ErrDialect, Detail: fmt.Sprintf("it is %q", answer)}
	case d.classify(err) == closed:
		return explain(d, "identify", err)
	}
	// The dialect's own classes may not read another driver's errors: ask the others' questions before giving up.
	for _, other := range []Dialect{PostgreSQL, MySQL, SQLite} {
		var answer string
		if other.engine != d.engine && q.QueryRowContext(ctx, other.engine.identity).Scan(&answer) == nil && other.engine.is(answer) {
			return &DatabaseError{Dialect: d, Problem: ErrDialect, Detail: "it is " + other.String() + " " + answer, Err: err}
		}
	}
	return explain(d, "identify", err)
}

// version returns the schema's.
func version(ctx context.Context, q queryer, d Dialect) (int, error) {
	var v sql.NullInt64
	err := q.QueryRowContext(ctx, d.sql("SELECT MAX(version) FROM {schema}")).Scan(&v)
	return int(v.Int64), err
}

// check reports everything that is wrong with the database for a user of the tables: see Store.Check.
func check(ctx context.Context, q queryer, d Dialect) error {
	if err := identify(ctx, q, d); err != nil {
		return err
	}
	v, err := version(ctx, q, d)
	if err == nil && v < SchemaVersion {
		err = &DatabaseError{Dialect: d, Problem: ErrSchemaVersion, Detail: fmt.Sprintf("it is %d, %d is needed", v, SchemaVersion)}
	}
	return errors.Join(explain(d, "schema version", err), checkWrites(ctx, q, d))
}

// checkWrites reports whether what is written will be there. A server that is a replica may still let a privileged user
// write, and what was written there is lost or breaks the replication.
func checkWrites(ctx context.Context, q queryer, d Dialect) error {
	var yes int
	if err := q.QueryRowContext(ctx, d.engine.readOnly).Scan(&yes); err != nil {
		return explain(d, "read only", err)
	}
	if yes != 0 {
		return &DatabaseError{Dialect: d, Problem: ErrReadOnly}
	}
	if d.engine != mysql {
		return nil
	}
	if err := q.QueryRowContext(ctx, "SELECT @@session.autocommit").Scan(&yes); err != nil {
		return explain(d, "autocommit", err)
	}
	if yes == 0 {
		return &DatabaseError{Dialect: d, Problem: ErrAutocommit}
	}
	return nil
}
