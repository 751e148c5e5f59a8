package sqlstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/counting"
	"github.com/sqsonce/sqsonce/internal/limittest"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/limit"
)

func TestCounter(t *testing.T) {
	onEach(t, countedPool, func(t *testing.T, name string, fresh func(*testing.T) func() *Store) {
		limittest.Run(t, limittest.Harness{
			New: func(t *testing.T) func() limit.Counter {
				open := fresh(t)
				return func() limit.Counter { return NewCounter(open()) }
			},
			Away: func(t *testing.T) limit.Counter { return NewCounter(awayStore(t, EmptyBed(t, name))) },
			Misconfigured: func(t *testing.T) limit.Counter {
				b := EmptyBed(t, name) // without tables
				return NewCounter(storeOn(t, b.DB, b.Dialect))
			},
			ReadOnly: func(t *testing.T) limit.Counter { return NewCounter(readOnlyStore(t, NewBed(t, name))) },
			Store:    func(c limit.Counter) dedup.Lister { return c.(*keyCounter).store },
			Delete: func(ctx context.Context, c limit.Counter, record string) error {
				return c.(*keyCounter).store.Delete(ctx, record)
			},
			CountsWrites: true,
			RealTime:     true, Step: unit, Grace: unit / 4, Takeover: time.Second,
		})
	})
}

// few asks for the tokens of the next steps, which are minutes.
func few(steps int) counting.Take {
	return counting.Take{Key: "limits#key", N: 100, Step: time.Minute, Burst: 1, Ahead: time.Duration(steps)*time.Minute - 30*time.Second}
}

// expectTokens makes the take, and expects so many tokens.
func expectTokens(t *testing.T, c limit.Counter, take counting.Take, n int) {
	t.Helper()
	if g, err := c.Take(t.Context(), take); err != nil || g.N != n {
		t.Fatalf("Take %+v: got %+v and error %v, want %d tokens", take, g, err, n)
	}
}

// A take of a key that its process knows is one UPDATE, which has the right number of tokens, also where other processes take.
func TestCounterStatements(t *testing.T) {
	t.Parallel()
	b := NewBed(t, "MariaDB")
	type process struct {
		limit.Counter
		ran func() (updates, reads int)
	}
	newProcess := func() process {
		db := b.Open(t)
		db.SetMaxOpenConns(1)
		return process{NewCounter(storeOn(t, db, b.Dialect)), func() (updates, reads int) {
			for name, n := range map[string]*int{"Com_update": &updates, "Com_select": &reads} {
				must.Do(t, db.QueryRowContext(t.Context(), strings.Replace(b.kind.SessionStatus, "*", name, 1)).Scan(new(string), n))
			}
			return updates, reads
		}}
	}
	one, other := newProcess(), newProcess()
	once := func(p process, steps, tokens int, why string) {
		t.Helper()
		updates, reads := p.ran()
		expectTokens(t, p.Counter, few(steps), tokens)
		if u, r := p.ran(); u-updates != 1 || r != reads {
			t.Errorf("a take %s: got %d updates and %d reads, want one update", why, u-updates, r-reads)
		}
	}
	expectTokens(t, one.Counter, few(4), 4)
	once(one, 8, 4, "of its own key")
	expectTokens(t, one.Counter, few(8), 0)
	once(one, 12, 4, "after a refusal")
	expectTokens(t, other.Counter, few(16), 4)
	expectTokens(t, one.Counter, few(16), 0)
	once(one, 20, 4, "after a refusal because of others")
}

