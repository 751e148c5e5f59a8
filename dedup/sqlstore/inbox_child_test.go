package sqlstore

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	osexec "os/exec"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// A consumer process is killed with SIGKILL in the middle of its handler's transaction, after the effect was written and
// before it was committed. Nothing of it is there, and the next consumer has the effect once.
func TestConsumerKilled(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *Bed, w way) {
		if w.name == "Deferred" {
			receive(t, newDeferred(t, newStore(t, b)), order(orderID, 1))
		}
		child := osexec.Command(os.Args[0])
		child.Env = append(os.Environ(), childWay+"="+w.name, childDriver+"="+b.Driver, childDSN+"="+b.DSN)
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil || line != wrote {
			t.Fatalf("the child's first line: got %q and error %v, want %q", line, err, wrote)
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait() // it was killed
		expectBalance(t, b.DB, 0)

		redeliver(t, w.consumer(t, b, addTen), orderID)
		w.settle(t, b)
		expectBalance(t, b.DB, 10)
		if w.name == "Deferred" {
			if e, err := newDeferred(t, newStore(t, b)).Inspect(t.Context(), orderKey); err != nil || e.Attempts != 2 {
				t.Errorf("event: got %+v and error %v, want it done by the second attempt", e, err)
			}
		}
	})
}

const (
	childWay    = "SQLSTORE_TEST_CHILD"
	childDriver = "SQLSTORE_TEST_DRIVER"
	childDSN    = "SQLSTORE_TEST_DSN"
	wrote       = "wrote\n"
)

// In the child process of TestConsumerKilled the package's tests never begin.
func init() {
	name := os.Getenv(childWay)
	if name == "" {
		return
	}
	if err := consume(name, os.Getenv(childDriver), os.Getenv(childDSN)); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(1)
}

// consume handles one delivery and stops in its middle.
func consume(name, driver, dsn string) error {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	dialect := map[string]Dialect{"pgx": PostgreSQL, "mysql": MySQL, "sqlite": SQLite}[driver]
	s, err := New(db, dialect)
	if err != nil {
		return err
	}
	inTheMiddle := func(ctx context.Context, _ *sqsonce.Message, tx *sql.Tx) error {
		if err := addTen(ctx, tx); err != nil {
			return err
		}
		fmt.Print(wrote)
		time.Sleep(time.Hour)
		return nil
	}
	switch ctx := context.Background(); name {
	case "Inbox":
		i, err := NewInbox(s, "billing")
		if err != nil {
			return err
		}
		return i.Handler(inTheMiddle)(ctx, order(orderID, 1))
	case "Once":
		once, err := dedup.New(s, "billing", func(o *dedup.Options) { o.Lease = time.Second })
		if err != nil {
			return err
		}
		return once.Handler(func(ctx context.Context, m *sqsonce.Message) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			return inTheMiddle(ctx, m, tx)
		})(ctx, order(orderID, 1))
	default:
		d, err := NewDeferred(s, "billing")
		if err != nil {
			return err
		}
		p, err := NewProcessor(d, quick)
		if err != nil {
			return err
		}
		return p.Run(ctx, inTheMiddle)
	}
}
