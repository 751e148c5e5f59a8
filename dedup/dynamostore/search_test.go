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
	if raceDetector {
		t.Skip("it has one goroutine at a time, and takes minutes under the race detector")
	}
	s := &search{scope: sc, broken: b}
	s.run(t)
	return s
}

var soak = os.Getenv("SOAK") != ""

// width is the number of states from which a search goes on at each length of the schedules, drawn by their hashes. With SOAK
// it goes on from all.
const width = 250

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
		if len(states) > width && !soak {
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
