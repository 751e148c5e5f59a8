package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	osexec "os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
)

// A deferred inbox under everything at once: processors are killed at any instant, so is the database's server, handlers
// fail, panic and outlive their leases, and events arrive meanwhile. Every event has its effect once, and each group's
// effects are in its order. SOAK=1 takes a minute for each database.
func TestDeferredUnderAttack(t *testing.T) {
	t.Parallel()
	length := 4 * time.Second
	if os.Getenv("SOAK") != "" {
		length = time.Minute
	}
	for _, name := range sqlbed.Names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newBed := NewBed
			if sqlbed.KindOf(name).HasServer() {
				newBed = ownServer
			}
			b := newBed(t, name)
			exec(t, b.DB, "CREATE TABLE effect (n "+b.kind.Numbered+", event VARCHAR(64))")
			end := time.Now().Add(length)
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					for time.Now().Before(end) {
						runAttacked(t, b, func(died <-chan struct{}) {
							select {
							case <-died:
								t.Error("a processor ended by itself")
							case <-time.After(200*time.Millisecond + rand.N(1500*time.Millisecond)):
							}
						})
					}
				})
			}
			if b.Server != nil {
				wg.Go(func() {
					for time.Now().Before(end) {
						time.Sleep(time.Second + rand.N(2*time.Second))
						b.Server.Kill()
						time.Sleep(rand.N(300 * time.Millisecond))
						if err := b.Server.Relaunch(context.Background()); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			d := newDeferred(t, newStore(t, b))
			const groups = 5
			var received [groups + 1]int
			for g := range received {
				wg.Go(func() {
					for time.Now().Before(end) {
						if c, err := d.Count(t.Context()); err != nil || c.Pending > 100 { // not more than the end can wait for
							time.Sleep(50 * time.Millisecond)
							continue
						}
						n := received[g]
						m := order(fmt.Sprintf("%d-%d", g, n), 1)
						if g < groups {
							m = inGroup(fmt.Sprint(g), fmt.Sprintf("%d-%d", g, n))
						}
						for d.Receive(t.Context(), m) != nil { // as a queue does
							if t.Context().Err() != nil {
								return
							}
						}
						received[g]++
						time.Sleep(rand.N(60 * time.Millisecond))
					}
				})
			}
			wg.Wait()
			eventually(t, "the database answers", func() bool { return b.DB.PingContext(t.Context()) == nil })
			runAttacked(t, b, func(<-chan struct{}) { awaitCounts(t, d, 0, 0) })

			rows := must.Get(b.DB.QueryContext(t.Context(), "SELECT event FROM effect ORDER BY n"))(t)
			defer func() { _ = rows.Close() }()
			var got [groups + 1]int
			seen := map[string]bool{}
			for rows.Next() {
				var event string
				must.Do(t, rows.Scan(&event))
				if seen[event] {
					t.Errorf("%s has its effect twice", event)
				}
				seen[event] = true
				group, place, _ := strings.Cut(strings.TrimPrefix(event, "m-"), "-")
				g, _ := strconv.Atoi(group)
				if n, _ := strconv.Atoi(place); g < groups && n != got[g] {
					t.Errorf("group %d: event %d came after %d others", g, n, got[g])
				}
				got[g]++
			}
			must.Do(t, rows.Err())
			if got != received {
				t.Errorf("effects by group: got %v, want %v", got, received)
			}
			t.Logf("%d events", len(seen))
		})
	}
}

const attacked = "Attacked"

// runAttacked runs a processor in another process until f returns, and kills it then.
func runAttacked(t *testing.T, b *Bed, f func(died <-chan struct{})) {
	child := osexec.Command(os.Args[0])
	child.Env = append(os.Environ(), childWay+"="+attacked, childKind+"="+b.kind.Label, childDSN+"="+b.DSN)
	child.Stderr = os.Stderr
	if err := child.Start(); err != nil {
		t.Error(err)
		return
	}
	died := make(chan struct{})
	go func() {
		_ = child.Wait() // it is killed
		close(died)
	}()
	defer func() {
		_ = child.Process.Kill()
		<-died
	}()
	f(died)
}

// runUnderAttack is the child process of runAttacked.
func runUnderAttack(d *Deferred) error {
	p, err := NewProcessor(d, quick, func(o *ProcessorOptions) {
		o.Concurrency, o.MaxAttempts, o.Logger = 4, -1, slog.New(slog.DiscardHandler)
	})
	if err != nil {
		return err
	}
	return p.Run(context.Background(), func(ctx context.Context, m *sqsonce.Message, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, d.store.dialect.SQL("INSERT INTO effect (event) VALUES (?)"), m.ID); err != nil {
			return err
		}
		switch rand.N(60) {
		case 0:
			return errBoom
		case 1:
			panic(errBoom)
		case 2:
			runtime.Goexit()
		case 3:
			time.Sleep(1200 * time.Millisecond) // longer than the lease
		case 4:
			return sqsonce.RetryAfter(0, errors.New("later"))
		}
		time.Sleep(rand.N(10 * time.Millisecond))
		return nil
	})
}
