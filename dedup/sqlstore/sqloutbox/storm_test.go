package sqloutbox

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/outboxstorm"
)

// TestStorm: relays in processes that are killed and frozen, whose calls of the database and of SQS fail, lose their answers or
// arrive up to 20 minutes late, over SQLite with a driver whose statements are no snapshots. Nothing is lost, nothing invented,
// nothing accepted first out of its order, and nothing twice within five minutes.
func TestStorm(t *testing.T) {
	t.Parallel()
	outboxstorm.NoProblem(t, storm)
}

// Each of these is seen in some run. There is no other group lock than SQLite's own: without it a lower number comes to light after
// a higher one was seen.
func TestStormSees(t *testing.T) {
	t.Parallel()
	outboxstorm.Sees(t, storm, outboxstorm.OneStatement, outboxstorm.SkipLocked, outboxstorm.NoLock, outboxstorm.EarlyDelete)
}

// storm runs a plan over SQLite.
func storm(t *testing.T, p outboxstorm.Plan) (problem string) {
	made := sqlbed.New(t, "SQLite") // outside, for the folder
	made.DSN += "&_pragma=synchronous(off)"
	synctest.Test(t, func(t *testing.T) {
		b := openBed(t, "SQLite", made)
		b.db.SetMaxOpenConns(1)
		must.Do(t, Migrate(t.Context(), b.db, b.dialect))
		spy, relays := spied(t, b)
		relays.SetMaxOpenConns(1)
		d := &tornGroups{defect: p.Defect, rng: rand.New(rand.NewPCG(p.Seed, 7)), groups: map[int64]string{}, seen: map[string]int64{}}
		spy.began = d.began
		writer := b.outbox(t)
		problem = outboxstorm.Run(t.Context(), p, outboxstorm.World{
			Source: source,
			Commit: func(es []fifo.Event, _ int64) func() {
				d.commit(t, b, writer, es)
				return nil
			},
			Open: func(*outboxstorm.Process) outbox.Store {
				o := b.through(t, relays, "box")
				if p.Defect == outboxstorm.OneStatement {
					return oneStatement{o}
				}
				return o
			},
			Left: func(group string) []string { return left(t, b, group) },
			Calm: d.calm,
		})
	})
	return problem
}

func left(t *testing.T, b *bed, group string) (ids []string) {
	rows := must.Get(b.db.Query(b.Dialect.SQL("SELECT {raw}id{/raw} FROM {outbox} WHERE aggregateid = ? ORDER BY seq"), group))(t)
	defer func() { _ = rows.Close() }() // rows.Err reports the errors
	for rows.Next() {
		var id string
		must.Do(t, rows.Scan(&id))
		ids = append(ids, id)
	}
	must.Do(t, rows.Err())
	return ids
}

// oneStatement reads as if an earlier statement had shown all that there is.
type oneStatement struct{ *Outbox }

func (o oneStatement) Read(ctx context.Context, g outbox.Group, known outbox.Known, limit int) ([]outbox.Entry, error) {
	known.Seen = math.MaxInt64
	return o.Outbox.Read(ctx, g, known, limit)
}

// tornGroups is a database whose statements are no snapshots: each has committed rows or has them not, as MariaDB's do while
// transactions commit. A row is there for sure in a statement that began after another one, which had ended, returned it or a later
// row of its group.
type tornGroups struct {
	defect outboxstorm.Defect

	mu     sync.Mutex
	rng    *rand.Rand
	groups map[int64]string // by number
	seen   map[string]int64 // the highest number that an ended statement has returned, by group
	off    bool
}

func (d *tornGroups) calm() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.off = true
}

// commit commits events, and knows whose their numbers are before any reader can.
func (d *tornGroups) commit(t *testing.T, b *bed, o *Outbox, es []fifo.Event) {
	tx := must.Get(b.db.BeginTx(t.Context(), nil))(t)
	must.Do(t, o.Add(t.Context(), tx, es...))
	d.note(t, b, tx, es[0].Group)
	must.Do(t, tx.Commit())
}

func (d *tornGroups) note(t *testing.T, b *bed, tx *sql.Tx, group string) {
	rows := must.Get(tx.Query(b.Dialect.SQL("SELECT seq FROM {outbox} WHERE aggregateid = ?"), group))(t)
	defer func() { _ = rows.Close() }() // rows.Err reports the errors
	d.mu.Lock()
	defer d.mu.Unlock()
	for rows.Next() {
		var seq int64
		must.Do(t, rows.Scan(&seq))
		d.groups[seq] = group
	}
	must.Do(t, rows.Err())
}

func (d *tornGroups) began(text string) (row func([]driver.Value) bool, ended func()) {
	if !strings.Contains(text, "outbox") || strings.Contains(text, "outbox_schema") || strings.Contains(text, "outbox_later") {
		return nil, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	sure, shown := maps.Clone(d.seen), map[string]int64{}
	lucky := d.off || d.rng.IntN(3) == 0
	row = func(values []driver.Value) bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		if name, ok := values[0].(string); ok && len(values) == 4 { // of Groups: the group and its highest number
			if highest, ok := values[1].(int64); ok {
				shown[name] = highest
			}
			return true
		}
		seq, ok := values[0].(int64)
		group := d.groups[seq]
		if !ok || group == "" {
			return true
		}
		late := seq > sure[group] || d.defect == outboxstorm.NoLock
		locked := d.defect == outboxstorm.SkipLocked && d.rng.IntN(4) == 0
		if !lucky && (late && d.rng.IntN(2) == 0 || locked) {
			return false
		}
		shown[group] = max(shown[group], seq)
		return true
	}
	return row, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		for group, seq := range shown {
			d.seen[group] = max(d.seen[group], seq)
		}
	}
}
