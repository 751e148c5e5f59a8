package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/internal/must"
)

// The stored message is the received one, except for its receive count.
func TestDeferredStoresTheMessage(t *testing.T) {
	eachDeferred(t, func(t *testing.T, b *Bed, d *Deferred) {
		m := order(orderID, 3)
		m.Body = "payload ' \" \\ ? {now} €\n"
		m.Attributes["binary"] = sqsonce.Attribute{Type: "Binary", Binary: []byte{0, 1, 255}}
		m.Attributes[sqsonce.AttrEventType] = sqsonce.Attribute{Type: "String", String: strings.Repeat("long", 100)}
		m.Group, m.Sequence, m.DedupID, m.TraceHeader = "g", "18", "d", "Root=1"
		m.SentAt = time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)
		m.Envelope = sqsonce.Envelope{Key: "k", Source: sqsonce.KeyFromS3, Type: "ObjectCreated:Put"}
		must.Do(t, d.Receive(t.Context(), m))
		e := must.Get(d.Inspect(t.Context(), orderKey))(t)
		want := *m
		want.ReceiveCount = 0
		if diff := cmp.Diff(&want, e.Message); diff != "" {
			t.Errorf("message: (-want +got)\n%s", diff)
		}
		if e.Done || e.Parked || time.Since(e.ReceivedAt).Abs() > time.Minute {
			t.Errorf("entry: got %+v, want a pending one of now", e)
		}
		var event, source, group string
		must.Do(t, b.DB.QueryRowContext(t.Context(), b.Dialect.sql("SELECT event_id, source, group_id FROM {inbox}")).Scan(&event, &source, &group))
		if event != "orders|42" || source != "orders" || group != "g" {
			t.Errorf("columns: got event %q, source %q, group %q", event, source, group)
		}
	})
}

// An event is stored once: when it is received again, twice in a batch, and by five consumers at once.
func TestDeferredReceivesOnce(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		var wg sync.WaitGroup
		for range 5 {
			d := newDeferred(t, otherProcess(t, b))
			h := sqsonce.Batch(d.ReceiveBatch)
			for n := range 20 {
				wg.Go(func() {
					if err := h(t.Context(), order(fmt.Sprint(n%10), 1)); err != nil {
						t.Errorf("Receive: got error %v, want nil", err)
					}
				})
			}
		}
		wg.Wait()
		d := newDeferred(t, newStore(t, b))
		if c, err := d.Count(t.Context()); err != nil || c.Pending != 10 {
			t.Errorf("Count: got %+v and error %v, want 10 pending", c, err)
		}
	})
}

// One message of a batch that cannot be stored does not fail the others.
func TestDeferredBatchErrors(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		d := newDeferred(t, newStore(t, b), func(o *dedup.Options) {
			o.PayloadHash = func(m *sqsonce.Message) string { return m.Body }
		})
		must.Do(t, d.Receive(t.Context(), order("1", 1)))
		other := order("1", 1)
		other.Body = "another payload"
		errs := d.ReceiveBatch(t.Context(), []*sqsonce.Message{order("1", 2), {}, other, order("2", 1)})
		for i, want := range []error{nil, sqsonce.ErrNoEventID, dedup.ErrPayloadMismatch, nil} {
			if !errors.Is(errs[i], want) {
				t.Errorf("message %d: got error %v, want %v", i, errs[i], want)
			}
			if sqsonce.OutcomeOf(errs[i]).Reject != (want != nil) {
				t.Errorf("message %d: got error %v, want a Reject: %t", i, errs[i], want != nil)
			}
		}
		if e, err := d.Inspect(t.Context(), "billing#orders|1"); err != nil || e.Message.Body != order("1", 1).Body {
			t.Errorf("stored message: got %+v and error %v, want the first one's payload", e, err)
		}
		must.Get(d.Inspect(t.Context(), "billing#orders|2"))(t)
	})
}

// A message that may not have been stored is not acknowledged.
func TestDeferredFailedInsertIsAnError(t *testing.T) {
	eachDeferred(t, func(t *testing.T, b *Bed, d *Deferred) {
		must.Do(t, d.Receive(t.Context(), order("1", 1)))
		exec(t, b.DB, b.Dialect.sql("DROP TABLE {inbox}"))
		if err := d.Receive(t.Context(), order("2", 1)); !errors.Is(err, sqldb.ErrNoTable) {
			t.Errorf("Receive without a table: got error %v, want ErrNoTable", err)
		}
		p := newProcessor(t, d)
		if err := p.Run(t.Context(), book); !errors.Is(err, sqldb.ErrNoTable) {
			t.Errorf("Run without a table: got error %v, want ErrNoTable", err)
		}
		if err := newInbox(t, newStore(t, EmptyBed(t, b.kind.Label))).Handler(book)(t.Context(), order("1", 1)); !errors.Is(err, sqldb.ErrNoTable) {
			t.Errorf("Inbox without a table: got error %v, want ErrNoTable", err)
		}
	})
}

