package sqlstore

import (
	"errors"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
)

var reporter = sqldb.Reporter{
	Package: "sqlstore",
	Unusable: func(d sqldb.Dialect, problem error, detail string, err error) error {
		return sqldb.NewDatabaseError(d, problem, detail, err)
	},
	Final: func(err error) bool { return isRefusal(err) || isDatabaseError(err) },
}

// explain is [sqldb.DB.Explain].
func (s *Store) explain(op string, err error) error { return s.base.Explain(op, err) }

func isDatabaseError(err error) bool {
	_, is := errors.AsType[*sqldb.DatabaseError](err)
	return is
}

// isPermanent reports whether no retry helps, also not after a failover or a change of a password.
func isPermanent(err error) bool {
	e, is := errors.AsType[*sqldb.DatabaseError](err)
	return is && e.Problem != sqldb.ErrReadOnly && !e.Dialect.IsLogin(e.Err)
}
