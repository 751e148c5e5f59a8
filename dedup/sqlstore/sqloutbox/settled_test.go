package sqloutbox

import (
	"database/sql/driver"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/fifo/outbox"
)

// torn is a database whose statements are no snapshots: each has committed rows or has them not, as MariaDB's do while
// transactions commit. A row is there for sure in a statement that began after another one, which had ended, returned it or a
// later row.
type torn struct {
	mu   sync.Mutex
	rng  *rand.Rand
	seen int64 // the highest number that an ended statement has returned
	off  bool
}

func (d *torn) began(text string) (row func([]driver.Value) bool, ended func()) {
	if !strings.Contains(text, "outbox") || !strings.HasPrefix(text, "SELECT") {
		return nil, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	sure, highest := d.seen, int64(0)
	lucky := d.off || d.rng.IntN(3) == 0
	row = func(values []driver.Value) bool {
		seq, ok := values[0].(int64)
		if !ok {
			return true
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if seq > sure && !lucky && d.rng.IntN(2) == 0 {
			return false
		}
		highest = max(highest, seq)
		return true
	}
	return row, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.seen = max(d.seen, highest)
	}
}

// What Read returns has all that was committed before it, on a database whose statements are no snapshots, whatever the
// caller knows of the group.
func TestReadIsWhole(t *testing.T) {
	t.Parallel()
	b := newBed(t, "SQLite")
	spy, db := spied(t, b)
	o, writer := b.through(t, db, "box"), b.outbox(t)
	if err := o.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	d := &torn{rng: rand.New(rand.NewPCG(seed, 2))}
	spy.began = d.began
	var (
		committed, next []string
		known           outbox.Known
		returned        int
	)
	for round := range 400 {
		next = nil
		for range rng.IntN(4) {
			next = append(next, "e"+string(rune('a'+round%26))+string(rune('0'+round/26%10))+string(rune('0'+len(next))))
		}
		for _, id := range next {
			b.commit(t, writer, event("g", id))
		}
		committed = append(committed, next...)
		limit := 1 + rng.IntN(5)
		if rng.IntN(4) == 0 { // a relay that has just started
			known = outbox.Known{}
		}
		es, err := o.Read(t.Context(), outbox.Group{Name: "g"}, known, limit)
		if err != nil && !errors.Is(err, outbox.ErrUnsettled) {
			t.Fatalf("seed %d, round %d: %v", seed, round, err)
		}
		returned += len(es)
		for i, e := range es {
			if e.ID != committed[i] {
				t.Fatalf("seed %d, round %d: read%s with %+v, want the first of %v", seed, round, ids(es), known, committed[:len(es)+1])
			}
			known.Seen = e.Seq
		}
		if len(es) > 0 && rng.IntN(2) == 0 {
			n := 1 + rng.IntN(len(es))
			if _, err := o.Delete(t.Context(), es[:n]); err != nil {
				t.Fatal(err)
			}
			committed = committed[n:]
			known.Confirmed = es[n-1].Seq
		}
	}
	if returned < 200 {
		t.Errorf("only %d events were read: nothing is shown", returned)
	}
}

// A page that is not full says that nothing is behind it. So it has what was committed since the caller last saw the group.
func TestReadFindsWhatCameSince(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		o := b.outbox(t)
		b.commit(t, o, event("g", "1"))
		first := read(t, o, "g", 10)
		b.commit(t, o, event("g", "2"))
		es, err := o.Read(t.Context(), outbox.Group{Name: "g"}, outbox.Known{Seen: first[0].Seq}, 10)
		if err != nil || ids(es) != " 1 2" {
			t.Errorf("read%s, %v, want 1 2", ids(es), err)
		}
		es, err = o.Read(t.Context(), outbox.Group{Name: "g", Last: first[0].Seq}, outbox.Known{}, 10)
		if err != nil || ids(es) != " 1 2" {
			t.Errorf("after Groups: read%s, %v, want 1 2", ids(es), err)
		}
	})
}

// What is not committed is not read, and not waited for.
func TestReadBesideOpenTransaction(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		o := b.outbox(t)
		b.commit(t, o, event("g", "1"))
		tx := b.begin(t)
		if err := o.Add(t.Context(), tx, event("g", "2"), event("h", "3")); err != nil {
			t.Fatal(err)
		}
		if got := ids(read(t, o, "g", 10)); got != " 1" {
			t.Errorf("read%s, want 1", got)
		}
		found, _, err := o.Groups(t.Context(), "", 10)
		if err != nil || len(found) != 1 {
			t.Errorf("Groups: %v, %v, want g alone", found, err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if got := ids(read(t, o, "g", 10)); got != " 1 2" {
			t.Errorf("read%s, want 1 2", got)
		}
	})
}

