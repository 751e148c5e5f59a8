package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/host"
)

// awayDB returns a pool on an address that refuses connections, or on a file that cannot be opened.
func awayDB(t testing.TB, b *Bed) *sql.DB {
	t.Helper()
	if !b.kind.HasServer() {
		return open(t, b.Driver, "file:"+filepath.Join(t.TempDir(), "no", "such", "folder"))
	}
	return open(t, b.Driver, strings.Replace(b.DSN, b.kind.Address(b.DSN), "127.0.0.1:1", 1)) // no server has this port, and no client
}

func awayStore(t testing.TB, b *Bed) *Store { return storeOn(t, awayDB(t, b), b.Dialect) }

// kind names what a host makes of an error.
func kind(err error) string {
	switch {
	case err == nil:
		return "nil"
	case errors.Is(err, sqsonce.ErrMisconfigured) && errors.Is(err, sqsonce.ErrUnavailable):
		return "misconfigured"
	case errors.Is(err, sqsonce.ErrUnavailable):
		return "unavailable"
	default:
		return "the rest"
	}
}

// The servers' errors by their numbers, where a test cannot provoke them all.
func TestKindsOfErrors(t *testing.T) {
	t.Parallel()
	for want, codes := range map[string]string{
		"unavailable": "08000 08001 08004 08006 53000 53100 53200 53300 57014 57P01 57P02 57P03 57P05 58030 40001 40P01 55P03 25006" +
			" 55000 XX000 25P03 26000 42P05 25P02 22003 23505 ZZ999",
		"misconfigured": "28000 28P01 3D000 3F000 42P01 42703 42501 57P04",
	} {
		for code := range strings.FieldsSeq(codes) {
			err := reporter.Explain(sqldb.Dialect(PostgreSQL), "op", fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: code}))
			if got := kind(err); got != want {
				t.Errorf("SQLSTATE %s: got %s, want %s: %v", code, got, want, err)
			}
		}
	}
	for want, numbers := range map[string][]uint16{
		"unavailable":   {1040, 1203, 1226, 1205, 1213, 1020, 1053, 1317, 1927, 3169, 4031, 1047, 1021, 1114, 1290, 1792, 1836, 3024, 1969, 9001, 3032, 1105, 1062, 1264, 60000},
		"misconfigured": {1044, 1045, 1142, 1143, 1698, 1129, 1130, 3118, 4151, 1049, 1046, 1146, 1054},
	} {
		for _, n := range numbers {
			err := reporter.Explain(sqldb.Dialect(MySQL), "op", fmt.Errorf("wrapped: %w", &mysqldriver.MySQLError{Number: n}))
			if got := kind(err); got != want {
				t.Errorf("error %d: got %s, want %s: %v", n, got, want, err)
			}
		}
	}
	for want, results := range map[string][]sqliteError{
		"unavailable":   {5, 6, 7, 10, 13, 14, 5 | 2<<8, 19, 25, 99},
		"misconfigured": {3, 8, 23, 26},
	} {
		for _, n := range results {
			if got := kind(reporter.Explain(sqldb.Dialect(SQLite), "op", n)); got != want {
				t.Errorf("result %d: got %s, want %s", n, got, want)
			}
		}
	}
	for _, d := range sqldb.Dialects() {
		for _, err := range []error{&net.OpError{Op: "dial", Err: errors.New("connection refused")}, context.DeadlineExceeded, sql.ErrConnDone} {
			if got := kind(reporter.Explain(d, "op", err)); got != "unavailable" {
				t.Errorf("%s: %v: got %s, want unavailable", d, err, got)
			}
		}
	}
}

type sqliteError = sqlbed.SQLiteError

// The same for errors that the databases return, through a Once and through an inbox: dedup passes them on.
func TestKindsOfDatabases(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		for _, c := range []struct {
			name, want string
			db         func() (*sql.DB, Dialect)
		}{
			{"refused connections", "unavailable", func() (*sql.DB, Dialect) { return awayDB(t, b), b.Dialect }},
			{"no table", "misconfigured", func() (*sql.DB, Dialect) { return b.DB, b.Dialect.WithPrefix("other_") }},
			{"no column", "misconfigured", func() (*sql.DB, Dialect) {
				d := b.Dialect.WithPrefix("narrow_")
				must.Do(t, Migrate(t.Context(), b.DB, d))
				exec(t, b.DB, d.sql("ALTER TABLE {records} DROP COLUMN receive_count"))
				return b.DB, d
			}},
			{"unknown database", "misconfigured", func() (*sql.DB, Dialect) {
				if !b.kind.HasServer() {
					return b.DB, b.Dialect.WithPrefix("other_")
				}
				return open(t, b.Driver, strings.Replace(b.DSN, b.Name, "nosuch", 1)), b.Dialect
			}},
		} {
			db, d := c.db()
			s := storeOn(t, db, d)
			once := must.Get(dedup.New(s, "billing"))(t)
			never := func() error {
				t.Errorf("%s: the handler ran", c.name)
				return nil
			}
			err := once.Handler(func(context.Context, *sqsonce.Message) error { return never() })(t.Context(), order(orderID, 1))
			if got := kind(err); got != c.want || errors.Is(err, dedup.ErrOutcomeUnknown) {
				t.Errorf("%s: got %s, want %s: %v", c.name, got, c.want, err)
			}
			inbox := newInbox(t, s).Handler(func(context.Context, *sqsonce.Message, *sql.Tx) error { return never() })
			if err := inbox(t.Context(), order(orderID, 1)); kind(err) != c.want {
				t.Errorf("%s, inbox: got %s, want %s: %v", c.name, kind(err), c.want, err)
			}
			if err := newDeferred(t, s).Receive(t.Context(), order(orderID, 1)); c.name != "no column" && kind(err) != c.want {
				t.Errorf("%s, deferred: got %s, want %s: %v", c.name, kind(err), c.want, err)
			}
		}
	})
}

