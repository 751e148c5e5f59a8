package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/sqsonce/sqsonce/dedup"
)

// Options configure [New].
type Options struct {
	// Timeout is how long one statement may take before the store gives it up and, where its outcome is then unknown,
	// finds out. It does not cover the wait for a connection of the pool, which the caller's context limits. Default: 5 s;
	// negative: none.
	Timeout time.Duration
	// Logger gets what no error carries: a failed round of [Store.SweepEvery]. Default: discard.
	Logger *slog.Logger
}

const defaultTimeout = 5 * time.Second

// Store keeps the records in a table. It is safe for concurrent use; there is nothing to close, and between calls it has
// no goroutine. The pool stays its owner's.
type Store struct {
	db      *sql.DB
	dialect Dialect
	timeout time.Duration
	logger  *slog.Logger
	text    texts
	turn    chan struct{} // full while a statement is at work; nil: they need not take turns
	ready   atomic.Bool   // the database has been checked
}

var _ dedup.Store = (*Store)(nil)

// New returns a store on tables that [Migrate] has made. It makes no call: the first acquire does what [Store.Check]
// does. The error joins one [*sqsonce.FieldError] per argument that cannot be used.
//
// Each handler at work takes a connection of the pool for an instant at its start, its end and each renewal. A pool whose
// connections are all held by the handlers' own transactions makes renewals wait, and leases end: set MaxOpenConns above
// the host's concurrency, or give the store a pool of its own.
func New(db *sql.DB, dialect Dialect, optFns ...func(*Options)) (*Store, error) {
	o := Options{}
	for _, fn := range optFns {
		fn(&o)
	}
	if err := errors.Join(checkDB(db), dialect.check()); err != nil {
		return nil, err
	}
	s := &Store{
		db: db, dialect: dialect, text: newTexts(dialect),
		timeout: max(0, cmp.Or(o.Timeout, defaultTimeout)),
		logger:  cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
	}
	if dialect.engine == sqlite {
		s.turn = make(chan struct{}, 1)
	}
	return s, nil
}

// Check asks the database whether it can be used: it is of the dialect's kind, the schema is there and of
// [SchemaVersion] or later, the server takes writes, and they are committed. The error joins one [*DatabaseError] per
// problem. That a SQLite file was opened read-only is known by the first write alone. The first acquire does the same; call it at start, or in a deployment's test, to know before a message comes.
func (s *Store) Check(ctx context.Context) error {
	err := s.retry(ctx, "check", func(ctx context.Context) error { return check(ctx, s.db, s.dialect) })
	if err == nil {
		s.ready.Store(true)
	}
	return err
}

// use is Check until it has succeeded once.
func (s *Store) use(ctx context.Context) error {
	if s.ready.Load() {
		return nil
	}
	return s.Check(ctx)
}

const (
	maxKey   = 2048 // bytes, of the column in MySQL; dedup's keys have at most 1,024
	maxOwner = 255
)

func checkClaim(c dedup.Claim) error {
	errs := []error{checkText("Claim.Key", c.Key, maxKey), checkText("Claim.Owner", c.Owner, maxOwner)}
	if c.Lease < time.Millisecond {
		errs = append(errs, fieldError("Claim.Lease", "is less than 1 ms"))
	}
	return errors.Join(errs...)
}

// checkText refuses what one of the databases would refuse, or would keep as something else.
func checkText(field, text string, most int) error {
	switch {
	case text == "":
		return fieldError(field, "is empty")
	case len(text) > most:
		return fieldError(field, "is too long")
	case !utf8.ValidString(text) || strings.Contains(text, "\x00"):
		return fieldError(field, "is no UTF-8 text without NUL")
	default:
		return nil
	}
}

// maxError is how much of a failure is kept, in bytes.
const maxError = 256

// errorText shortens a failure to whole characters, of those that every database keeps.
func errorText(err error) string {
	text := strings.ReplaceAll(err.Error()[:min(len(err.Error()), maxError)], "\x00", "")
	return strings.ToValidUTF8(text, "")
}
