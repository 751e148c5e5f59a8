package sqloutbox

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/dedup/sqlstore"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
)

// What is wrong with a database is found by Check, and by a relay's first call.
func TestProblems(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		kinds []string // default: all
		want  error
		make  func(t *testing.T, b *bed) (*sql.DB, sqlstore.Dialect)
	}{
		{"no table", nil, sqldb.ErrNoTable, func(_ *testing.T, b *bed) (*sql.DB, sqlstore.Dialect) {
			return b.db, b.dialect.WithPrefix("other_")
		}},
		{"an old schema", nil, sqldb.ErrSchemaVersion, func(t *testing.T, b *bed) (*sql.DB, sqlstore.Dialect) {
			b.exec(t, "UPDATE {outbox_schema} SET version = version - 2")
			return b.db, b.dialect
		}},
		{"a closed pool", nil, sqldb.ErrClosed, func(t *testing.T, b *bed) (*sql.DB, sqlstore.Dialect) {
			db := sqlbed.Open(t, b.Driver, b.DSN)
			must.Do(t, db.Close())
			return db, b.dialect
		}},
		{"another dialect", nil, sqldb.ErrDialect, func(_ *testing.T, b *bed) (*sql.DB, sqlstore.Dialect) {
			all := sqldb.Dialects()
			i := slices.IndexFunc(all, func(d sqldb.Dialect) bool { return d != b.Dialect })
			return b.db, sqlstore.Dialect(all[i])
		}},
		{"autocommit off", []string{"MariaDB", "MySQL"}, sqldb.ErrAutocommit, func(t *testing.T, b *bed) (*sql.DB, sqlstore.Dialect) {
			return sqlbed.Open(t, b.Driver, b.DSN+"&autocommit=0"), b.dialect
		}},
		{"read uncommitted", []string{"MariaDB"}, errIsolation, func(t *testing.T, b *bed) (*sql.DB, sqlstore.Dialect) {
			return sqlbed.Open(t, b.Driver, b.DSN+"&tx_isolation=%27READ-UNCOMMITTED%27"), b.dialect
		}},
		{"read uncommitted", []string{"MySQL"}, errIsolation, func(t *testing.T, b *bed) (*sql.DB, sqlstore.Dialect) {
			return sqlbed.Open(t, b.Driver, b.DSN+"&transaction_isolation=%27READ-UNCOMMITTED%27"), b.dialect
		}},
		{"read uncommitted", []string{"SQLite"}, errIsolation, func(t *testing.T, b *bed) (*sql.DB, sqlstore.Dialect) {
			return sqlbed.Open(t, b.Driver, b.DSN+"&_pragma=read_uncommitted(1)"), b.dialect
		}},
		{"a cache of the sequence", []string{"PostgreSQL"}, errIdentity, func(t *testing.T, b *bed) (*sql.DB, sqlstore.Dialect) {
			b.exec(t, "ALTER TABLE {outbox} ALTER COLUMN seq SET CACHE 2")
			return b.db, b.dialect
		}},
		{"a sequence that counts down", []string{"PostgreSQL"}, errIdentity, func(t *testing.T, b *bed) (*sql.DB, sqlstore.Dialect) {
			b.exec(t, "ALTER TABLE {outbox} ALTER COLUMN seq SET INCREMENT -1 SET MINVALUE -100")
			return b.db, b.dialect
		}},
		{"a sequence that starts again", []string{"PostgreSQL"}, errIdentity, func(t *testing.T, b *bed) (*sql.DB, sqlstore.Dialect) {
			b.exec(t, "ALTER TABLE {outbox} ALTER COLUMN seq SET CYCLE")
			return b.db, b.dialect
		}},
		{"no identity", []string{"PostgreSQL"}, errIdentity, func(t *testing.T, b *bed) (*sql.DB, sqlstore.Dialect) {
			b.exec(t, "ALTER TABLE {outbox} ALTER COLUMN seq DROP IDENTITY")
			return b.db, b.dialect
		}},
		{"no identity", []string{"MariaDB", "MySQL"}, errIdentity, func(t *testing.T, b *bed) (*sql.DB, sqlstore.Dialect) {
			b.exec(t, "ALTER TABLE {outbox} MODIFY seq bigint NOT NULL")
			return b.db, b.dialect
		}},
		{"numbers that are used again", []string{"SQLite"}, errIdentity, func(t *testing.T, b *bed) (*sql.DB, sqlstore.Dialect) {
			b.exec(t, "DROP TABLE {outbox}")
			for text := range strings.SplitSeq(DDL(b.dialect), ";\n") {
				if strings.Contains(text, "CREATE") {
					b.exec(t, strings.Replace(text, "AUTOINCREMENT", "", 1))
				}
			}
			return b.db, b.dialect
		}},
		{"a table of locks without its rows", []string{"MariaDB", "MySQL"}, errLockRows, func(t *testing.T, b *bed) (*sql.DB, sqlstore.Dialect) {
			b.exec(t, "TRUNCATE TABLE {outbox_locks}")
			return b.db, b.dialect
		}},
		{"access denied", []string{"PostgreSQL"}, sqldb.ErrAccessDenied, func(t *testing.T, b *bed) (*sql.DB, sqlstore.Dialect) {
			b.exec(t, "CREATE ROLE reader_"+b.Name+" LOGIN")
			t.Cleanup(func() { _, _ = b.db.Exec("DROP ROLE reader_" + b.Name) })
			return sqlbed.Open(t, b.Driver, strings.Replace(b.DSN, "postgres@", "reader_"+b.Name+"@", 1)), b.dialect
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			kinds := tt.kinds
			if kinds == nil {
				kinds = sqlbed.Names
			}
			for _, kind := range kinds {
				t.Run(kind, func(t *testing.T) {
					t.Parallel()
					b := newBed(t, kind)
					db, d := tt.make(t, b)
					o := must.Get(New(db, d, "box", source))(t)
					for name, err := range calls(t.Context(), o) {
						if !isProblem(err, tt.want) {
							t.Errorf("%s: got error %v, want %v", name, err, tt.want)
						}
					}
				})
			}
		})
	}
}

