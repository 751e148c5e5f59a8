package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/dedup/storetest"
	"github.com/sqsonce/sqsonce/internal/granted"
)

// onEach runs a suite on each kind of database, through pools that open returns. fresh makes a store on tables of its own, and returns
// what opens it again.
func onEach(t *testing.T, open func(t testing.TB, b *Bed) *sql.DB, run func(t *testing.T, name string, fresh func(t *testing.T) func() *Store)) {
	t.Parallel()
	for _, name := range sqlbed.Names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := EmptyBed(t, name)
			pool := open(t, b)
			pool.SetMaxIdleConns(100) // the cases run at once
			var tables atomic.Int64
			run(t, name, func(t *testing.T) func() *Store {
				db, d := pool, b.Dialect
				if b.kind.HasServer() { // a new database would take half a second
					d = d.WithPrefix(fmt.Sprintf("case%d_", tables.Add(1)))
					must.Do(t, Migrate(t.Context(), db, d))
				} else {
					db = open(t, NewBed(t, name))
				}
				// A statement that a busy server had for seconds would be sent again, and its lease is an own retry's.
				return func() *Store { return storeOn(t, db, d, func(o *Options) { o.Timeout = time.Minute }) }
			})
		})
	}
}

func TestStore(t *testing.T) {
	onEach(t, func(_ testing.TB, b *Bed) *sql.DB { return b.DB }, func(t *testing.T, name string, fresh func(*testing.T) func() *Store) {
		storetest.Run(t, storetest.Harness{
			New:  func(t *testing.T) dedup.Store { return fresh(t)() },
			Away: func(t *testing.T) dedup.Store { return awayStore(t, EmptyBed(t, name)) },
			Misconfigured: func(t *testing.T) dedup.Store {
				b := EmptyBed(t, name) // without tables
				return storeOn(t, b.DB, b.Dialect)
			},
			Attributes: attributes,
			Unlisted:   func(t *testing.T) dedup.Store { return newRefuser(t, sqlbed.KindOf(name), false).store },
			ReadOnly:   func(t *testing.T) dedup.Store { return readOnlyStore(t, NewBed(t, name)) },
			NoRecord:   noRecord(sqlbed.KindOf(name)),
			Inbox:      guardByInbox,
			Lease:      unit,
			Grace:      time.Second,
			RealTime:   true,
			Age: func(ctx context.Context, s dedup.Store, d time.Duration) error {
				return ageAll(ctx, s.(*Store).q, s.(*Store).dialect, d, "TRUE")
			},
		})
	})
}

func readOnlyStore(t *testing.T, b *Bed) *Store {
	dsn := b.DSN + map[string]string{"MariaDB": "&tx_read_only=1", "MySQL": "&transaction_read_only=1"}[b.kind.Label]
	if b.kind.ReadOnlyDSN != nil {
		dsn = b.kind.ReadOnlyDSN(b.DSN)
	}
	return storeOn(t, open(t, b.Driver, dsn), b.Dialect)
}

// attributes reads rows, by the names of DynamoDB's attributes.
var attributes = &storetest.Attributes{
	Of: func(ctx context.Context, s dedup.Store, key string) (map[string]string, error) {
		names := map[string]string{"lease_until": "in_progress_expiration", "expires_at": "expiration", "result": "data"}
		store := s.(*Store)
		rows, err := sqlbed.Rows(ctx, store.db, store.dialect.SQL("SELECT * FROM {records} WHERE id = ?"), key)
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		got := map[string]string{}
		for column, value := range rows[0] {
			if value != "" && column != "lease_length" { // no attribute of the protocol
				got[cmp.Or(names[column], column)] = value
			}
		}
		return got, nil
	},
}

// noRecord is a row that no store writes.
func noRecord(k sqlbed.Kind) map[string]func(context.Context, dedup.Store, string) error {
	values := "'EXPIRED', 1"
	if k.Dialect.OneWriter() { // others keep no text in the column
		values = "'INPROGRESS', 'seven'"
	}
	return map[string]func(context.Context, dedup.Store, string) error{"another program's row": func(ctx context.Context, s dedup.Store, key string) error {
		store := s.(*Store)
		_, err := store.q.ExecContext(ctx, store.dialect.SQL("INSERT INTO {records} (id, owner, lease_until, lease_length, expires_at, receive_count, status, fence)"+
			" VALUES (?, 'x', 1, 1, {now} + 3600000, 1, "+values+")"), key)
		return err
	}}
}

