package sqloutbox

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/sqlstore"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
)

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
