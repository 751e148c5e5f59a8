package sqlstore

import (
	"cmp"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Options configure [New].
type Options struct {
	// Timeout is how long one statement may run before the store gives it up. If its outcome is then unknown, the store
	// finds it out. Timeout doesn't cover the wait for a connection of the pool, which the caller's context limits.
	//
	// Default: 5 s. Limits: a negative value removes the limit.
	Timeout time.Duration
	// Logger gets the failures that aren't returned as errors: a failed round of [Store.SweepEvery], and a failure that an
	// [Inbox] could not record.
	//
	// Default: slog.Default().
	Logger *slog.Logger
}

const defaultTimeout = 5 * time.Second

// Store keeps the records in a table. It is safe for concurrent use. You don't close it, and it doesn't keep goroutines
// between calls. Close the pool yourself.
//
// # Statements
//
// Each store operation is one statement in a transaction of its own. The primary key and the WHERE clause decide it. A
// first delivery costs two statements, an INSERT and an UPDATE. A duplicate costs an INSERT that finds its key, and a read.
// If SQS says that it isn't the first receive, the duplicate costs the read only. A redelivery after a failure costs a read
// and two UPDATEs.
//
// The store repeats statements that ended in a deadlock or a serialization failure, with jitter, and those whose connection
// broke. The owner in the record shows whether an earlier copy was executed. One case remains: a server that needs minutes
// to notice that a client is gone. It may grant an acquire that waits for a lock there after the acquire's store has given
// up. The handler then doesn't run, and the key waits for one lease. Under OnCrashBlock and OnCrashDeadLetter this looks
// like a crash.
//
// The store doesn't depend on session state and doesn't prepare statements by name. With the drivers of MySQL and SQLite,
// an [Inbox] prepares its INSERT and its UPDATE through the protocol, once per connection. If the server refuses that, the
// inbox sends the text.
type Store struct {
	db      *sql.DB
	q       sqldb.Queryer // runs the statements of db
	dialect sqldb.Dialect
	base    *sqldb.DB // runs the statements
	logger  *slog.Logger
	place   *sqldb.Place
	stmts   func() statements
	checked atomic.Bool  // Check has succeeded
	allowed atomic.Int64 // see ServerConnections
	left    acquires
	pool    handlerPool
}

var (
	_ dedup.Store    = (*Store)(nil)
	_ dedup.Reopener = (*Store)(nil)
	_ dedup.Keeper   = (*Store)(nil)
	_ dedup.Lister   = (*Store)(nil)
)

// New returns a store on tables that [Migrate] has created. It doesn't call the database. The first acquire makes the
// checks of [Store.Check]. The error joins one [*sqsonce.OptionError] per argument that can't be used.
//
// Each running handler uses a connection of the pool for a moment at its start, at its end and at each renewal. If the
// handlers' own transactions use all connections of the pool, renewals wait and leases end. Set MaxOpenConns above the
// host's concurrency, or give the store a pool of its own.
func New(db *sql.DB, dialect Dialect, optFns ...func(*Options)) (*Store, error) {
	o := Options{}
	for _, fn := range optFns {
		fn(&o)
	}
	if err := errors.Join(checkDB(db), dialect.check()); err != nil {
		return nil, err
	}
	d := sqldb.Dialect(dialect).For(db)
	place := sqldb.NewPlace(d, schema.Table)
	return &Store{
		db: db, q: d.In(db), dialect: d, place: place, stmts: sqldb.Statements(place, newStatements),
		base:   sqldb.New(db, d, cmp.Or(o.Timeout, defaultTimeout), reporter),
		logger: host.QueuedLogger(o.Logger),
		pool:   handlerPool{db: db},
	}, nil
}

// MaxOpenConnections returns the limit of the pool (sql.DB.SetMaxOpenConns), or 0 if it is unlimited. Package dedup compares it with the
// host's Concurrency.
func (s *Store) MaxOpenConnections() int { return s.db.Stats().MaxOpenConnections }

// ServerConnections returns how many connections the server allows to all programs, or 0 if that is unknown, like with SQLite,
// before the first [Store.Check], and through a pooler with pgx. With other drivers it is the server's number also through a pooler.
// Package dedup compares it with the pool's limit.
func (s *Store) ServerConnections() int { return int(s.allowed.Load()) }

// The lengths of MySQL's columns in bytes. Keys of package dedup have at most 1,024.
const (
	maxKey   = 2048
	maxOwner = 255
)

func checkDB(db *sql.DB) error {
	if db == nil {
		return fieldError("db", "is nil")
	}
	return nil
}

func checkClaim(c dedup.Claim) error {
	errs := []error{checkText("Claim.Key", c.Key, maxKey), checkText("Claim.Owner", c.Owner, maxOwner)}
	if c.Lease < time.Millisecond {
		errs = append(errs, fieldError("Claim.Lease", "is less than 1 ms"))
	}
	return errors.Join(errs...)
}

// checkText refuses a text that one of the databases would refuse or change.
func checkText(field, text string, limit int) error {
	switch {
	case text == "":
		return fieldError(field, "is empty")
	case len(text) > limit:
		return fieldError(field, "is too long")
	case !utf8.ValidString(text) || strings.Contains(text, "\x00"):
		return fieldError(field, "is not UTF-8 text, or contains NUL")
	default:
		return nil
	}
}
