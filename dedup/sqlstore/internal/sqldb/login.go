package sqldb

import (
	"errors"
	"strings"
)

// IsLogin reports that the database refused a connection, and no statement: a password, the host, or the account. It says nothing
// about what the role may do.
func IsLogin(err error) bool {
	if e, ok := errors.AsType[sqlState](err); ok {
		return strings.HasPrefix(e.SQLState(), "28") || e.SQLState() == "3D000"
	}
	number, _ := mysqlNumber(err)
	return mysqlLogins[number]
}

// mysqlLogins are the numbers of MySQL and MariaDB. 1044 refuses the database to a login; a statement's table is 1142.
var mysqlLogins = map[uint64]bool{
	1044: true, 1045: true, 1049: true, 1129: true, 1130: true, 1698: true, 1820: true, 1862: true, 3118: true, 4151: true,
}
