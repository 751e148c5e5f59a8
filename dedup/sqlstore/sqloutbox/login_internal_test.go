package sqloutbox

import (
	"errors"
	"fmt"
	"testing"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sqsonce/sqsonce/dedup/sqlstore"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/fifo/outbox"
)

// A refused statement ends a relay whose deletes it refuses. A refused login does not: a password that changes refuses it for a
// moment.
func TestLoginIsNoPermission(t *testing.T) {
	t.Parallel()
	check := func(d sqldb.Dialect, err error, denied bool) {
		t.Helper()
		if is := errors.Is(reporter.Unusable(d, sqlstore.ErrAccessDenied, "", fmt.Errorf("delete: %w", err)), outbox.ErrDenied); is != denied {
			t.Errorf("%#v: ErrDenied is %t, want %t", err, is, denied)
		}
	}
	for code, denied := range map[string]bool{"28P01": false, "28000": false, "3D000": false, "42501": true, "42P01": true} {
		check(sqldb.PostgreSQL, &pgconn.PgError{Code: code}, denied)
	}
	for number, denied := range map[uint16]bool{1045: false, 1130: false, 4151: false, 1142: true, 1146: true} {
		check(sqldb.MySQL, &mysqldriver.MySQLError{Number: number}, denied)
	}
}