// Skipped events do not count, up to a limit, wherever they are.
func TestReadSkips(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		o := b.outbox(t)
		b.commit(t, o, events("g", outbox.MaxSkipped+4)...)
		all := read(t, o, "g", 1000)
		b.exec(t, "UPDATE {outbox} SET parked = 'SKIP' WHERE seq > ? AND seq < ?", all[0].Seq, all[len(all)-2].Seq)
		b.exec(t, "UPDATE {outbox} SET parked = 'HALT' WHERE seq = ?", all[len(all)-2].Seq)
		reads := func(limit, want int, wantErr error) {
			t.Helper()
			es, err := o.Read(t.Context(), outbox.Group{Name: "g"}, outbox.Known{}, limit)
			if !errors.Is(err, wantErr) || err != nil && wantErr == nil || len(es) != want {
				t.Errorf("limit %d: %d events and error %v, want %d and %v", limit, len(es), err, want, wantErr)
			}
			for i := range es {
				if es[i].ID != all[i].ID {
					t.Errorf("limit %d: event %d is %s, want %s", limit, i, es[i].ID, all[i].ID)
				}
			}
		}
		reads(1, 1, nil)
		reads(2, 1+outbox.MaxSkipped, outbox.ErrManySkipped)
		if err := o.Unpark(t.Context(), all[50]); err != nil {
			t.Fatal(err)
		}
		reads(2, 51, nil)
		reads(3, 3+outbox.MaxSkipped, nil) // the first, the 51st, the halted one
		reads(4, len(all), nil)
		reads(10, len(all), nil)
	})
}

// An event that cannot be decoded is named, beside those before it.
func TestReadBroken(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		for column, value := range map[string]string{"attributes": "[1]", "parked": "LATER"} {
			o := b.named(t, column)
			b.commit(t, o, events("g", 3)...)
			all := read(t, o, "g", 10)
			b.exec(t, "UPDATE {outbox} SET "+column+" = ? WHERE seq = ?", value, all[1].Seq)
			es, err := o.Read(t.Context(), outbox.Group{Name: "g"}, outbox.Known{}, 10)
			broken, ok := errors.AsType[*outbox.BrokenError](err)
			if ids(es) != " g-1" || !ok || broken.Group != "g" || broken.Seq != all[1].Seq {
				t.Errorf("%s: read%s and error %v, want g-1 and a BrokenError of %d", column, ids(es), err, all[1].Seq)
			}
		}
		o := b.named(t, "parked")
		es, err := o.Parked(t.Context(), 10)
		if _, ok := errors.AsType[*outbox.BrokenError](err); len(es) > 0 || !ok {
			t.Errorf("Parked:%s, %v, want a BrokenError", ids(es), err)
		}
	})
}

// Between two statements of one Read another relay deletes events that it published. The page is then not full, although
// there is more behind it.
func TestReadBesideDelete(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		spy, db := spied(t, b)
		o, other := b.through(t, db, "box"), b.outbox(t)
		b.commit(t, other, events("g", 6)...)
		all := read(t, o, "g", 10)
		pages := 0
		spy.set(func(text string) error {
			if !strings.HasPrefix(text, "SELECT seq,") {
				return nil
			}
			if pages++; pages == 2 {
				_, err := other.Delete(t.Context(), all[:1])
				return err
			}
			return nil
		}, nil)
		es, err := o.Read(t.Context(), outbox.Group{Name: "g"}, outbox.Known{Seen: all[0].Seq}, 3)
		if ids(es) != " g-2 g-3" || !errors.Is(err, outbox.ErrUnsettled) || pages != 2 {
			t.Errorf("read%s and error %v in %d pages, want g-2 g-3 and ErrUnsettled in 2", ids(es), err, pages)
		}
		spy.set(nil, nil)
	})
}

// A text is the same for all connections, whatever their character set.
func TestCharacterSets(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"MariaDB", "MySQL"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, kind)
			other := *b
			other.db = sqlbed.Open(t, b.Driver, b.DSN+"&charset=latin1")
			e := event("g", "é\U0001F4E6")
			e.Type, e.Body = "päid", "\U0001F4E6"
			for _, through := range []*bed{b, &other} {
				b.commit(t, b.outbox(t), e)
				other.commit(t, other.outbox(t), e)
				o := through.outbox(t)
				for i, got := range read(t, o, "g", 10) {
					if got.ID != e.ID || got.Type != e.Type || got.Body != e.Body {
						t.Errorf("event %d: got %+v, want %+v", i, got.Event, e)
					}
				}
				es := read(t, o, "g", 10)
				if err := errors.Join(o.Park(t.Context(), es[0], outbox.Halt, "é"), o.Unpark(t.Context(), es[0])); err != nil {
					t.Error(err)
				}
				if _, err := o.Delete(t.Context(), es); err != nil {
					t.Fatal(err)
				}
				if es = read(t, o, "g", 10); len(es) > 0 {
					t.Errorf("%d events are left, want none", len(es))
				}
			}
		})
	}
}