// A permission that is missing: the relay is told that the event is still there, and that it will be. A login that is refused is none.
func TestDeleteDenied(t *testing.T) {
	eachServer(t, func(t *testing.T, b *bed) {
		b.commit(t, b.outbox(t), events("g", 3)...)
		user, login := "u"+b.Name, "v"+b.Name
		create, drop := b.Writer(user, b.Name)
		if b.Stranger != nil {
			more, end := b.Stranger(login, user, b.Name)
			create, drop = append(create, more...), append(drop, end)
		}
		for _, text := range create {
			b.exec(t, text)
		}
		t.Cleanup(func() {
			for _, text := range drop {
				_, _ = b.db.Exec(text)
			}
		})
		es := read(t, b.outbox(t), "g", 2)
		for name, denied := range map[string]bool{user: true, login: false} {
			o := b.through(t, sqlbed.Open(t, b.Driver, strings.Replace(b.DSN, b.Login+"@", name+"@", 1)), "box")
			left, err := o.Delete(t.Context(), es)
			if !errors.Is(err, sqldb.ErrAccessDenied) || errors.Is(err, outbox.ErrDenied) != denied || ids(left) != ids(es) {
				t.Errorf("Delete by %s:%s are left and error %v, want ErrAccessDenied, ErrDenied %t", name, ids(left), err, denied)
			}
		}
	})
}

