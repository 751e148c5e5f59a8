package sqloutbox

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/sqlstore"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
)

// New refuses all bad arguments at once, with one error each.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		d           sqlstore.Dialect
		box, source string
		fields      []string
	}{
		{"all", sqlstore.Dialect{}, "", "", []string{"dialect", "source", "name"}},
		{"a hash in the name", sqlstore.SQLite, "a#b", "s", []string{"name"}},
		{"65 characters", sqlstore.SQLite, strings.Repeat("x", 65), "s", []string{"name"}},
		{"a blank", sqlstore.SQLite, "a b", "s", []string{"name"}},
		{"a newline", sqlstore.SQLite, "a\n", "s", []string{"name"}},
		{"a source that no publisher has", sqlstore.SQLite, "a", "a|b", []string{"source"}},
		{"a prefix", sqlstore.SQLite.WithPrefix("a.b"), "a", "s", []string{"dialect"}},
	} {
		if _, err := New(nil, tt.d, tt.box, tt.source); !slices.Equal(testaws.Fields(err), tt.fields) {
			t.Errorf("%s: got error %v, want OptionErrors of %v", tt.name, err, tt.fields)
		}
	}
	o, err := New(nil, sqlstore.PostgreSQL, strings.Repeat("x", 64), "orders")
	if err != nil || o.Source() != "orders" || o.base.Timeout() != 5*time.Second {
		t.Errorf("got %v, %v and a limit of %v", o.Source(), err, o.base.Timeout())
	}
}

// What SQS would refuse is refused before anything is sent: here the transaction has ended, and nobody notices.
func TestAddRefuses(t *testing.T) {
	t.Parallel()
	b := newBed(t, "SQLite")
	o := b.outbox(t)
	tx := b.begin(t)
	must.Do(t, tx.Rollback())
	good, noGroup := event("g", "1"), event("", "2")
	for _, bad := range []fifo.Event{noGroup, {ID: "2", Group: "g", Body: strings.Repeat("x", 1<<20)}} {
		err := o.Add(t.Context(), tx, good, bad)
		if !errors.Is(err, fifo.ErrNotSent) || errors.Is(err, sql.ErrTxDone) || !strings.Contains(err.Error(), "event 2 of 2") || isField(err, "Event.Group") != (bad.Group == "") {
			t.Errorf("got error %v, want that of fifo.Event.Check", err)
		}
	}
	if err := o.Add(t.Context(), nil, good); !isField(err, "tx") {
		t.Errorf("without a transaction: %v", err)
	}
	must.Do(t, o.Add(t.Context(), tx))
}

// A transaction that has ended takes nothing.
func TestAddAfterTheTransaction(t *testing.T) {
	eachOutbox(t, func(t *testing.T, b *bed, o *Outbox) {
		for name, end := range map[string]func(*sql.Tx) error{"commit": (*sql.Tx).Commit, "rollback": (*sql.Tx).Rollback} {
			tx := b.begin(t)
			must.Do(t, end(tx))
			if err := o.Add(t.Context(), tx, event("g", "1")); !errors.Is(err, sql.ErrTxDone) || errors.Is(err, sqsonce.ErrUnavailable) {
				t.Errorf("after %s: got error %v, want sql.ErrTxDone", name, err)
			}
		}
	})
}

// A server that takes no writes: Add, Check and a relay's first call say so.
func TestReadOnly(t *testing.T) {
	each(t, sqlbed.Names, func(t *testing.T, b *bed) {
		b.commit(t, b.outbox(t), event("g", "1"))
		db := b.readOnly(t)
		o := b.through(t, db, "box")
		tx := must.Get(db.BeginTx(t.Context(), nil))(t)
		if err := o.Add(t.Context(), tx, event("g", "2")); !isProblem(err, sqldb.ErrReadOnly) {
			t.Errorf("Add: got error %v, want ErrReadOnly", err)
		}
		must.Do(t, tx.Rollback())
		for name, err := range calls(t.Context(), o) {
			if !isProblem(err, sqldb.ErrReadOnly) {
				t.Errorf("%s: got error %v, want ErrReadOnly", name, err)
			}
		}
		// A failover: the server was checked, and takes no writes since.
		o.checked.Store(true)
		es := read(t, o, "g", 10)
		left, err := o.Delete(t.Context(), es)
		if !isProblem(err, sqldb.ErrReadOnly) || len(left) != 1 {
			t.Errorf("Delete: %d left and error %v, want ErrReadOnly", len(left), err)
		}
	})
}

// calls are a relay's calls, with their errors.
func calls(ctx context.Context, o *Outbox) map[string]error {
	e := outbox.Entry{Event: event("g", "1"), Seq: 1}
	all := map[string]error{"Check": o.Check(ctx)}
	_, _, all["Groups"] = o.Groups(ctx, "", 10)
	if !o.dialect.OneWriter() {
		_, all["Claim"] = o.Claim(ctx, []string{"g"}, time.Minute)
	}
	_, all["Read"] = o.Read(ctx, outbox.Group{Name: "g"}, outbox.Known{}, 10)
	_, all["Delete"] = o.Delete(ctx, []outbox.Entry{e})
	all["Park"] = o.Park(ctx, e, outbox.OnRefusedHalt, "")
	all["Unpark"] = o.Unpark(ctx, e)
	all["Discard"] = o.Discard(ctx, e)
	_, all["Parked"] = o.Parked(ctx, 10)
	return all
}

