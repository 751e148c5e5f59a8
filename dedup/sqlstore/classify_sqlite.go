package sqlstore

import (
	"errors"
	"strings"
)

// resultCode is met by the error of modernc.org/sqlite.
type resultCode interface {
	error
	Code() int
}

// See https://www.sqlite.org/rescode.html.
func classifySQLite(err error) class {
	e, ok := errors.AsType[resultCode](err)
	if !ok {
		return withoutAnswer(err)
	}
	switch e.Code() { // extended
	case 1555, 2067: // primary key, unique
		return duplicate
	}
	switch e.Code() & 0xff { // primary
	case 5, 6: // busy, locked
		return unwritten
	case 8:
		return readOnly
	case 9, 10, 14: // interrupted, I/O error, cannot open
		return unknown
	case 23:
		return denied
	case 1: // SQLITE_ERROR: the text alone says which
		return classifySQLiteText(err.Error())
	}
	return other
}

func classifySQLiteText(text string) class {
	for _, t := range []struct {
		part string
		class
	}{
		{"no such table", noTable},
		{"no such column", noColumn},
		{"has no column named", noColumn},
		{"ON CONFLICT clause does not match", noColumn},
		{"no such function", notSpoken},
		{"syntax error", notSpoken},
		{"unrecognized token", notSpoken},
	} {
		if strings.Contains(text, t.part) {
			return t.class
		}
	}
	return other
}
