package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Schema is the tables of one package. Its migrations are files: schema/VERSION_NAME.sql, for all dialects (see
// [Dialect.Migration]). A released file is never changed. Later versions only add, so that programs of the previous version
// go on while a deployment replaces them.
type Schema struct {
	Files fs.FS
	// Table is the placeholder of the table that has the versions.
	Table string
	// Reporter is for errors.
	Reporter Reporter
}

// Last is the last version: the number of files.
func (s Schema) Last() int { return len(s.files("*")) }

// files are the migrations of a version, of which each has one.
func (s Schema) files(version string) []string {
	files, err := fs.Glob(s.Files, "schema/"+version+"_*.sql")
	if err != nil {
		panic(err) // cannot happen: the pattern is good
	}
	return files
}

// Migration returns the statements of one version, the row in the versions' table last. Each may be run again, but for those
// that add a column: see apply.
func (s Schema) Migration(d Dialect, version int) []string {
	text, err := fs.ReadFile(s.Files, s.files(strconv.Itoa(version))[0])
	if err != nil {
		panic(err) // cannot happen: the files are embedded
	}
	return append(d.Migration(string(text)), d.SQL("INSERT INTO "+s.Table+" (version, applied_at) VALUES ("+strconv.Itoa(version)+", {now}) {keep version}"))
}

// Version returns the version of the tables in the database.
func (s Schema) Version(ctx context.Context, q Queryer, d Dialect) (int, error) {
	var v sql.NullInt64
	err := d.In(q).QueryRowContext(ctx, d.SQL("SELECT MAX(version) FROM "+s.Table)).Scan(&v)
	return int(v.Int64), err
}

// CheckVersion reports whether the tables are of the version least or a later one.
func (s Schema) CheckVersion(ctx context.Context, q Queryer, d Dialect, least int) error {
	v, err := s.Version(ctx, q, d)
	if err == nil && v < least {
		return s.Reporter.Unusable(d, ErrSchemaVersion, fmt.Sprintf("it is %d, and %d is needed", v, least), nil)
	}
	return s.Reporter.Explain(d, "schema version", err)
}

// DDL returns the statements that Migrate runs on an empty database: all versions, each with the row that records it.
func (s Schema) DDL(d Dialect) string {
	var b strings.Builder
	for v := 1; v <= s.Last(); v++ {
		for _, text := range s.Migration(d, v) {
			b.WriteString(text + ";\n\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Migrate brings the tables to the version target, unless they are of that or a later one. db and d are checked.
func (s Schema) Migrate(ctx context.Context, db *sql.DB, d Dialect, target int) error {
	d = d.For(db)
	if err := s.Reporter.CheckKind(ctx, db, d); err != nil {
		return err
	}
	if v, err := s.Version(ctx, db, d); err == nil && v >= target {
		return nil
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return s.Reporter.Explain(d, "migrate", err)
	}
	defer func() { _ = conn.Close() }() // returns it to the pool: no write is lost
	err = d.engine.migrate(ctx, conn, "sqsonce migrate "+d.prefix, func() error { return s.apply(ctx, conn, d, target) })
	return s.Reporter.Explain(d, "migrate", err)
}

// inTx applies a migration in one transaction, behind a lock that every other migration waits for. The statement lock takes
// it, with the migration's name, or begin does. CREATE TABLE IF NOT EXISTS is not enough in PostgreSQL: two at once both find
// no table, and one of them fails.
func inTx(begin, lock string) func(context.Context, *sql.Conn, string, func() error) error {
	return func(ctx context.Context, conn *sql.Conn, name string, apply func() error) error {
		if _, err := conn.ExecContext(ctx, begin); err != nil {
			return err
		}
		err := func() error {
			if lock != none {
				if _, err := conn.ExecContext(ctx, lock, name); err != nil {
					return err
				}
			}
			if err := apply(); err != nil {
				return err
			}
			_, err := conn.ExecContext(ctx, "COMMIT")
			return err
		}()
		if err != nil {
			// Also after ctx has ended: a connection with an open transaction must not return to the pool.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), CleanupTimeout)
			defer cancel()
			if _, rollbackErr := conn.ExecContext(ctx, "ROLLBACK"); rollbackErr != nil {
				Discard(conn)
			}
		}
		return err
	}
}

// apply runs the migrations. It skips a column or an index that exists, of an earlier call that ended between two statements.
func (s Schema) apply(ctx context.Context, conn *sql.Conn, d Dialect, target int) error {
	for v := 1; v <= target; v++ {
		for _, text := range s.Migration(d, v) {
			if _, err := conn.ExecContext(ctx, text); err != nil && d.Classify(err) != Exists {
				return fmt.Errorf("version %d: %w", v, err)
			}
		}
	}
	return nil
}
