package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	osexec "os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
)

const honest = 8

// One event's handler kills its process, which also has eight honest events. Only the poison is parked, and each honest
// event has its effect once, although a single attempt is allowed.
func TestPoisonParksNoOther(t *testing.T) {
	EachDialect(t, func(t *testing.T, b *Bed) {
		exec(t, b.DB, "CREATE TABLE effect (event VARCHAR(64))")
		d := newDeferred(t, newStore(t, b))
		receive(t, d, order("poison", 1))
		for n := range honest {
			receive(t, d, order(fmt.Sprint("honest-", n), 1))
		}
		deaths := 0
		for ; deaths < 10 && !runUntilKilled(t, b, d); deaths++ {
		}
		if deaths < 2 || deaths == 10 {
			t.Errorf("the process died %d times, want once with others at work and once alone", deaths)
		}
		all := must.Get(d.Parked(t.Context(), 10))(t)
		for _, e := range all {
			if e.Message.ID != "m-poison" || !strings.Contains(e.Error, "without an outcome") {
				t.Errorf("%s is parked after %d attempts: %s", e.Message.ID, e.Attempts, e.Error)
			}
		}
		if len(all) != 1 {
			t.Errorf("parked: got %d events, want the poison", len(all))
		}
		var rows, events int
		must.Do(t, b.DB.QueryRowContext(t.Context(), "SELECT COUNT(*), COUNT(DISTINCT event) FROM effect").Scan(&rows, &events))
		if rows != honest || events != honest {
			t.Errorf("effects: got %d of %d events, want one of each of %d", rows, events, honest)
		}
	})
}

// runUntilKilled runs a processor in another process until that dies, or until no event is pending. It reports the latter.
func runUntilKilled(t *testing.T, b *Bed, d *Deferred) (done bool) {
	t.Helper()
	child := osexec.Command(os.Args[0])
	child.Env = append(os.Environ(), childWay+"="+poisoned, childKind+"="+b.kind.Label, childDSN+"="+b.DSN)
	child.Stderr = os.Stderr
	must.Do(t, child.Start())
	died := make(chan struct{})
	go func() {
		_ = child.Wait() // it is killed, here or by its own handler
		close(died)
	}()
	defer func() {
		_ = child.Process.Kill()
		<-died
	}()
	eventually(t, "the process dies or has handled everything", func() bool {
		c, err := d.Count(t.Context())
		done = err == nil && c.Pending == 0
		select {
		case <-died:
			return true
		default:
			return done
		}
	})
	return done
}

const poisoned = "Poison"

// runPoisoned is the child process of runUntilKilled.
func runPoisoned(d *Deferred) error {
	p, err := NewProcessor(d, quick, func(o *ProcessorOptions) { o.Concurrency, o.MaxAttempts = honest+1, 1 })
	if err != nil {
		return err
	}
	return p.Run(context.Background(), func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
		if m.ID == "m-poison" {
			self, err := os.FindProcess(os.Getpid())
			if err != nil {
				return err
			}
			if err := self.Kill(); err != nil {
				return err
			}
			select {} // until the signal comes
		}
		time.Sleep(200 * time.Millisecond) // so that it is at work when the process dies
		_, err := tx.ExecContext(ctx, d.store.dialect.SQL("INSERT INTO effect (event) VALUES (?)"), m.ID)
		return err
	})
}
