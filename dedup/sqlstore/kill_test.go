package sqlstore

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	mysqldriver "github.com/go-sql-driver/mysql"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// A consumer process is killed with SIGKILL inside its handler's transaction, after the effect was written and before it
// was committed. Nothing of it remains, and the next consumer has the effect once.
func TestConsumerKilled(t *testing.T) {
	eachWay(t, func(t *testing.T, b *Bed, w way) {
		if w.name == "Deferred" {
			receive(t, newDeferred(t, newStore(t, b)), order(orderID, 1))
		}
		dieInHandler(t, b, w.name)
		expectBalance(t, b.DB, 0)

		redeliver(t, w.consumer(t, b, addTen), orderID)
		w.finish(t, b)
		expectBalance(t, b.DB, 10)
		if w.name == "Deferred" {
			if e, err := newDeferred(t, newStore(t, b)).Inspect(t.Context(), orderKey); err != nil || e.Attempts != 2 {
				t.Errorf("event: got %+v and error %v, want it done by the second attempt", e, err)
			}
		}
	})
}

// dieInHandler runs a delivery in another process, and kills that in its handler.
func dieInHandler(t *testing.T, b *Bed, way string) {
	t.Helper()
	child := osexec.Command(os.Args[0])
	child.Env = append(os.Environ(), childWay+"="+way, childKind+"="+b.kind.Label, childDSN+"="+b.DSN)
	child.Stderr = os.Stderr
	out := must.Get(child.StdoutPipe())(t)
	must.Do(t, child.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != wrote {
		t.Fatalf("the child's first line: got %q and error %v, want %q", line, err, wrote)
	}
	must.Do(t, child.Process.Kill())
	_ = child.Wait() // it was killed
}

// An event that ran in a process that died at its second receive is a suspect. One that failed is none, nor is one of a first receive.
func TestInboxSuspect(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		newLedger(t, b)
		ctx := settle.WithSuspects(t.Context(), 2)
		deliver := func(ctx context.Context, receive int, h func(context.Context, *sqsonce.Message, *sql.Tx) error) error {
			return newInbox(t, otherProcess(t, b)).Handler(h)(ctx, order(orderID, receive))
		}
		fails := func(context.Context, *sqsonce.Message, *sql.Tx) error { return errBoom }
		dieInHandler(t, b, "Inbox")
		for receive := 2; receive < 4; receive++ {
			if err := deliver(ctx, receive, fails); !errors.Is(err, errBoom) {
				t.Errorf("receive %d: got %v, want a run", receive, err)
			}
		}
		dieInHandler(t, b, againWay)
		for receive := 3; receive < 5; receive++ { // the second one reads what the first one noted
			s, suspect := settle.SuspectOf(deliver(ctx, receive, fails))
			if !suspect || time.Since(s.Started).Abs() > time.Minute || s.Alone {
				t.Errorf("receive %d: got %+v, want a suspect that was just started", receive, s)
			}
		}
		dieInHandler(t, b, apartWay)
		if s, suspect := settle.SuspectOf(deliver(ctx, 5, fails)); !suspect || !s.Alone {
			t.Errorf("got %+v, want a suspect that crashed a process which ran it apart", s)
		}
		must.Do(t, deliver(settle.RunningSuspect(ctx), 5, book))
		expectBalance(t, b.DB, 10)
	})
}

const (
	againWay = "Inbox again" // at its second receive
	apartWay = "Inbox apart" // with a suspect that it runs apart
)

const (
	childWay  = "SQLSTORE_TEST_CHILD"
	childKind = "SQLSTORE_TEST_KIND"
	childDSN  = "SQLSTORE_TEST_DSN"
	wrote     = "wrote\n"
)

// In the child process of TestConsumerKilled this runs instead of the package's tests.
func init() {
	name := os.Getenv(childWay)
	if name == "" {
		return
	}
	_ = mysqldriver.SetLogger(&mysqldriver.NopLogger{}) // see TestMain
	if err := consume(name, sqlbed.KindOf(os.Getenv(childKind)), os.Getenv(childDSN)); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(1)
}

// consume handles one delivery and stops inside the handler.
func consume(name string, kind sqlbed.Kind, dsn string) error {
	db, err := sql.Open(kind.Driver, dsn)
	if err != nil {
		return err
	}
	s, err := New(db, Dialect(kind.Dialect))
	if err != nil {
		return err
	}
	writeAndWait := func(ctx context.Context, _ *sqsonce.Message, tx *sql.Tx) error {
		if err := addTen(ctx, tx); err != nil {
			return err
		}
		fmt.Print(wrote)
		time.Sleep(time.Hour)
		return nil
	}
	switch ctx := context.Background(); name {
	case "Inbox", againWay, apartWay:
		receive := 1
		if name == againWay {
			receive = 2
		}
		i, err := NewInbox(s, "billing")
		if err != nil {
			return err
		}
		h := i.Handler(writeAndWait)
		if name == apartWay {
			_ = h(settle.WithSuspects(ctx, 2), order(orderID, 4))
			ctx, receive = settle.RunningSuspect(ctx), 4
		}
		return h(ctx, order(orderID, receive))
	case "Once":
		once, err := dedup.New(s, "billing", func(o *dedup.Options) { o.LeaseDuration = time.Second })
		if err != nil {
			return err
		}
		return once.Handler(func(ctx context.Context, m *sqsonce.Message) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			return writeAndWait(ctx, m, tx)
		})(ctx, order(orderID, 1))
	default:
		d, err := NewDeferred(s, "billing")
		if err != nil {
			return err
		}
		switch name {
		case poisoned:
			return runPoisoned(d)
		case attacked:
			return runUnderAttack(d)
		}
		p, err := NewProcessor(d, quick)
		if err != nil {
			return err
		}
		return p.Run(ctx, writeAndWait)
	}
}

// The database is killed while a handler's transaction is open. Nothing of the transaction remains, the delivery fails,
// and the next one has its effect.
func TestTransactionOnKilledDatabase(t *testing.T) {
	each(t, servers, ownServer, func(t *testing.T, b *Bed) {
		newLedger(t, b)
		killIn := func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
			if err := book(ctx, m, tx); err != nil {
				return err
			}
			b.Server.Kill()
			// PostgreSQL's process for this connection lives a little longer than the server's, and could still commit.
			eventually(t, "the connection is dead", func() bool {
				_, err := tx.ExecContext(ctx, "SELECT 1")
				return err != nil
			})
			return nil
		}
		i := newInbox(t, newStore(t, b))
		if err := i.Handler(killIn)(t.Context(), order(orderID, 1)); err == nil {
			t.Error("delivery: got nil, want an error: its transaction ended with the server")
		}
		b.Server.Restart(t)
		// The pool still has connections to the killed server.
		eventually(t, "the database answers", func() bool { return b.DB.PingContext(t.Context()) == nil })
		expectBalance(t, b.DB, 0)
		redeliver(t, i.Handler(book), orderID)
		expectBalance(t, b.DB, 10)

		d := newDeferred(t, newStore(t, b))
		receive(t, d, order("43", 1))
		var runs atomic.Int64
		restarted := make(chan error, 1)
		process(t, d, func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
			if runs.Add(1) > 1 {
				return book(ctx, m, tx)
			}
			defer func() { go func() { restarted <- b.Server.Relaunch(context.Background()) }() }()
			return killIn(ctx, m, tx)
		})
		must.Do(t, <-restarted)
		awaitCounts(t, d, 0, 0)
		expectBalance(t, b.DB, 20)
		if n := runs.Load(); n < 2 {
			t.Errorf("the handler ran %d times, want a second time after the kill", n)
		}
	})
}