// An outbox without a pool adds, and says that it can do no more.
func TestWithoutPool(t *testing.T) {
	t.Parallel()
	b := newBed(t, "SQLite")
	o := b.through(t, nil, "box")
	b.commit(t, o, event("g", "1"))
	if got := ids(read(t, b.outbox(t), "g", 1)); got != " 1" {
		t.Errorf("added%s", got)
	}
	for name, err := range calls(t.Context(), o) {
		if !isField(err, "db") {
			t.Errorf("%s: got error %v, want a OptionError of db", name, err)
		}
	}
	if err := Migrate(t.Context(), nil, sqlstore.Dialect{}); !isField(err, "db") || !isField(err, "dialect") {
		t.Errorf("Migrate: got error %v, want FieldErrors", err)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	o := newBed(t, "SQLite").outbox(t)
	for _, limit := range []int{0, -1} {
		_, _, groups := o.Groups(t.Context(), "", limit)
		_, parked := o.Parked(t.Context(), limit)
		_, read := o.Read(t.Context(), outbox.Group{Name: "g"}, outbox.Known{}, limit)
		for _, err := range []error{groups, parked, read} {
			if !isField(err, "limit") {
				t.Errorf("limit %d: got error %v", limit, err)
			}
		}
	}
	if err := o.Park(t.Context(), outbox.Entry{Event: event("g", "1"), Seq: 1}, 0, ""); !isField(err, "policy") {
		t.Errorf("no policy: got error %v", err)
	}
}

// A large Add is several INSERTs, in order.
func TestAddMany(t *testing.T) {
	eachOutbox(t, func(t *testing.T, b *bed, o *Outbox) {
		es := events("g", insertRows+1)
		for i := range 5 {
			es[i].Body = strings.Repeat("x", 900<<10)
		}
		b.commit(t, o, slices.Clone(es)...)
		got := read(t, o, "g", 1000)
		if len(got) != len(es) {
			t.Fatalf("%d events, want %d", len(got), len(es))
		}
		for i := range es {
			if got[i].ID != es[i].ID {
				t.Fatalf("event %d is %s, want %s", i, got[i].ID, es[i].ID)
			}
		}
	})
}

// packetServer is a MySQL with a max_allowed_packet, of which nothing else is asked but INSERTs.
type packetServer struct {
	packet  int64
	inserts int
}

func (s *packetServer) Driver() driver.Driver                        { return nil }
func (s *packetServer) Connect(context.Context) (driver.Conn, error) { return packetConn{s}, nil }

type packetConn struct{ *packetServer }

func (packetConn) Prepare(string) (driver.Stmt, error) { return nil, errors.New("no statements") }
func (packetConn) Close() error                        { return nil }
func (c packetConn) Begin() (driver.Tx, error)         { return c, nil }
func (packetConn) Commit() error                       { return nil }
func (packetConn) Rollback() error                     { return nil }

func (c packetConn) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	c.inserts++
	return driver.RowsAffected(1), nil
}

func (c packetConn) QueryContext(_ context.Context, text string, _ []driver.NamedValue) (driver.Rows, error) {
	if text != "SELECT @@max_allowed_packet" {
		return &packetRows{}, nil // no place of the tables
	}
	return &packetRows{value: c.packet}, nil
}

type packetRows struct{ value int64 }

func (*packetRows) Columns() []string { return []string{"v"} }
func (*packetRows) Close() error      { return nil }

func (r *packetRows) Next(values []driver.Value) error {
	if r.value == 0 {
		return io.EOF
	}
	values[0], r.value = r.value, 0
	return nil
}

// An event counts as it is stored: JSON writes six bytes for some of its characters. What the server would refuse does not end the
// connection.
func TestEventsAbovePacketSize(t *testing.T) {
	t.Parallel()
	escaped := func(n int) fifo.Event {
		return fifo.Event{ID: "1", Group: "g", Body: "b", Attributes: map[string]sqsonce.Attribute{"a": {Type: "String", String: strings.Repeat("<", n)}}}
	}
	for _, tt := range []struct {
		name    string
		es      []fifo.Event
		packet  int64
		inserts int // 0: refused
	}{
		{"fits", []fifo.Event{escaped(500_000)}, 4 << 20, 1},
		{"too large", []fifo.Event{escaped(10), escaped(800_000)}, 4 << 20, 0},
		{"several", []fifo.Event{escaped(200_000), escaped(200_000)}, 4 << 20, 2},
	} {
		s := &packetServer{packet: tt.packet}
		db := sql.OpenDB(s)
		t.Cleanup(func() { _ = db.Close() })
		o := must.Get(New(db, sqlstore.MySQL, "box", source, func(o *Options) { o.GroupLocked = true }))(t)
		tx := must.Get(db.BeginTx(t.Context(), nil))(t)
		err := o.Add(t.Context(), tx, tt.es...)
		_, refused := errors.AsType[*sqsonce.OptionError](err)
		if refused != (tt.inserts == 0) || !refused && err != nil || errors.Is(err, sqsonce.ErrUnavailable) || s.inserts != tt.inserts {
			t.Errorf("%s: %v after %d inserts, want %d (0: an OptionError)", tt.name, err, s.inserts, tt.inserts)
		}
	}
}
