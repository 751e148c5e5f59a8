package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// migrateWait bounds how long Migrate waits for another process that is at it.
const migrateWait = time.Minute

// Migrate creates the tables, or brings them to [SchemaVersion]: see [DDL]. Any number of processes may call it at once,
// and again at every start; where there is nothing to do it only reads. A schema of a later version is left alone.
//
// It needs the right to create tables, which nothing else here does: a deployment may call it with another user. On
// PostgreSQL and SQLite a migration that fails leaves nothing; on MySQL, where no statement of a schema can be rolled
// back, it leaves its first statements, and the next call goes on from there.
//
// A database of another kind than the dialect's, one that takes no writes, a closed pool and refused access are a
// [*DatabaseError].
func Migrate(ctx context.Context, db *sql.DB, d Dialect) error {
	return migrateTo(ctx, db, d, SchemaVersion)
}

func migrateTo(ctx context.Context, db *sql.DB, d Dialect, target int) error {
	if err := errors.Join(checkDB(db), d.check()); err != nil {
		return err
	}
	if err := identify(ctx, db, d); err != nil {
		return err
	}
	if v, err := version(ctx, db, d); err == nil && v >= target {
		return nil
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return explain(d, "migrate", err)
	}
	defer func() { _ = conn.Close() }() // back to the pool: nothing is in it that could be lost
	if d.engine == mysql {
		err = migrateMySQL(ctx, conn, d, target)
	} else {
		err = migrateInTx(ctx, conn, d, target)
	}
	return explain(d, "migrate", err)
}

// migrateInTx runs what is missing in one transaction, behind a lock that every other Migrate waits for: CREATE TABLE IF
// NOT EXISTS alone is no guard in PostgreSQL, where two at once both find nothing and one fails.
func migrateInTx(ctx context.Context, conn *sql.Conn, d Dialect, target int) error {
	begin := "BEGIN IMMEDIATE" // SQLite's lock: database/sql's own BEGIN would take it with the first write only, and fail then
	if d.engine == postgresql {
		begin = "BEGIN"
	}
	if _, err := conn.ExecContext(ctx, begin); err != nil {
		return err
	}
	err := func() error {
		if d.engine == postgresql {
			// Any number, as long as every Migrate of this prefix takes the same.
			if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_xact_lock(hashtext($1))", "sqsonce migrate "+d.prefix); err != nil {
				return err
			}
		}
		if err := apply(ctx, conn, d, target); err != nil {
			return err
		}
		_, err := conn.ExecContext(ctx, "COMMIT")
		return err
	}()
	if err != nil {
		// Not cut off by the caller: a connection must not go back to the pool with a transaction open.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ownTimeout)
		defer cancel()
		if _, rollbackErr := conn.ExecContext(ctx, "ROLLBACK"); rollbackErr != nil {
			discard(conn)
		}
	}
	return err
}

// migrateMySQL holds a lock of the server's while it runs what is missing, statement by statement.
func migrateMySQL(ctx context.Context, conn *sql.Conn, d Dialect, target int) error {
	name := "sqsonce migrate " + d.prefix
	var got sql.NullInt64
	if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, ?)", name, int(migrateWait.Seconds())).Scan(&got); err != nil {
		return err
	}
	if got.Int64 != 1 {
		return fmt.Errorf("another process has been migrating for %v", migrateWait)
	}
	// The lock is the connection's, so ending that frees it too.
	defer discard(conn)
	return apply(ctx, conn, d, target)
}

func apply(ctx context.Context, conn *sql.Conn, d Dialect, target int) error {
	for v := 1; v <= target; v++ {
		for _, s := range d.statements(v) {
			if _, err := conn.ExecContext(ctx, s); err != nil {
				return fmt.Errorf("version %d: %w", v, err)
			}
		}
	}
	return nil
}
