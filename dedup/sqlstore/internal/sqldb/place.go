package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
)

// Place is the schema in which the tables of one store are. It is found once, and names the tables in all statements from
// then on. Other users of the pool may leave a search path or another default database in a session, and this doesn't move
// a record.
type Place struct {
	dialect Dialect
	table   string
	found   atomic.Pointer[Dialect] // nil: not yet
}

// NewPlace returns the place of the tables of which one has the placeholder table. It is found already if the prefix names
// a schema, or if tables can be in only one.
func NewPlace(d Dialect, table string) *Place {
	p := &Place{dialect: d, table: table}
	switch {
	case strings.Contains(d.prefix, "."):
		p.found.Store(&d)
	case d.engine.onlySchema != none:
		p.fix(d.engine.onlySchema)
	}
	return p
}

// Found reports whether the schema is known.
func (p *Place) Found() bool { return p.found.Load() != nil }

// Dialect is the dialect whose statements name the schema, as soon as it is known.
func (p *Place) Dialect() Dialect {
	if d := p.found.Load(); d != nil {
		return *d
	}
	return p.dialect
}

// Find asks for the schema, unless it is known. q must be no session of a handler. If there is no table, Find returns nil:
// the statement that comes after it says so, and the next Find asks again.
func (p *Place) Find(ctx context.Context, q Queryer) error {
	if p.Found() {
		return nil
	}
	var schema string
	err := p.dialect.In(q).QueryRowContext(ctx, p.dialect.SQL(strings.ReplaceAll(p.dialect.engine.schemaOf, "*", p.table))).Scan(&schema)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err == nil:
		p.fix(schema)
	}
	return err
}

// fix makes the schema known. The first one stays.
func (p *Place) fix(schema string) {
	d := p.dialect
	quote := d.engine.quote
	d.schema = quote + strings.ReplaceAll(schema, quote, quote+quote) + quote + "."
	p.found.CompareAndSwap(nil, &d)
}

// Statements returns a function that returns what build makes: of the dialect until the place is found, and then of the one
// that names it. Each is built once.
func Statements[T any](p *Place, build func(Dialect) T) func() T {
	before := sync.OnceValue(func() T { return build(p.dialect) })
	after := sync.OnceValue(func() T { return build(p.Dialect()) })
	return func() T {
		if p.Found() {
			return after()
		}
		return before()
	}
}