func guardByInbox(s dedup.Store, consumer string, h sqsonce.Handler, optFns ...func(*dedup.Options)) (sqsonce.Handler, error) {
	inbox, err := NewInbox(s.(*Store), consumer, optFns...)
	if err != nil {
		return nil, err
	}
	return inbox.Handler(func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
		err := h(ctx, m)
		if err == nil && m.Body == "refused" {
			_, err = tx.ExecContext(ctx, "INSERT INTO no_such_table VALUES (1)")
		}
		return err
	}), nil
}

// Sessions with other defaults: the store's statements mean the same in each.
func TestSessions(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		stores := map[string]*Store{"default": newStore(t, b)}
		oldName := b.kind.SessionStatus != "" && !hasVariable(t, b, "transaction_isolation")
		for name, setting := range b.kind.Sessions {
			if !b.kind.HasServer() {
				// The journal belongs to the file: each setting has a file of its own.
				words := strings.Split(setting, " for ")
				pool := open(t, b.Driver, strings.Replace(EmptyBed(t, b.kind.Label).DSN, words[1], words[0], 1))
				must.Do(t, Migrate(t.Context(), pool, b.Dialect))
				lifeOf(t, storeOn(t, pool, b.Dialect), pool, name)
				continue
			}
			if oldName {
				setting = strings.Replace(setting, "transaction_isolation", "tx_isolation", 1)
			}
			dsn := b.DSN + "?" + setting
			if strings.Contains(b.DSN, "?") {
				dsn = b.DSN + "&" + setting
			}
			dsn = strings.Replace(dsn, "interpolateParams=true&interpolateParams=false", "interpolateParams=false", 1)
			pool := open(t, b.Driver, dsn)
			stores[name] = storeOn(t, pool, b.Dialect)
			lifeOf(t, stores[name], pool, name)
		}
		// Every session sees the lease of every other as live: they agree about the time.
		for owner, s := range stores {
			mustAcquire(t, s, claim("leased by "+owner, "a"))
			for name, other := range stores {
				if _, err := granted.Lease(other.Acquire(t.Context(), claim("leased by "+owner, "b"))); resultOf(err) != "in progress" {
					t.Errorf("leased by %s, for %s: got %s, want in progress", owner, name, resultOf(err))
				}
			}
		}
	})
}

// hasVariable reports whether the server has a setting: MariaDB before 11.1 and MySQL name one of them differently.
func hasVariable(t *testing.T, b *Bed, name string) bool {
	t.Helper()
	rows := must.Get(b.DB.QueryContext(t.Context(), "SHOW VARIABLES LIKE '"+name+"'"))(t)
	defer rows.Close()
	has := rows.Next()
	must.Do(t, rows.Err())
	return has
}

// lifeOf takes one record through all operations, and lets many owners race for another.
func lifeOf(t *testing.T, s *Store, pool *sql.DB, name string) {
	t.Helper()
	key := name + ` 'é\" %s ключ`
	l := mustAcquire(t, s, claim(key, "a"))
	if left := time.Until(l.Until); left < 59*time.Minute || left > time.Hour {
		t.Errorf("%s: %v remain of a lease of an hour", name, left)
	}
	// The same renewal twice within a millisecond succeeds.
	for range 3 {
		var err error
		if l, err = s.Renew(t.Context(), l, time.Minute); err != nil {
			t.Errorf("%s: Renew: %v", name, err)
		}
	}
	if err := s.Release(t.Context(), l, fmt.Errorf("zażółć 🂡 '\\\x00\xff")); err != nil {
		t.Errorf("%s: Release: %v", name, err)
	}
	again := claim(key, "b")
	again.ReceiveCount = 2
	l = mustAcquire(t, s, again)
	if l.LastError != `zażółć 🂡 '\�` || l.Takeover {
		t.Errorf("%s: got %+v, want the error that was stored", name, l)
	}
	for range 2 {
		mustComplete(t, s, l)
	}
	if _, err := s.Renew(t.Context(), l, time.Hour); resultOf(err) != "lost" {
		t.Errorf("%s: Renew after Complete: got %s, want lost", name, resultOf(err))
	}
	const racers = 8
	pool.SetMaxOpenConns(racers)
	var wg sync.WaitGroup
	outcomes := make([]string, racers)
	for i := range racers {
		wg.Go(func() {
			_, err := granted.Lease(s.Acquire(t.Context(), claim(name+" race", fmt.Sprint(i))))
			outcomes[i] = resultOf(err)
		})
	}
	wg.Wait()
	won, refused := 0, 0
	for _, o := range outcomes {
		switch o {
		case "acquired":
			won++
		case "in progress":
			refused++
		}
	}
	if won != 1 || refused != racers-1 {
		t.Errorf("%s: racers got %q, want one winner", name, outcomes)
	}
}