// A row outlives the tokens and the places that are taken, of whatever length.
func TestCounterRetention(t *testing.T) {
	t.Parallel()
	b := NewBed(t, "SQLite")
	s := newStore(t, b)
	c := NewCounter(s)
	const step = 100 * time.Hour
	long := counting.Take{N: 1, Step: step, Burst: 2, Waited: true}
	take := func(key string) {
		t.Helper()
		again := long
		again.Key = key
		expectTokens(t, c, again, 1)
	}
	place := func(key string) {
		t.Helper()
		must.Get(c.Line(t.Context(), key, 1, step))(t)
	}
	short := func(key string) {
		t.Helper()
		expectTokens(t, c, counting.Take{Key: key, N: 1, Step: time.Second, Burst: 1, Waited: true}, 1)
	}
	for what, test := range map[string]struct {
		calls []func(string)
		least time.Duration
	}{
		"tokens":             {[]func(string){take, take}, 2 * step},
		"a place":            {[]func(string){place}, step},
		"a token, a place":   {[]func(string){short, place}, step},
		"a place, a token":   {[]func(string){place, short}, step},
		"a token, two plans": {[]func(string){take, place}, step},
	} {
		for _, call := range test.calls {
			call(what)
		}
		r := must.Get(s.Inspect(t.Context(), "limit/"+what))(t)
		if left := time.Until(r.ExpiresAt); left < test.least+time.Hour-time.Minute || left > test.least+step {
			t.Errorf("%s: retained for %s, want an hour more than %s", what, left, test.least)
		}
	}
}

// A row that refuses every write grants nothing: the call fails as unavailable.
func TestCounterContended(t *testing.T) {
	t.Parallel()
	b := NewBed(t, "SQLite")
	expectTokens(t, NewCounter(newStore(t, b)), few(4), 4)
	c := NewCounter(newStore(t, b, func(o *Options) { o.Timeout = time.Second }))
	exec(t, b.DB, "CREATE TRIGGER refuse BEFORE UPDATE ON sqsonce_records BEGIN SELECT RAISE(IGNORE); END")
	g, take := c.Take(t.Context(), few(8))
	_, line := c.Line(t.Context(), "limits#key", 1, time.Second)
	if !errors.Is(take, sqsonce.ErrUnavailable) || g.N != 0 || !errors.Is(line, sqsonce.ErrUnavailable) {
		t.Errorf("got %+v with error %v, and error %v for a place, want ErrUnavailable", g, take, line)
	}
}

// A key that a database would change, and a row that can't be a key's, are errors of their own.
func TestCounterBadKeys(t *testing.T) {
	t.Parallel()
	b := NewBed(t, "SQLite")
	c := NewCounter(newStore(t, b))
	for _, key := range []string{"nul\x00", "latin\xff", strings.Repeat("k", maxKey)} {
		take := few(1)
		take.Key = key
		_, err := c.Take(t.Context(), take)
		_, line := c.Line(t.Context(), key, 1, time.Second)
		for _, err := range []error{err, line} {
			if _, refused := errors.AsType[*sqsonce.OptionError](err); !refused {
				t.Errorf("key %.10q: got error %v, want a *sqsonce.OptionError", key, err)
			}
		}
	}
	expectTokens(t, c, few(1), 1)
	exec(t, b.DB, "UPDATE sqsonce_records SET fence = 1e30")
	if _, err := c.Take(t.Context(), few(1)); !errors.Is(err, dedup.ErrRecord) {
		t.Errorf("a row that can't be read: got error %v, want ErrRecord", err)
	}
}

// A take whose statement or answer is lost is sent again. A lost answer wastes its tokens.
func TestCounterBrokenConnection(t *testing.T) {
	t.Parallel()
	for _, name := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := NewBed(t, name)
			p, through := throughProxy(t, b)
			s := newStore(t, through)
			must.Do(t, s.Check(t.Context()))
			c := NewCounter(s)
			take := few(20)
			take.N = 1
			p.loseReply("INSERT INTO")
			expectTokens(t, c, take, 1)
			p.loseStatement("UPDATE")
			expectTokens(t, c, take, 1)
			p.loseReply("UPDATE")
			expectTokens(t, c, take, 1)
			expectTokens(t, NewCounter(newStore(t, b)), few(10), 10-5)
			p.loseReply("CASE WHEN")
			expectTokens(t, c, few(15), 5)
			if n := p.count(); n != 4 {
				t.Errorf("%d connections broke, want 4", n)
			}
		})
	}
}
