package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// schemaFiles are the migrations: schema/DIALECT/VERSION_NAME.sql. A released file is never changed. Later versions only
// add, so that programs of the previous version go on while a deployment replaces them.
//
//go:embed schema
var schemaFiles embed.FS

// SchemaVersion is the version of the schema that this package needs. A later version works too.
const SchemaVersion = 2

// migrationNames are in order, version 1 first.
var migrationNames = [SchemaVersion]string{"records", "inbox"}

// migration returns the statements of one version, the row in the schema's table last. Each may be run again.
func (d Dialect) migration(version int) []string {
	name := fmt.Sprintf("schema/%s/%d_%s.sql", strings.ToLower(d.engine.name), version, migrationNames[version-1])
	text, err := schemaFiles.ReadFile(name)
	if err != nil {
		panic(err) // cannot happen: the files are embedded
	}
	var all []string
	for s := range strings.SplitSeq(string(text), ";\n") {
		if s = strings.TrimSpace(s); s != "" {
			all = append(all, d.sql(s))
		}
	}
	return append(all, d.sql(versionRow(d, version)))
}

func versionRow(d Dialect, version int) string {
	row := "INSERT INTO {schema} (version, applied_at) VALUES (" + strconv.Itoa(version) + ", {now}) "
	if d.engine.ignore == "" {
		return row + "ON DUPLICATE KEY UPDATE version = version"
	}
	return row + "ON CONFLICT (version) DO NOTHING"
}

// version returns the version of the schema in the database.
func version(ctx context.Context, q queryer, d Dialect) (int, error) {
	var v sql.NullInt64
	err := q.QueryRowContext(ctx, d.sql("SELECT MAX(version) FROM {schema}")).Scan(&v)
	return int(v.Int64), err
}

// DDL returns the statements that [Migrate] runs on an empty database, for reading or for another tool: all versions, each
// with the row that records it. They may be run again. DDL panics if [New] would refuse the dialect.
func DDL(d Dialect) string {
	if err := d.check(); err != nil {
		panic(err)
	}
	var b strings.Builder
	for v := 1; v <= SchemaVersion; v++ {
		for _, s := range d.migration(v) {
			b.WriteString(s + ";\n\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// migrateWait limits how long Migrate waits for another process that migrates, on MySQL.
const migrateWait = time.Minute

// Migrate creates the tables, or brings them to [SchemaVersion]: see [DDL]. Any number of processes may call it at once,
// and at every start. If there is nothing to do, it only reads. It does not change a schema of a later version.
//
// Migrate needs the right to create tables, which the rest of the package does not: a deployment may call it with another
// user. On PostgreSQL and SQLite a migration that fails changes nothing. MySQL cannot roll back the statements of a
// schema: there the first statements stay, and the next call continues after them.
//
// The error is a [*DatabaseError] if the database is of another kind than the dialect's, is read-only, refuses access or
// its pool is closed.
func Migrate(ctx context.Context, db *sql.DB, d Dialect) error {
	return migrateTo(ctx, db, d, SchemaVersion)
}

func migrateTo(ctx context.Context, db *sql.DB, d Dialect, target int) error {
	if err := errors.Join(checkDB(db), d.check()); err != nil {
		return err
	}
	if err := checkKind(ctx, db, d); err != nil {
		return err
	}
	if v, err := version(ctx, db, d); err == nil && v >= target {
		return nil
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return explain(d, "migrate", err)
	}
	defer func() { _ = conn.Close() }() // returns it to the pool: no write is lost
	if d.engine == mysql {
		err = migrateMySQL(ctx, conn, d, target)
	} else {
		err = migrateInTx(ctx, conn, d, target)
	}
	return explain(d, "migrate", err)
}

// migrateInTx applies the missing versions in one transaction, behind a lock that every other Migrate waits for. CREATE
// TABLE IF NOT EXISTS is not enough in PostgreSQL: two at once both find no table, and one of them fails.
func migrateInTx(ctx context.Context, conn *sql.Conn, d Dialect, target int) error {
	begin := "BEGIN IMMEDIATE" // takes SQLite's lock; database/sql's own BEGIN takes it at the first write, and may fail then
	if d.engine == postgresql {
		begin = "BEGIN"
	}
	if _, err := conn.ExecContext(ctx, begin); err != nil {
		return err
	}
	err := func() error {
		if d.engine == postgresql {
			// Any number works, as long as every Migrate of this prefix uses the same one.
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
		// Also after ctx has ended: a connection with an open transaction must not return to the pool.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		if _, rollbackErr := conn.ExecContext(ctx, "ROLLBACK"); rollbackErr != nil {
			discard(conn)
		}
	}
	return err
}

// migrateMySQL applies the missing versions statement by statement, behind a named lock of the server.
func migrateMySQL(ctx context.Context, conn *sql.Conn, d Dialect, target int) error {
	name := "sqsonce migrate " + d.prefix
	var got sql.NullInt64
	if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, ?)", name, int(migrateWait.Seconds())).Scan(&got); err != nil {
		return err
	}
	if got.Int64 != 1 {
		return fmt.Errorf("lock %q: another process has been migrating for more than %v; call Migrate again", name, migrateWait)
	}
	// The lock belongs to the connection: closing it frees the lock.
	defer discard(conn)
	return apply(ctx, conn, d, target)
}

func apply(ctx context.Context, conn *sql.Conn, d Dialect, target int) error {
	for v := 1; v <= target; v++ {
		for _, s := range d.migration(v) {
			if _, err := conn.ExecContext(ctx, s); err != nil {
				return fmt.Errorf("version %d: %w", v, err)
			}
		}
	}
	return nil
}
