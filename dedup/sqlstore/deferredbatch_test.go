package sqlstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
)

// A row that the database refuses takes no neighbour with it. Above SQS's own limit it fails by itself, also where the refusal ends the
// connection.
func TestDeferredRefusedRow(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"large": 1 << 21, "small": 1 << 10, "above the packet": 3 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b *Bed
			if name == "above the packet" {
				b = ownServer(t, "MariaDB")
				exec(t, b.DB, "SET GLOBAL max_allowed_packet = 1048576")
				var p *proxy
				p, b = throughProxy(t, b)
				p.loseStatement("\x01\x00\x00\x00\x0e") // a ping: it meets a connection that the refusal has ended
			} else {
				b = NewBed(t, "SQLite")
				exec(t, b.DB, b.Dialect.sql(fmt.Sprintf(
					"CREATE TRIGGER refuse BEFORE INSERT ON {inbox} WHEN length(NEW.payload) = %d BEGIN SELECT RAISE(ABORT, 'refused'); END", size)))
			}
			d := newDeferred(t, newStore(t, b))
			var ms []*sqsonce.Message
			for i := range 10 {
				ms = append(ms, order(fmt.Sprint(i), 1))
			}
			ms[3].Body = strings.Repeat("x", size)
			for i, err := range d.ReceiveBatch(t.Context(), ms) {
				_, refused := errors.AsType[*sqsonce.OptionError](err)
				switch {
				case i != 3 && err != nil:
					t.Errorf("message %d: %v, want it stored", i, err)
				case i == 3 && (refused != (name != "small") || errors.Is(err, sqsonce.ErrUnavailable) == refused):
					t.Errorf("the refused one: %v, want an OptionError %t, else unavailable", err, name != "small")
				}
			}
		})
	}
}

// While the database answers nothing a batch is one call, and no row is to blame for its size.
func TestDeferredBatchInAnOutage(t *testing.T) {
	t.Parallel()
	large := order("1", 1)
	large.Body = strings.Repeat("x", 1<<21)
	for _, k := range sqlbed.Kinds {
		s := newRefuser(t, k, true).store
		s.checked.Store(true)
		if err := newDeferred(t, s).Receive(t.Context(), large); !errors.Is(err, sqsonce.ErrUnavailable) {
			t.Errorf("%s: %v, want unavailable", k.Label, err)
		}
	}
}

func TestDeferredStatementsAreCut(t *testing.T) {
	t.Parallel()
	rows := func(sizes ...int) (all []row) {
		for _, size := range sizes {
			all = append(all, row{message: &sqsonce.Message{Body: strings.Repeat("x", size)}})
		}
		return all
	}
	for want, rows := range map[int][]row{
		1: rows(16<<20, 1), 2: rows(1<<20, 1<<20, 1), 3: rows(1, 2, 3), 4: append(rows(1, 1, 1, 1), rows(batchBytes)...),
	} {
		if got := fitting(rows); got != want {
			t.Errorf("%d rows in a statement, want %d", got, want)
		}
	}
}