func init() { listPage = 10 } // a list of the conformance suite takes several statements

// A pool of one connection serves any number of handlers: no call keeps it while it waits for something else, and no list between
// its statements.
func TestOneConnection(t *testing.T) {
	eachStore(t, func(t *testing.T, b *Bed, s *Store) {
		b.DB.SetMaxOpenConns(1)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		var handlers sync.WaitGroup
		for h := range 16 {
			handlers.Go(func() {
				for n := range 5 {
					l, err := granted.Lease(s.Acquire(ctx, claim(fmt.Sprint("order ", h, ".", n), "owner")))
					if err == nil {
						err = s.Complete(ctx, l, dedup.Result{})
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		handlers.Wait()
		listed := 0
		for r, err := range s.List(ctx) {
			if err == nil {
				_, err = s.Inspect(ctx, r.Key)
			}
			must.Do(t, err)
			listed++
		}
		if listed != 80 {
			t.Errorf("%d records are listed, want 80", listed)
		}
	})
}

func TestDelete(t *testing.T) {
	eachStore(t, func(t *testing.T, b *Bed, s *Store) {
		l := mustAcquire(t, s, claim("k", "a"))
		in, ok := errors.AsType[*dedup.InProgressError](s.Delete(t.Context(), "k"))
		if !ok || in.Until.Before(l.Until) {
			t.Errorf("Delete of a live lease: got %v, want *InProgressError until its end", in)
		}
		must.Do(t, s.Delete(t.Context(), "k", func(o *dedup.DeleteOptions) { o.Force = true }))
		mustComplete(t, s, mustAcquire(t, s, claim("k", "b")))
		for range 2 {
			must.Do(t, s.Delete(t.Context(), "k"))
		}
		if l := mustAcquire(t, s, claim("k", "c")); l.Takeover || l.LastError != "" {
			t.Errorf("after a delete: got %+v, want a fresh lease", l)
		}
	})
}

// A text that one database would refuse or change is refused for all.
func TestBadTexts(t *testing.T) {
	eachStore(t, func(t *testing.T, b *Bed, s *Store) {
		for _, text := range []string{"", strings.Repeat("k", 2049), "a\x00b", "a\xffb"} {
			_, err := granted.Lease(s.Acquire(t.Context(), claim(text, "a")))
			if !hasField(err, "Claim.Key") {
				t.Errorf("key %.9q: got error %v, want a *sqsonce.OptionError of Claim.Key", text, err)
			}
			if _, err := granted.Lease(s.Acquire(t.Context(), claim("k", text))); !hasField(err, "Claim.Owner") {
				t.Errorf("owner %.9q: got error %v, want a *sqsonce.OptionError of Claim.Owner", text, err)
			}
			l := dedup.Lease{Key: text, Owner: "a"}
			_, err = s.Renew(t.Context(), l, time.Hour)
			for _, err := range []error{err, s.Complete(t.Context(), l, dedup.Result{}), s.Release(t.Context(), l, nil)} {
				if !hasField(err, "Lease.Key") {
					t.Errorf("key %.9q: got error %v, want a *sqsonce.OptionError of Lease.Key", text, err)
				}
			}
			_, err = s.Inspect(t.Context(), text)
			for _, err := range []error{err, s.Delete(t.Context(), text)} {
				if !hasField(err, "key") {
					t.Errorf("key %.9q: got error %v, want a *sqsonce.OptionError of key", text, err)
				}
			}
		}
		short := claim("k", "a")
		short.Lease = time.Microsecond
		if _, err := granted.Lease(s.Acquire(t.Context(), short)); !hasField(err, "Claim.Lease") {
			t.Errorf("a lease of 1 µs: got error %v, want a *sqsonce.OptionError of Claim.Lease", err)
		}
		longest := claim(strings.Repeat("é", 1024), strings.Repeat("o", 255))
		mustComplete(t, s, mustAcquire(t, s, longest))
	})
}