func TestDeferredOperators(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		ctx := t.Context()
		d := newDeferred(t, newStore(t, b))
		if _, err := d.Inspect(ctx, orderKey); !errors.Is(err, dedup.ErrNotFound) {
			t.Errorf("Inspect of nothing: got error %v, want ErrNotFound", err)
		}
		if err := d.Unpark(ctx, orderKey); !errors.Is(err, dedup.ErrNotFound) {
			t.Errorf("Unpark of nothing: got error %v, want ErrNotFound", err)
		}
		for n := range 3 {
			must.Do(t, d.Receive(ctx, order(fmt.Sprint(n), 1)))
		}
		if err := d.Unpark(ctx, "billing#orders|1"); !errors.Is(err, ErrNotParked) {
			t.Errorf("Unpark of a pending event: got error %v, want ErrNotParked", err)
		}
		exec(t, b.DB, b.Dialect.sql("UPDATE {inbox} SET status = 'PARKED', attempts = 7, error = 'bad' WHERE event_id <> 'orders|1'"))
		if c, err := d.Count(ctx); err != nil || c.Pending != 1 || c.Parked != 2 || c.Oldest < 0 || c.Oldest > time.Minute {
			t.Errorf("Count: got %+v and error %v, want 1 pending and 2 parked", c, err)
		}
		all, err := d.Parked(ctx, 10)
		if err != nil || len(all) != 2 || all[0].Key != "billing#orders|0" || !all[0].Parked || all[0].Error != "bad" || all[0].Attempts != 7 {
			t.Errorf("Parked: got %+v and error %v, want the two, the oldest first", all, err)
		}
		if all, err := d.Parked(ctx, 1); err != nil || len(all) != 1 {
			t.Errorf("Parked(1): got %d and error %v, want one", len(all), err)
		}
		must.Do(t, d.Unpark(ctx, "billing#orders|0"))
		if e, err := d.Inspect(ctx, "billing#orders|0"); err != nil || e.Parked || e.Attempts != 0 || e.Error != "bad" {
			t.Errorf("unparked: got %+v and error %v, want it pending from its first attempt", e, err)
		}
		other := must.Get(NewDeferred(newStore(t, b), "shipping"))(t)
		if c, err := other.Count(context.WithoutCancel(ctx)); err != nil || c != (Counts{}) {
			t.Errorf("another consumer's Count: got %+v and error %v, want nothing", c, err)
		}
	})
}

// A row that the database refuses fails alone. Above SQS's own limit it fails by itself, also where the refusal ends the
// connection.
func TestDeferredRefusedRow(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"large": 1 << 21, "small": 1 << 10, "above the packet": 3 << 20, "above the column": 1 << 24} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b *Bed
			switch name {
			case "above the column": // a session that is not strict would store a part of it
				b = ownServer(t, "MariaDB")
				exec(t, b.DB, "SET GLOBAL max_allowed_packet = 67108864")
				exec(t, b.DB, "SET GLOBAL sql_mode = ''")
				b.DB = b.Open(t)
			case "above the packet":
				b = ownServer(t, "MariaDB")
				exec(t, b.DB, "SET GLOBAL max_allowed_packet = 1048576")
				var p *proxy
				p, b = throughProxy(t, b)
				p.loseStatement("START TRANSACTION") // it meets a connection that the refusal has ended
			default:
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
			if name == "above the column" {
				ms[4].Body = ms[3].Body[1:]
			}
			for i, err := range d.ReceiveBatch(t.Context(), ms) {
				_, refused := errors.AsType[*sqsonce.OptionError](err)
				switch {
				case i != 3 && err != nil:
					t.Errorf("message %d: %v, want it stored", i, err)
				case i == 3 && (refused != (name != "small") || errors.Is(err, sqsonce.ErrUnavailable) == refused):
					t.Errorf("the refused one: %v, want an OptionError %t, else unavailable", err, name != "small")
				case i == 4 && len(must.Get(d.Inspect(t.Context(), "billing#orders|4"))(t).Message.Body) != len(ms[4].Body):
					t.Errorf("a part of the body of %d bytes is stored", len(ms[4].Body))
				}
			}
		})
	}
}

// While the database answers nothing, or takes no row at all, no row is to blame for its size.
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
	b := NewBed(t, "SQLite")
	exec(t, b.DB, b.Dialect.sql("CREATE TRIGGER refuse BEFORE INSERT ON {inbox} BEGIN SELECT RAISE(ABORT, 'refused'); END"))
	if err := newDeferred(t, newStore(t, b)).Receive(t.Context(), large); !errors.Is(err, sqsonce.ErrUnavailable) {
		t.Errorf("no row is taken: %v, want unavailable", err)
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
