package refstore

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
)

// Source is the namespace of the events.
const Source = "orders"

// Table is what several stores, as those of several processes, work on.
type Table struct {
	mu       sync.Mutex
	groups   map[string]map[int64]*row
	versions map[string]int64
	claims   map[string]claim
	serial   int64 // of claims' owners, and of calls

	// Before is called before each call of a store, without a lock, and its error is the call's; after Read and Delete it is
	// called with "Read done" and "Delete done", and its error takes the place of the answer. nil: nothing.
	Before func(op string) error
}

type row struct {
	outbox.Entry
	created time.Time
	visible bool // a decided transaction has reached it
	broken  bool
}

type claim struct {
	owner int64
	first int64 // the row that carries it
	until time.Time
}

func NewTable() *Table {
	return &Table{groups: make(map[string]map[int64]*row), versions: make(map[string]int64), claims: make(map[string]claim)}
}

func (t *Table) Open() *Store {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.serial++
	return &Store{Table: t, owner: t.serial}
}

func (s *Store) Source() string { return Source }

func (t *Table) Commit(es ...fifo.Event) { t.Half(es...)() }

// Half decides a transaction that has reached its last event alone; finish lets it reach the others.
func (t *Table) Half(es ...fifo.Event) (finish func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var rows []*row
	for _, e := range es {
		if t.groups[e.Group] == nil {
			t.groups[e.Group] = make(map[int64]*row)
		}
		t.versions[e.Group]++
		r := &row{Entry: outbox.Entry{Event: e, Source: Source, Seq: t.versions[e.Group]}, created: time.Now()}
		t.groups[e.Group][r.Seq] = r
		rows = append(rows, r)
	}
	if len(rows) > 0 {
		rows[len(rows)-1].visible = true
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, r := range rows {
			r.visible = true
		}
	}
}

// Change changes an event that is there: as a writer of another version, or with another namespace, would have left it.
func (t *Table) Change(group string, seq int64, f func(e *outbox.Entry) (broken bool)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.groups[group][seq]
	r.broken = f(&r.Entry)
}

func (t *Table) Events(group string) (es []outbox.Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.rows(group) {
		es = append(es, r.Entry)
	}
	return es
}

// rows returns all rows of a group in their order, those that are not visible too. The caller holds the lock.
func (t *Table) rows(group string) []*row {
	return slices.SortedFunc(maps.Values(t.groups[group]), func(a, b *row) int { return cmp.Compare(a.Seq, b.Seq) })
}
