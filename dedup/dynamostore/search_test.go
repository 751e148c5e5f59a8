package dynamostore

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
)

// The search runs the store's own code, on DynamoDB in memory, through every order of the calls of some owners, late copies
// of their packets, the passing of time, TTL and operators. It checks each state that it reaches: no two owners have a
// live lease, fences grow, a completed record is not reopened within its retention, effects happen once and are not lost,
// and a key whose holders have crashed can be acquired again.

// scope limits a search: how often each thing may happen.
type scope struct {
	name      string
	skew      [players]time.Duration // of the hosts' clocks
	players   int                    // the last one only acquires
	renews    int                    // by each
	lost      int                    // packets that the network delays, and replies that it loses
	late      int                    // packets that it delivers late or twice
	steps     int                    // of time
	commits   bool                   // owners commit with effects; otherwise they complete
	remove    bool                   // an operator deletes the record; TTL does
	operators int                    // who look at the record and reopen it
	force     bool                   // also under a live lease
}

var scopes = []scope{
	{name: "completion", players: 3, renews: 1, late: 1, steps: 2},
	{name: "two late packets", players: 2, renews: 1, late: 2, steps: 2},
	{name: "two renewals", players: 2, renews: 2, late: 1, steps: 2},
	{name: "a lost packet", players: 2, renews: 1, lost: 1, late: 1, steps: 2},
	{name: "commit", players: 2, lost: 1, late: 2, steps: 2, commits: true},
	{name: "deletion", players: 2, late: 1, steps: 2, remove: true},
	{name: "deletion of effects", players: 2, late: 1, steps: 1, commits: true, remove: true},
	{name: "an operator", players: 2, late: 1, steps: 2, operators: 1},
	{name: "two operators", players: 1, late: 1, steps: 2, operators: 2},
	{name: "a lost reopen", players: 1, lost: 1, late: 1, steps: 2, operators: 1},
	{name: "a forced reopen", players: 2, renews: 1, late: 1, steps: 1, operators: 1, force: true},
	{name: "reopened effects", players: 2, late: 1, steps: 1, commits: true, operators: 1},
	{name: "the first host ahead", skew: [players]time.Duration{30 * time.Second, -30 * time.Second, 0}, players: 2, renews: 1, late: 1, steps: 3},
	{name: "the first host behind", skew: [players]time.Duration{-30 * time.Second, 30 * time.Second, 0}, players: 2, renews: 1, late: 1, steps: 3},
}

// wideScopes take minutes: they run with SOAK in the environment.
var wideScopes = []scope{
	{name: "wide completion", players: 3, renews: 1, late: 2, steps: 2},
	{name: "wide loss", players: 2, renews: 2, lost: 1, late: 2, steps: 3},
	{name: "wide commit", players: 2, renews: 1, lost: 1, late: 2, steps: 2, commits: true},
	{name: "wide deletion", players: 3, late: 1, steps: 2, remove: true},
	{name: "wide deletion of effects", players: 2, lost: 1, late: 1, steps: 2, commits: true, remove: true},
	{name: "wide operators", players: 2, renews: 1, lost: 1, late: 1, steps: 2, operators: 2},
	{name: "wide forced reopens", players: 2, renews: 1, late: 2, steps: 1, commits: true, operators: 2, force: true},
	{name: "wide deletion and reopens", players: 2, late: 1, steps: 2, remove: true, operators: 1},
	{name: "the first host ahead, wide", skew: [players]time.Duration{30 * time.Second, -30 * time.Second, 0}, players: 3, renews: 1, late: 1, steps: 3},
	{name: "the first host behind, wide", skew: [players]time.Duration{-30 * time.Second, 30 * time.Second, 0}, players: 3, renews: 1, late: 1, steps: 3},
}

func TestSchedules(t *testing.T) {
	t.Parallel()
	all := scopes
	if soak {
		all = slices.Concat(scopes, wideScopes)
	}
	for _, sc := range all {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			s := searched(t, sc, nil)
			if s.violation != nil {
				t.Error(s.violation)
			}
			t.Logf("%d moves through %d states", s.moves, len(s.known))
		})
	}
}

// Every clause of every condition is needed: with a broken one some schedule fails. The owner's term in isAnothers is not in
// the list, since the fence refuses that owner too.
func TestSchedulesSeeBrokenConditions(t *testing.T) {
	t.Parallel()
	for _, b := range broken {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(scopes, func(sc scope) bool { return sc.name == b.scope })
			br := &breaker{kind: b.kind, clause: b.clause, within: b.within}
			s := searched(t, scopes[i], br)
			t.Logf("%v", s.violation)
			if s.violation == nil {
				t.Errorf("no schedule of %d moves fails; %d conditions were broken", s.moves, br.hits)
			}
		})
	}
}

func searched(t *testing.T, sc scope, b *breaker) *search {
	if testing.Short() {
		t.Skip("make race is short: a search has one goroutine at a time, and takes minutes under the race detector")
	}
	s := &search{scope: sc, broken: b}
	s.run(t)
	return s
}

var soak = os.Getenv("SOAK") != ""

