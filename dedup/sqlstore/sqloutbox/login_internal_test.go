package sqloutbox

import (
	"errors"
	"fmt"
	"testing"

	"github.com/sqsonce/sqsonce/dedup/sqlstore"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/fifo/outbox"
)

type stateError string

func (e stateError) Error() string    { return "refused" }
func (e stateError) SQLState() string { return string(e) }

// MySQLError has the name by which the driver's error is known.
type MySQLError struct{ Number uint16 }

func (e *MySQLError) Error() string { return "refused" }

// A refused statement ends a relay whose deletes it refuses. A refused login does not: a password that changes refuses it for a
// moment.
func TestLoginIsNoPermission(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		d      sqldb.Dialect
		err    error
		denied bool
	}{
		{sqldb.PostgreSQL, stateError("28P01"), false},
		{sqldb.PostgreSQL, stateError("28000"), false},
		{sqldb.PostgreSQL, stateError("3D000"), false},
		{sqldb.PostgreSQL, stateError("42501"), true},
		{sqldb.PostgreSQL, stateError("42P01"), true},
		{sqldb.MySQL, &MySQLError{1045}, false},
		{sqldb.MySQL, &MySQLError{1130}, false},
		{sqldb.MySQL, &MySQLError{4151}, false},
		{sqldb.MySQL, &MySQLError{1142}, true},
		{sqldb.MySQL, &MySQLError{1146}, true},
	} {
		err := reporter.Unusable(tt.d, sqlstore.ErrAccessDenied, "", fmt.Errorf("delete: %w", tt.err))
		if errors.Is(err, outbox.ErrDenied) != tt.denied {
			t.Errorf("%#v: ErrDenied is %t, want %t", tt.err, !tt.denied, tt.denied)
		}
	}
}
