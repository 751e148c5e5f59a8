package sqloutbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/sqlstore"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
)

// Options configure [New].
type Options struct {
	// GroupLocked says that the caller's transactions of a group exclude one another from before Add to the commit, by a row
	// lock or by a version that was read before Add and is checked after. Add then doesn't lock the group. If the caller's
	// claim is wrong, events of a group are published out of order. AddAt is refused.
	// Default: false.
	GroupLocked bool
	// Timeout is how long one statement of the relay may take before it is given up. If it is negative, statements are without a
	// timeout. Only its context limits Add.
	// Default: 5 s.
	Timeout time.Duration
}

const defaultTimeout = 5 * time.Second

// Outbox is one of the table's outboxes: the events of one queue. It is an [outbox.Store]. It is safe for concurrent use and
// doesn't need to be closed. The caller closes the pool.
//
// The first call that a relay makes does the same as [Outbox.Check], but for tables of an earlier version. The error of a database
// that can't be used matches [sqsonce.ErrMisconfigured] and [outbox.ErrDenied]. It does not match ErrDenied if the database is
// read-only, which a failover causes for a while, or has refused the login.
type Outbox struct {
	db          *sql.DB
	q           sqldb.Queryer // db, as the dialect says
	dialect     sqldb.Dialect
	name        string
	source      string
	groupLocked bool
	base        *sqldb.DB
	place       *sqldb.Place
	stmts       func() statements
	checked     atomic.Bool
	owner       string // begins the owner of each claim
	claims      claims
}

var _ outbox.Store = (*Outbox)(nil)

// names are those that every store of package outbox accepts.
var names = regexp.MustCompile(`^[A-Za-z0-9._/-]{1,64}$`)

// New returns the outbox of that name, 1 to 64 of A-Z a-z 0-9 . _ / -, in tables that [Migrate] has made. source is the
// namespace of the publisher that the relay will use. db is the relay's pool, on the primary. A process that only adds may pass
// nil. New doesn't call the database. The error joins one [*sqsonce.OptionError] per argument that can't be used.
func New(db *sql.DB, d sqlstore.Dialect, name, source string, optFns ...func(*Options)) (*Outbox, error) {
	o := Options{}
	for _, fn := range optFns {
		fn(&o)
	}
	dialect := sqldb.Dialect(d)
	errs := []error{dialect.Check(pkg), checkSource(source)}
	if !names.MatchString(name) {
		errs = append(errs, fieldError("name", fmt.Sprintf("is %.128q, must be 1 to 64 of A-Z a-z 0-9 . _ / -", name)))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	dialect = dialect.For(db)
	place := sqldb.NewPlace(dialect, "{outbox}")
	return &Outbox{
		db: db, q: dialect.In(db), dialect: dialect, name: name, source: source, groupLocked: o.GroupLocked,
		base:  sqldb.New(db, dialect, cmp.Or(o.Timeout, defaultTimeout), reporter),
		place: place, stmts: sqldb.Statements(place, newStatements), owner: rand.Text(),
	}, nil
}

// checkSource asks package fifo, which knows what a namespace is.
func checkSource(source string) error {
	err := fifo.Event{ID: "1", Group: "1", Body: "1"}.Check(source)
	if bad, ok := errors.AsType[*sqsonce.OptionError](err); ok {
		return fieldError("source", bad.Problem)
	}
	return err
}

// Source returns the namespace that the events are written for.
func (o *Outbox) Source() string { return o.source }

const pkg = "sqloutbox"

func fieldError(field, problem string) error {
	return &sqsonce.OptionError{Package: pkg, Field: field, Problem: problem}
}

var reporter = sqldb.Reporter{
	Package: pkg,
	Unusable: func(d sqldb.Dialect, problem error, detail string, err error) error {
		unusable := sqldb.NewDatabaseError(d, problem, detail, err)
		// A failover causes the one for a while, a change of the password the other. Relays go on after both.
		if problem == sqldb.ErrReadOnly || d.IsLogin(err) {
			return unusable
		}
		return fmt.Errorf("%w: %w", outbox.ErrDenied, unusable)
	},
	Final: func(err error) bool {
		_, unusable := errors.AsType[*sqldb.DatabaseError](err)
		return unusable || errors.Is(err, outbox.ErrNotFound) || errors.Is(err, outbox.ErrNotParked)
	},
}

// run runs a relay's operation until its result is known. f must be safe to repeat.
func (o *Outbox) run(ctx context.Context, op string, f func(context.Context) error) error {
	if o.db == nil {
		return fieldError("db", "is nil: this outbox can only add")
	}
	if err := o.ensureChecked(ctx); err != nil {
		return err
	}
	return o.base.Retry(ctx, op, f)
}

func checkLimit(limit int) error {
	if limit <= 0 {
		return fieldError("limit", "is not positive")
	}
	return nil
}
