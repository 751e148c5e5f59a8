package sqlstore

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/internal/testaws"
)

// Many processes start at once: each migrates through a pool of its own.
func TestMigrateAtOnce(t *testing.T) {
	each(t, sqlbed.Names, EmptyBed, func(t *testing.T, b *Bed) {
		const processes = 8
		var pools [processes]*sql.DB
		for i := range pools {
			pools[i] = b.Open(t)
			must.Do(t, pools[i].PingContext(t.Context()))
		}
		for round := range 8 {
			d := b.Dialect.WithPrefix(fmt.Sprintf("round%d_", round))
			if round%2 == 1 { // from an earlier version
				must.Do(t, migrateTo(t.Context(), b.DB, d, 1))
			}
			errs := make([]error, processes)
			start := make(chan struct{})
			var wg sync.WaitGroup
			for i, db := range pools {
				wg.Go(func() {
					<-start
					errs[i] = Migrate(t.Context(), db, d)
				})
			}
			close(start)
			wg.Wait()
			must.Do(t, errors.Join(errs...))
			must.Do(t, storeOn(t, b.DB, d).Check(t.Context()))
		}
	})
}

func TestMigrateFromAnEarlierVersion(t *testing.T) {
	each(t, sqlbed.Names, EmptyBed, func(t *testing.T, b *Bed) {
		for target := 1; target <= schema.Last(); target++ {
			must.Do(t, migrateTo(t.Context(), b.DB, b.Dialect, target))
			if got, err := schema.Version(t.Context(), b.DB, sqldb.Dialect(b.Dialect)); err != nil || got != target {
				t.Fatalf("version: got %d, %v, want %d", got, err, target)
			}
		}
		// The schema of a later release, while this program still runs.
		exec(t, b.DB, b.Dialect.sql("INSERT INTO {schema} (version, applied_at) VALUES (99, 0)"))
		must.Do(t, Migrate(t.Context(), b.DB, b.Dialect))
		must.Do(t, newStore(t, b).Check(t.Context()))
	})
}

// A later version may add a column and an index. A migration that ended between its statements goes on after them.
func TestMigrationAddsAColumn(t *testing.T) {
	later := sqldb.Schema{Table: "{schema}", Reporter: reporter, Files: fstest.MapFS{
		"schema/1_table.sql": {Data: []byte("CREATE TABLE IF NOT EXISTS {schema} (version integer NOT NULL PRIMARY KEY, applied_at bigint NOT NULL) {table};\n")},
		"schema/2_note.sql": {Data: []byte("ALTER TABLE {schema} ADD COLUMN {new} note {string 16};\n\n" +
			"CREATE INDEX IF NOT EXISTS {index}notes ON {schema} (note);\n")},
	}}
	EachDialect(t, func(t *testing.T, b *Bed) {
		d := sqldb.Dialect(b.Dialect.WithPrefix("later_"))
		for range 2 {
			must.Do(t, later.Migrate(t.Context(), b.DB, d, later.Last()))
			if v, err := later.Version(t.Context(), b.DB, d); err != nil || v != 2 {
				t.Errorf("version: got %d and error %v, want 2", v, err)
			}
			exec(t, b.DB, d.SQL("UPDATE {schema} SET note = 'x'"))
			exec(t, b.DB, d.SQL("DELETE FROM {schema} WHERE version = 2"))
		}
	})
}

// A migration that fails changes nothing, on databases that can roll it back.
func TestMigrateFails(t *testing.T) {
	t.Parallel()
	for _, k := range sqlbed.Kinds {
		t.Run(k.Label, func(t *testing.T) {
			t.Parallel()
			if !k.RollsBack {
				t.Skip("it cannot roll back what makes tables")
			}
			b := EmptyBed(t, k.Label)
			b.DB.SetMaxOpenConns(1)
			// The second migration fails at this view.
			exec(t, b.DB, "CREATE VIEW sqsonce_inbox AS SELECT 1 AS id")
			if err := Migrate(t.Context(), b.DB, b.Dialect); err == nil {
				t.Fatal("Migrate with a view in the way: got nil, want an error")
			}
			if _, err := schema.Version(t.Context(), b.DB, sqldb.Dialect(b.Dialect)); b.Dialect.classify(err) != sqldb.NoTable {
				t.Errorf("after a failed Migrate: got %v, want no table", err)
			}
			exec(t, b.DB, "DROP VIEW sqsonce_inbox") // works only if the one connection has no open transaction
			must.Do(t, Migrate(t.Context(), b.DB, b.Dialect))
		})
	}
}

