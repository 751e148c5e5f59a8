//go:build unix

// Package killtest_test kills relays and producers of an SQL outbox: see package outboxkill.
package killtest_test

import (
	"context"
	"database/sql"
	"os"
	"testing"

	"github.com/sqsonce/sqsonce/dedup/sqlstore"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/sqloutbox"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/proof/outboxkill"
)

const (
	envKind   = "OUTBOXKILL_KIND"
	envDriver = "OUTBOXKILL_DRIVER"
	envDSN    = "OUTBOXKILL_DSN"
)

func TestMain(m *testing.M) {
	outboxkill.Main(open)
	sqlbed.Main(m)
}

func TestKill(t *testing.T) {
	t.Parallel()
	for _, kind := range sqlbed.Names {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			made := sqlbed.New(t, kind)
			db := sqlbed.Open(t, made.Driver, made.DSN)
			if err := sqloutbox.Migrate(t.Context(), db, sqlstore.Dialect(made.Dialect)); err != nil {
				t.Fatal(err)
			}
			sqlbed.Exec(t, db, "CREATE TABLE versions (id VARCHAR(64) NOT NULL PRIMARY KEY, version INTEGER NOT NULL)")
			outboxkill.Run(t, outboxkill.Target{
				Env:      []string{envKind + "=" + kind, envDriver + "=" + made.Driver, envDSN + "=" + made.DSN},
				Versions: func(t *testing.T) map[string]int { return versions(t, db) },
				Left: func(t *testing.T) (left int) {
					if err := db.QueryRowContext(t.Context(), made.Dialect.SQL("SELECT COUNT(*) FROM {outbox}")).Scan(&left); err != nil {
						t.Fatal(err)
					}
					return left
				},
			})
		})
	}
}

func versions(t *testing.T, db *sql.DB) map[string]int {
	rows, err := db.QueryContext(t.Context(), "SELECT id, version FROM versions")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }() // rows.Err reports the errors
	all := map[string]int{}
	for rows.Next() {
		var group string
		var version int
		if err := rows.Scan(&group, &version); err != nil {
			t.Fatal(err)
		}
		all[group] = version
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// open is a child's.
func open() (outboxkill.Child, error) {
	db, err := sql.Open(os.Getenv(envDriver), os.Getenv(envDSN))
	if err != nil {
		return outboxkill.Child{}, err
	}
	dialect := sqlbed.KindOf(os.Getenv(envKind)).Dialect
	box, err := sqloutbox.New(db, sqlstore.Dialect(dialect), "orders", outboxkill.Source)
	return outboxkill.Child{Store: box, Commit: committer{db, dialect, box}.commit}, err
}

type committer struct {
	db      *sql.DB
	dialect sqldb.Dialect
	box     *sqloutbox.Outbox
}

// commit takes the next version and writes its event. The version's row excludes other transactions of the group.
func (c committer) commit(ctx context.Context, group string, next func(version int) fifo.Event) error {
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	result, err := tx.ExecContext(ctx, c.dialect.SQL("UPDATE versions SET version = version + 1 WHERE id = ?"), group)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil {
		return err
	} else if n == 0 { // of two producers one gets an error
		if _, err := tx.ExecContext(ctx, c.dialect.SQL("INSERT INTO versions (id, version) VALUES (?, 1)"), group); err != nil {
			return err
		}
	}
	var version int
	err = tx.QueryRowContext(ctx, c.dialect.SQL("SELECT version FROM versions WHERE id = ?"), group).Scan(&version)
	if err != nil {
		return err
	}
	if err := c.box.Add(ctx, tx, next(version)); err != nil {
		return err
	}
	return tx.Commit()
}
