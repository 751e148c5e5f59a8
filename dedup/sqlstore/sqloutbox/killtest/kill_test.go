//go:build unix

// Package killtest_test kills relays and producers of an SQL outbox with SIGKILL at every step, stops others with SIGSTOP while SQS
// forgets what it accepted, and checks the queue against the versions that were committed. The parent has the queue, and the clock of
// its deduplication. Its children are processes of the test binary.
package killtest_test

import (
	"bytes"
	"database/sql"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/dedup/sqlstore"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/sqloutbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/proof/process"
)

func TestMain(m *testing.M) {
	runChild()
	sqlbed.Main(m)
}

// Processes are killed, KILLS of them, some are stopped, and one relay publishes the rest. Then each group's events are in the queue,
// in the order of their versions, and there is none that was not committed. A timer that was scheduled is published once or cancelled,
// after its version, and before the versions that came too late to cancel it.
func TestKill(t *testing.T) {
	t.Parallel()
	for _, kind := range sqlbed.Names {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			made := sqlbed.New(t, kind)
			db := sqlbed.Open(t, made.Driver, made.DSN)
			must.Do(t, sqloutbox.Migrate(t.Context(), db, sqlstore.Dialect(made.Dialect)))
			sqlbed.Exec(t, db, "CREATE TABLE versions (id VARCHAR(64) NOT NULL PRIMARY KEY, version INTEGER NOT NULL)")
			sqlbed.Exec(t, db, "CREATE TABLE timers (id VARCHAR(64) NOT NULL PRIMARY KEY, cancelled INTEGER NOT NULL, missed INTEGER NOT NULL)")
			kills := usual
			if s := os.Getenv("KILLS"); s != "" {
				kills = must.Get(strconv.Atoi(s))(t)
			}
			seed := uint64(time.Now().UnixNano())
			q := newQueue(t)
			s := &supervisor{
				t: t, rng: rand.New(rand.NewPCG(seed, 0)), toKill: kills, kills: map[string]int{}, children: map[*process.Process]bool{},
				env: []string{
					envSQS + "=" + q.server, envQueue + "=" + q.url, envKind + "=" + kind, envDriver + "=" + made.Driver, envDSN + "=" + made.DSN,
				},
				forget: func() { q.ahead.Add(int64(forgets)) },
			}
			s.start()
			for deadline := time.Now().Add(drain); len(versions(t, db)) == 0 && time.Now().Before(deadline); { // few kills may come before a commit
				time.Sleep(50 * time.Millisecond)
			}
			s.waitForKills()
			s.stop()
			time.Sleep(settle)
			s.finish(func() bool {
				var left int
				must.Do(t, db.QueryRowContext(t.Context(), made.Dialect.SQL("SELECT (SELECT COUNT(*) FROM {outbox}) + (SELECT COUNT(*) FROM {outbox_later})")).Scan(&left))
				return left == 0
			})
			scheduled := timers(t, db)
			events, moved, copies := q.check(t, versions(t, db), scheduled)
			t.Logf("seed %d: %d events, %d timers moved and %d cancelled, %d copies; %s", seed, events, moved, len(scheduled)-moved, copies, s)
			const enough = 20 // kills after which there are timers of both kinds
			if events == 0 || kills >= enough && (moved == 0 || moved == len(scheduled)) {
				t.Error("nothing was committed, moved or cancelled: nothing is shown")
			}
		})
	}
}

// The test must be able to fail.
func TestKillSeesDefects(t *testing.T) {
	t.Parallel()
	for defect, signs := range map[string][]string{
		earlyDelete: {"is lost", "comes before event"},
		cancelApart: {"timer", "a timer was cancelled"},
	} {
		t.Run(defect, func(t *testing.T) {
			t.Parallel()
			var out []byte
			for range 10 { // where children die is drawn
				cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKill$/^SQLite$")
				cmd.Env = append(os.Environ(), envDefect+"="+defect, "KILLS=20")
				var err error
				out, err = cmd.CombinedOutput()
				if err != nil && slices.ContainsFunc(signs, func(sign string) bool { return bytes.Contains(out, []byte(sign)) }) {
					return
				}
			}
			t.Errorf("nothing was seen:\n%s", out)
		})
	}
}

func versions(t *testing.T, db *sql.DB) map[string]int {
	rows := must.Get(db.QueryContext(t.Context(), "SELECT id, version FROM versions"))(t)
	defer func() { _ = rows.Close() }() // rows.Err reports the errors
	all := map[string]int{}
	for rows.Next() {
		var group string
		var version int
		must.Do(t, rows.Scan(&group, &version))
		all[group] = version
	}
	must.Do(t, rows.Err())
	return all
}

func timers(t *testing.T, db *sql.DB) map[string]timerState {
	rows := must.Get(db.QueryContext(t.Context(), "SELECT id, cancelled, missed FROM timers"))(t)
	defer func() { _ = rows.Close() }() // rows.Err reports the errors
	all := map[string]timerState{}
	for rows.Next() {
		var id string
		var s timerState
		must.Do(t, rows.Scan(&id, &s.cancelled, &s.missed))
		all[id] = s
	}
	must.Do(t, rows.Err())
	return all
}