// Many processes start at once, each through a pool of its own, beside those that migrate the tables of package sqlstore.
func TestMigrateAtOnce(t *testing.T) {
	t.Parallel()
	for _, kind := range sqlbed.Names {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := emptyBed(t, kind)
			errs := make([]error, 12)
			var wg sync.WaitGroup
			for i := range errs {
				db := sqlbed.Open(t, b.Driver, b.DSN)
				wg.Go(func() {
					if i%3 == 0 {
						errs[i] = sqlstore.Migrate(t.Context(), db, b.dialect)
					} else {
						errs[i] = Migrate(t.Context(), db, b.dialect)
					}
				})
			}
			wg.Wait()
			must.Do(t, errors.Join(errs...))
			o := b.outbox(t)
			must.Do(t, o.Check(t.Context()))
			b.commit(t, o, event("g", "1"))
			must.Do(t, Migrate(t.Context(), b.db, b.dialect))
			if got := ids(read(t, o, "g", 1)); got != " 1" {
				t.Errorf("after a second Migrate:%s", got)
			}
		})
	}
}

// Another tool can create the tables from DDL's statements, and run them again. Prefixes are apart.
func TestDDLAndPrefix(t *testing.T) {
	t.Parallel()
	for _, kind := range sqlbed.Names {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := emptyBed(t, kind)
			prefixes := []string{"a_", "b_"}
			if b.HasServer() {
				b.exec(t, "CREATE SCHEMA app"+b.Name[:20])
				prefixes = append(prefixes, "app"+b.Name[:20]+".a_")
			}
			for _, prefix := range prefixes {
				d := b.dialect.WithPrefix(prefix)
				for range 2 {
					for text := range strings.SplitSeq(DDL(d), ";\n") {
						if strings.TrimSpace(text) != "" {
							b.exec(t, text)
						}
					}
				}
				o := must.Get(New(b.db, d, "box", source))(t)
				must.Do(t, o.Check(t.Context()))
				b.commit(t, o, event("g", prefix))
				if got := ids(read(t, o, "g", 10)); got != " "+prefix {
					t.Errorf("prefix %s: read%s", prefix, got)
				}
				claimed, err := o.Claim(t.Context(), []string{"g"}, time.Minute)
				if err != nil || len(claimed) != 1 {
					t.Errorf("prefix %s: claimed %v, %v", prefix, claimed, err)
				}
				if found, _, err := o.Groups(t.Context(), "", 10); err != nil || len(found) != 1 {
					t.Errorf("prefix %s: groups %v, %v", prefix, found, err)
				}
				if parked, err := o.Parked(t.Context(), 1); err != nil || len(parked) > 0 {
					t.Errorf("prefix %s: parked %v, %v", prefix, parked, err)
				}
			}
		})
	}
}

var _ outbox.Store = (*conformed)(nil)

// What a handler leaves in a session does not move events: 20 that were added on such sessions, each after another, are read once,
// and what is deleted on such a session is not read again on another. The first Add does not look in its transaction for the
// tables.
func TestSessionMovesNoEvent(t *testing.T) {
	eachBed(t, func(t *testing.T, b *bed) {
		schema, use := b.Elsewhere(b.Name)
		if schema != "" {
			b.exec(t, "CREATE SCHEMA "+schema)
			must.Do(t, Migrate(t.Context(), b.db, b.dialect.WithPrefix(schema+".sqsonce_")))
		}
		db := sqlbed.Open(t, b.Driver, b.DSN)
		db.SetMaxOpenConns(2)
		o := b.through(t, db, "box")
		for n := range 20 {
			tx, err := db.BeginTx(t.Context(), nil)
			if err == nil {
				_, err = tx.ExecContext(t.Context(), use)
			}
			if err == nil {
				err = o.Add(t.Context(), tx, event("g", fmt.Sprint(n)))
			}
			if err == nil {
				err = tx.Commit()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		relay := b.outbox(t)
		es := read(t, relay, "g", 100)
		if len(es) != 20 {
			t.Fatalf("read%s, want 20 events", ids(es))
		}
		sqlbed.Exec(t, b.db, use)
		must.Get(relay.Delete(t.Context(), es))(t)
		if left := read(t, b.through(t, sqlbed.Open(t, b.Driver, b.DSN), "box"), "g", 100); len(left) > 0 {
			t.Errorf("read again:%s", ids(left))
		}
	})
}
