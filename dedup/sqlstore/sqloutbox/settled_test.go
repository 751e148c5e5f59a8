package sqloutbox

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
)

// What Read returns has all that was committed before it, on a database whose statements are no snapshots, whatever the
// caller knows of the group.
func TestReadIsWhole(t *testing.T) {
	t.Parallel()
	b := newBed(t, "SQLite")
	spy, db := spied(t, b)
	o, writer := b.through(t, db, "box"), b.outbox(t)
	must.Do(t, o.Check(t.Context()))
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	d := &tornGroups{rng: rand.New(rand.NewPCG(seed, 2)), groups: map[int64]string{}, seen: map[string]int64{}}
	spy.began = d.began
	var (
		committed, next []string
		known           outbox.Known
		returned        int
	)
	for round := range 400 {
		next = nil
		for range rng.IntN(4) { // fewer than are read: the group is short, and its end is what may be torn
			next = append(next, "e"+string(rune('a'+round%26))+string(rune('0'+round/26%10))+string(rune('0'+len(next))))
		}
		for _, id := range next {
			d.commit(t, b, writer, []fifo.Event{event("g", id)})
		}
		committed = append(committed, next...)
		limit := 2 + rng.IntN(6)
		if rng.IntN(6) == 0 { // a relay that has just started
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
		if len(es) > 0 && rng.IntN(4) > 0 {
			n := len(es) - rng.IntN(2)*rng.IntN(len(es))
			must.Get(o.Delete(t.Context(), es[:n]))(t)
			committed = committed[n:]
			known.Confirmed = es[n-1].Seq
		}
	}
	t.Logf("seed %d: %d events read", seed, returned)
	if returned < 200 {
		t.Errorf("only %d events were read: nothing is shown", returned)
	}
}

// An event that cannot be decoded is named, beside those before it.
func TestReadBroken(t *testing.T) {
	eachBed(t, func(t *testing.T, b *bed) {
		for column, value := range map[string]string{"attributes": "[1]", "parked": "LATER"} {
			o := b.named(t, column)
			b.commit(t, o, events("g", 3)...)
			all := read(t, o, "g", 10)
			b.exec(t, "UPDATE {outbox} SET "+column+" = ? WHERE seq = ?", value, all[1].Seq)
			es, err := o.Read(t.Context(), outbox.Group{Name: "g"}, outbox.Known{}, 10)
			broken, ok := errors.AsType[*outbox.GroupError](err)
			if ids(es) != " g-1" || !ok || !errors.Is(err, outbox.ErrBroken) || broken.Group != "g" || broken.Seq != all[1].Seq {
				t.Errorf("%s: read%s and error %v, want g-1 and ErrBroken of %d", column, ids(es), err, all[1].Seq)
			}
		}
		o := b.named(t, "parked")
		es, err := o.Parked(t.Context(), 10)
		if len(es) > 0 || !errors.Is(err, outbox.ErrBroken) {
			t.Errorf("Parked:%s, %v, want ErrBroken", ids(es), err)
		}
	})
}

// Between two statements of one Read another relay deletes events that it published. The page is then not full, although
// there is more behind it.
func TestReadBesideDelete(t *testing.T) {
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
				must.Do(t, errors.Join(o.Park(t.Context(), es[0], outbox.OnRefusedHalt, "é"), o.Unpark(t.Context(), es[0])))
				must.Get(o.Delete(t.Context(), es))(t)
				if es = read(t, o, "g", 10); len(es) > 0 {
					t.Errorf("%d events are left, want none", len(es))
				}
			}
		})
	}
}
