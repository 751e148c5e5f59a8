package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/internal/granted"
)

// Check reports what is wrong with a database by a typed error, and so does the first acquire of a program that did not
// call Check.
func TestProblems(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		want error
		// make returns a database that cannot be used, and the dialect that a user has chosen for it.
		make func(t *testing.T, b *Bed) (*sql.DB, Dialect)
	}{
		{"no table", sqldb.ErrNoTable, func(t *testing.T, b *Bed) (*sql.DB, Dialect) { return b.DB, b.Dialect.WithPrefix("other_") }},
		{"an old schema", sqldb.ErrSchemaVersion, func(t *testing.T, b *Bed) (*sql.DB, Dialect) {
			d := b.Dialect.WithPrefix("old_")
			must.Do(t, migrateTo(t.Context(), b.DB, d, schema.Last()-1))
			return b.DB, d
		}},
		{"a closed pool", sqldb.ErrClosed, func(t *testing.T, b *Bed) (*sql.DB, Dialect) {
			db := b.Open(t)
			must.Do(t, db.Close())
			return db, b.Dialect
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			EachDialect(t, func(t *testing.T, b *Bed) {
				db, d := tt.make(t, b)
				expectProblem(t, db, d, tt.want)
			})
		})
	}
	t.Run("the dialect of another", func(t *testing.T) {
		EachDialect(t, func(t *testing.T, b *Bed) {
			for _, d := range sqldb.Dialects() {
				if Dialect(d) != b.Dialect {
					expectProblem(t, b.DB, Dialect(d), sqldb.ErrDialect)
				}
			}
		})
	})
}

func expectProblem(t *testing.T, db *sql.DB, d Dialect, want error) {
	t.Helper()
	s := must.Get(New(db, d))(t)
	for _, call := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"Check", s.Check},
		{"Acquire", func(ctx context.Context) error {
			_, err := granted.Lease(s.Acquire(ctx, dedup.Claim{Key: "c#k", Owner: "a", Lease: time.Minute, Retention: time.Hour, ReceiveCount: 1}))
			return err
		}},
	} {
		err := call.do(t.Context())
		e, ok := errors.AsType[*sqldb.DatabaseError](err)
		if !ok || !errors.Is(err, want) || e.Dialect != sqldb.Dialect(d) {
			t.Errorf("%s: got error %v, want *DatabaseError with %v", call.name, err, want)
		}
	}
}

// A server that takes no writes, such as a standby or a read-only replica, or a read-only connection.
func TestReadOnly(t *testing.T) {
	for _, k := range sqlbed.Kinds {
		if k.ReadOnlyDSN == nil {
			continue
		}
		t.Run(k.Label, func(t *testing.T) {
			t.Parallel()
			b := NewBed(t, k.Label)
			expectProblem(t, open(t, b.Driver, k.ReadOnlyDSN(b.DSN)), b.Dialect, sqldb.ErrReadOnly)
		})
	}
	each(t, mysqls, ownServer, func(t *testing.T, b *Bed) {
		exec(t, b.DB, "CREATE USER plain@'%'")
		exec(t, b.DB, "GRANT ALL ON test.* TO plain@'%'")
		plain := open(t, "mysql", replaceUser(b.DSN, "test", "plain"))
		s := storeOn(t, plain, MySQL)
		l := mustAcquire(t, s, claim("k", "a"))
		exec(t, b.DB, "SET GLOBAL read_only = 1")
		expectProblem(t, b.DB, MySQL, sqldb.ErrReadOnly) // the server would still let this user write
		expectProblem(t, plain, MySQL, sqldb.ErrReadOnly)
		if err := s.Complete(t.Context(), l, dedup.Result{}); !errors.Is(err, sqldb.ErrReadOnly) {
			t.Errorf("Complete: got error %v, want ErrReadOnly", err)
		}
	})
}

func TestAutocommitOff(t *testing.T) {
	each(t, mysqls, NewBed, func(t *testing.T, b *Bed) {
		expectProblem(t, open(t, "mysql", b.DSN+"&autocommit=0"), MySQL, sqldb.ErrAutocommit)
	})
}

func TestAccessDenied(t *testing.T) {
	each(t, servers, NewBed, func(t *testing.T, b *Bed) {
		create, drop := b.kind.Writer("r"+b.Name, b.Name)
		exec(t, b.DB, create[0]) // and no rights
		t.Cleanup(func() {
			for _, text := range drop {
				_, _ = b.DB.Exec(text)
			}
		})
		expectProblem(t, open(t, b.Driver, replaceUser(b.DSN, b.kind.Login, "r"+b.Name)), b.Dialect, sqldb.ErrAccessDenied)
	})
}

// Check reads how many connections the server allows to all programs, which dedup compares with the pool. Through a pooler that is
// unknown: the pooler shares fewer connections of the server.
func TestServerConnections(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		allowed := int64(0)
		if b.kind.Connections != "" {
			must.Do(t, b.DB.QueryRowContext(t.Context(), b.kind.Connections).Scan(&allowed))
		}
		expectServer(t, b, allowed)
	})
	t.Run("pooler", func(t *testing.T) {
		t.Parallel()
		expectServer(t, throughPgBouncer(t, NewBed(t, "PostgreSQL")), 0)
	})
}

func expectServer(t *testing.T, b *Bed, allowed int64) {
	t.Helper()
	s := newStore(t, b)
	once, inbox := must.Get(dedup.New(s, "once"))(t), newInbox(t, s)
	must.Do(t, s.Check(t.Context()))
	if got := []int64{once.Stats().ServerConnections, inbox.Stats().ServerConnections}; got[0] != allowed || got[1] != allowed {
		t.Errorf("the server allows %d connections, want %d", got, allowed)
	}
}