// width is the number of states from which a search goes on at each length of the schedules, drawn by their hashes. With SOAK
// it goes on from all, and where one schedule in thousands tells that fences must grow.
const width = 150

// search goes through the schedules of a scope, each state once, the shortest schedules first.
type search struct {
	scope
	broken *breaker

	known     map[string]bool // states, by key
	next      []*state        // one move longer than those that are being visited
	moves     int
	violation error
}

func (s *search) run(t *testing.T) {
	m := newMachine(t, s.scope, s.broken)
	defer m.close()
	s.known = map[string]bool{}
	s.find(m.initial())
	for len(s.next) > 0 && s.violation == nil {
		states := s.next
		s.next = nil
		if len(states) > width && !soak && (s.broken == nil || s.broken.clause != fenceGrows) {
			slices.SortFunc(states, func(a, b *state) int { return cmp.Compare(a.draw, b.draw) })
			states = states[:width]
		}
		for _, at := range states {
			s.visit(m, at)
		}
	}
}

// find has a state visited that is not known.
func (s *search) find(at *state) {
	key := at.key()
	if s.known[key] {
		return
	}
	s.known[key] = true
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	at.draw = h.Sum64()
	s.next = append(s.next, at)
}

func (s *search) visit(m *machine, at *state) {
	if s.violation != nil {
		return
	}
	if err := m.checkEnd(at); err != nil {
		s.report(at, "and then the end of every lease", err)
		return
	}
	for _, mv := range m.moves(at) {
		s.moves++
		next, err := m.play(at, mv)
		if err != nil {
			s.report(at, mv.String(), err)
			return
		}
		s.find(next)
	}
}

func (s *search) report(at *state, last string, err error) {
	s.violation = fmt.Errorf("%w\nafter: %s, %s", err, strings.Join(at.path, ", "), last)
}

const players = 3

// state is everything that decides what can happen next: the items in DynamoDB, what each owner knows, the packets on the
// network, and how often each thing may still happen.
type state struct {
	now       time.Time
	items     map[string]string // by table: the item, "" for none
	owners    [players]owner
	operators [2]operator
	network   []sent
	facts     facts
	lost      int
	late      int
	steps     int
	removed   bool
	swept     bool
	path      []string
	draw      uint64 // by its key
}

// owner is what one owner knows of itself.
type owner struct {
	phase   phase
	lease   dedup.Lease
	until   time.Time // in true time, as the owner knows it
	renewed int
	clock   clockState
}

type phase int

const (
	fresh         phase = iota // has made no call
	holding                    // was granted a lease
	unsure                     // called to complete or commit, and got no answer
	gaveUpAcquire              // got no answer to the acquire
	ended
)

// live reports whether the owner may believe that it has the lease.
func (o *owner) live(now time.Time) bool {
	return (o.phase == holding || o.phase == unsure) && o.until.After(now)
}

// clockState is what a store knows of the server's time.
type clockState struct {
	lower, upper, fenced anchor
	synced               bool
}

// sent is a packet that the network may deliver again.
type sent struct {
	packet
	who       int
	delivered bool // it had its effect, or was refused
	granted   bool
}

// facts are true of the record since it was created, whatever answers the owners got.
type facts struct {
	owner     int // of the last grant; -1: there is no record
	fence     int64
	released  bool
	completed bool
	confirmed bool // and its owner got that answer
	attempted bool // an owner has tried to complete it
	effects   int
	before    int // effects of records that are deleted
}

func (s *state) clone() *state {
	c := *s
	c.items = map[string]string{}
	for table, item := range s.items {
		c.items[table] = item
	}
	c.network = slices.Clone(s.network)
	c.path = append(slices.Clone(s.path), "")
	return &c
}

// key is the same for two states from which the same can happen. It includes the contents of the packets.
func (s *state) key() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d|%v|%d %d %d %t %t|%+v", s.now.UnixMilli(), s.items, s.lost, s.late, s.steps, s.removed, s.swept, s.facts)
	for i := range s.owners {
		o := &s.owners[i]
		fmt.Fprintf(&b, "|%d %d %d %d %v", o.phase, o.lease.Fence, o.until.UnixMilli(), o.renewed, o.clock)
	}
	for i := range s.operators {
		b.WriteString(s.operators[i].key())
	}
	for _, p := range s.network {
		b.WriteString(p.key())
	}
	return b.String()
}

func (p *sent) key() string {
	return fmt.Sprintf("|%d %s %d %d %d %d %v %t %t", p.who, p.kind(), p.number(":until"), p.number(":fence"), p.number(":now"), p.number(":seenfence"),
		p.values[":seenstatus"], p.delivered, p.granted)
}

// move is one event of a schedule.
type move struct {
	kind    string
	who     int
	transit transit
}

// transit is what the network does with a call.
type transit int

const (
	arrives transit = iota
	heldBack
	answerLost
)

func (m move) String() string {
	switch m.kind {
	case "time passes", "the operator deletes", "retention ends and TTL deletes":
		return m.kind
	case "late":
		return fmt.Sprintf("packet %d arrives late", m.who)
	}
	return fmt.Sprintf("%c %s%s", 'A'+m.who, m.kind, [...]string{"s", "s, held back", "s, its answer lost"}[m.transit])
}