// A wrong password, and more connections than the user may have.
func TestKindsOfLogins(t *testing.T) {
	each(t, mysqls, NewBed, func(t *testing.T, b *Bed) {
		user := "u" + b.Name[:20]
		exec(t, b.DB, "CREATE USER "+user+"@'%' IDENTIFIED BY 'secret' WITH MAX_USER_CONNECTIONS 1")
		exec(t, b.DB, "GRANT ALL ON "+b.Name+".* TO "+user+"@'%'")
		_, err := storeOn(t, open(t, "mysql", replaceUser(b.DSN, "test", user+":wrong")), MySQL).Acquire(t.Context(), claim("k", "a"))
		if kind(err) != "misconfigured" || !errors.Is(err, sqldb.ErrAccessDenied) {
			t.Errorf("wrong password: got error %v, want ErrAccessDenied and misconfigured", err)
		}
		db := open(t, "mysql", replaceUser(b.DSN, "test", user+":secret"))
		conn := must.Get(db.Conn(t.Context()))(t)
		defer func() { _ = conn.Close() }()
		if _, err := storeOn(t, db, MySQL).Acquire(t.Context(), claim("k", "a")); kind(err) != "unavailable" {
			t.Errorf("too many connections: got error %v, want unavailable", err)
		}
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		b := NewBed(t, "PostgreSQL")
		exec(t, b.DB, "CREATE ROLE crowd_"+b.Name+" LOGIN CONNECTION LIMIT 0")
		t.Cleanup(func() { _, _ = b.DB.Exec("DROP ROLE crowd_" + b.Name) })
		s := storeOn(t, open(t, "pgx", replaceUser(b.DSN, "postgres", "crowd_"+b.Name)), PostgreSQL)
		if _, err := granted.Lease(s.Acquire(t.Context(), claim("k", "a"))); kind(err) != "unavailable" {
			t.Errorf("too many connections: got error %v, want unavailable", err)
		}
		s = storeOn(t, open(t, "pgx", replaceUser(b.DSN, "postgres", "nobody")), PostgreSQL)
		if _, err := granted.Lease(s.Acquire(t.Context(), claim("k", "a"))); kind(err) != "misconfigured" {
			t.Errorf("unknown user: got error %v, want misconfigured", err)
		}
	})
}

// A lock that is held for longer than the store tries is unavailable. So is an acquire whose connection broke and that could
// not be repeated; its outcome is unknown.
func TestKindsOfWaits(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		s := storeOn(t, open(t, b.Driver, b.kind.ShortLocks(b.DSN)), b.Dialect)
		must.Do(t, s.Check(t.Context()))
		blocked(t, b, "k")
		if _, err := granted.Lease(s.Acquire(t.Context(), claim("k", "a"))); kind(err) != "unavailable" || errors.Is(err, dedup.ErrOutcomeUnknown) {
			t.Errorf("lock: got error %v, want unavailable, and the outcome known", err)
		}
	})
	for _, name := range servers {
		t.Run(name+"/broken", func(t *testing.T) {
			t.Parallel()
			b := NewBed(t, name)
			p, proxied := throughProxy(t, b)
			s := newStore(t, proxied)
			must.Do(t, s.Check(t.Context()))
			p.loseReply("INSERT INTO")
			_ = p.listen.Close() // no new connection
			_, err := granted.Lease(s.Acquire(t.Context(), claim("k", "a")))
			if kind(err) != "unavailable" || !errors.Is(err, dedup.ErrOutcomeUnknown) {
				t.Errorf("broken connection: got error %v, want unavailable, and the outcome unknown", err)
			}
		})
	}
}

// The database goes away while a handler runs: that it failed is no try of its event. A handler that fails by itself has
// tried.
func TestInboxDatabaseGoesAway(t *testing.T) {
	each(t, servers, NewBed, func(t *testing.T, b *Bed) {
		newLedger(t, b)
		p, proxied := throughProxy(t, b)
		short := func(o *dedup.Options) { o.CallTimeout = 3 * time.Second }
		log, lines := &bytes.Buffer{}, &host.Lines{}
		i := newInbox(t, newStore(t, proxied, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) }), short)
		fails := i.Handler(func(context.Context, *sqsonce.Message, *sql.Tx) error { return errBoom })
		if err := fails(t.Context(), order("43", 1)); !errors.Is(err, errBoom) || kind(err) != "the rest" {
			t.Errorf("handler fails: got error %v, want its own", err)
		}
		err := i.Handler(func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
			p.loseStatement("UPDATE ledger")
			_ = p.listen.Close() // no new connection
			return fmt.Errorf("booking: %w", book(ctx, m, tx))
		})(lines.Context(t.Context()), order(orderID, 1))
		if kind(err) != "unavailable" {
			t.Errorf("database away: got error %v, want unavailable", err)
		}
		lines.Flush(time.Minute)
		if !strings.Contains(log.String(), "failure not recorded") {
			t.Errorf("log: got %q, want a line about the failure", log)
		}
	})
}