// Another tool can create the tables from DDL's statements, and run them again.
func TestDDL(t *testing.T) {
	each(t, sqlbed.Names, EmptyBed, func(t *testing.T, b *Bed) {
		for range 2 {
			for s := range strings.SplitSeq(DDL(b.Dialect), ";\n") {
				if strings.TrimSpace(s) != "" {
					exec(t, b.DB, s)
				}
			}
		}
		s := newStore(t, b)
		must.Do(t, s.Check(t.Context()))
		mustComplete(t, s, mustAcquire(t, s, claim("k", "a")))
	})
}

// Stores with different prefixes are independent, also if only the database schema differs.
func TestPrefix(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		prefixes := []string{"a_", "b_"}
		if b.kind.HasServer() {
			exec(t, b.DB, "CREATE SCHEMA app"+b.Name[:20])
			prefixes = append(prefixes, "app"+b.Name[:20]+".a_")
		}
		for _, prefix := range prefixes {
			d := b.Dialect.WithPrefix(prefix)
			must.Do(t, Migrate(t.Context(), b.DB, d))
			s := storeOn(t, b.DB, d)
			mustAcquire(t, s, claim("k", "owner of "+prefix)) // leased in no other
			if n, err := s.Sweep(t.Context()); n != 0 || err != nil {
				t.Errorf("Sweep: got %d, %v", n, err)
			}
		}
	})
}

func TestArguments(t *testing.T) {
	t.Parallel()
	db := open(t, "sqlite", ":memory:")
	for _, tt := range []struct {
		name   string
		db     *sql.DB
		d      Dialect
		fields []string
	}{
		{"nothing", nil, Dialect{}, []string{"db", "dialect"}},
		{"no dialect", db, Dialect{}, []string{"dialect"}},
		{"a quote", db, MySQL.WithPrefix("x`; DROP TABLE y; --"), []string{"dialect"}},
		{"capitals", db, PostgreSQL.WithPrefix("Once_"), []string{"dialect"}},
		{"empty prefix", db, SQLite.WithPrefix(""), []string{"dialect"}},
		{"a schema in SQLite", db, SQLite.WithPrefix("app.once_"), []string{"dialect"}},
		{"a long prefix", db, PostgreSQL.WithPrefix(strings.Repeat("x", 41)), []string{"dialect"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := New(tt.db, tt.d)
			for _, call := range []error{err, Migrate(t.Context(), tt.db, tt.d)} {
				for _, field := range tt.fields {
					if !hasField(call, field) {
						t.Errorf("got error %v, want a *sqsonce.OptionError of %s", call, field)
					}
				}
			}
		})
	}
}

func hasField(err error, field string) bool {
	return slices.Contains(testaws.Fields(err), field) && strings.HasPrefix(err.Error(), "sqlstore: ")
}

// A dialect has its tables, and a database on which the tests run.
func TestDialectsAreComplete(t *testing.T) {
	t.Parallel()
	for _, d := range sqldb.Dialects() {
		if text := DDL(Dialect(d)); !strings.Contains(text, "sqsonce_records") || !strings.Contains(text, "sqsonce_inbox") {
			t.Errorf("%s: the tables are not in its DDL", d)
		}
		if !slices.ContainsFunc(sqlbed.Kinds, func(k sqlbed.Kind) bool { return k.Dialect == d }) {
			t.Errorf("%s: sqlbed has no kind of it", d)
		}
	}
}
