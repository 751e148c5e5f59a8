package memsqs

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// fairModel is a standard queue, and the state of its groups by definition: each counted anew from all messages, at each moment
// at which something changes.
type fairModel struct {
	q      *queue
	now    time.Time
	all    fairGroup
	groups map[string]*fairGroup
}

type fairGroup struct {
	seconds                     float64
	inFlight, visible, messages int
	sent                        time.Time
	oldest                      *message
}

// pass lets d pass, from one end of a visibility timeout to the next.
func (x *fairModel) pass(d time.Duration) {
	for end := x.now.Add(d); ; {
		next := end
		if x.q.hidden.Len() > 0 && x.q.hidden.top().visibleAt.Before(end) {
			next = x.q.hidden.top().visibleAt
		}
		kept := math.Exp(-next.Sub(x.now).Seconds() / recentSeconds)
		x.all.seconds = x.all.seconds*kept + float64(x.all.inFlight)*recentSeconds*(1-kept)
		for _, g := range x.groups {
			g.seconds = g.seconds*kept + float64(g.inFlight)*recentSeconds*(1-kept)
		}
		x.now = next
		x.q.advance(x.now)
		x.observe()
		if next.Equal(end) {
			return
		}
	}
}

func (x *fairModel) observe() {
	before := map[string]fairGroup{}
	for name, g := range x.groups {
		before[name] = *g
		*g = fairGroup{seconds: g.seconds, sent: g.sent} // a message that was deleted was sent too
	}
	x.all.inFlight = 0
	for _, m := range x.q.messages {
		g := x.groups[m.group]
		g.messages++
		if m.inFlight() {
			g.inFlight++
			x.all.inFlight++
		}
		if m.sentAt.After(g.sent) {
			g.sent = m.sentAt
		}
		if !m.hidden {
			g.visible++
			if g.oldest == nil || m.serial < g.oldest.serial {
				g.oldest = m
			}
		}
	}
	for name, g := range x.groups {
		if g.visible == 0 && before[name].visible > 0 || g.messages == 0 {
			g.seconds = 0
		}
	}
}

// next returns the message that the rule names. sure is false if a share is too near to its threshold to say.
func (x *fairModel) next() (first *message, sure bool) {
	sure, least := true, 0
	for name, g := range x.groups {
		if g.visible == 0 {
			continue
		}
		rank, share := -1, g.seconds/max(x.all.seconds, 1e-9) // the rank is how many messages a noisy group has in flight
		if name != "" && x.now.Sub(g.sent) < 5*time.Minute {
			many := g.inFlight >= 30 && 10*g.inFlight > x.all.inFlight
			sure = sure && (many || math.Abs(share-0.1) > 1e-6)
			if many || share > 0.1 {
				rank = g.inFlight
			}
		}
		if first == nil || rank < least || rank == least && g.oldest.serial < first.serial {
			first, least = g.oldest, rank
		}
	}
	return first, sure
}

func TestFairOrderFollowsTheRule(t *testing.T) {
	groups := []string{"", "a", "b", "c", "d"}
	rapid.Check(t, func(t *rapid.T) {
		s := New()
		defer s.Close()
		q := newQueue(s, "jobs", attributes{Retention: 14 * 24 * time.Hour}, time.Time{})
		x := &fairModel{q: q, now: time.Unix(0, 0), groups: map[string]*fairGroup{}}
		for _, g := range groups {
			x.groups[g] = &fairGroup{}
		}
		for range rapid.IntRange(20, 60).Draw(t, "steps") {
			x.pass(rapid.SampledFrom([]time.Duration{0, 0, 0, time.Second, 10 * time.Second, 100 * time.Second, 5 * time.Minute}).Draw(t, "pass"))
			op := rapid.SampledFrom([]string{"send", "receive", "receive", "delete", "change"}).Draw(t, "op")
			n := rapid.SampledFrom([]int{1, 10, 35, 100}).Draw(t, "messages")
			group := rapid.SampledFrom(groups).Draw(t, "group")
			switch op {
			case "send":
				for range n {
					q.insert(&message{group: group, sentAt: x.now, enqueuedAt: x.now, visibleAt: x.now}, nil, x.now)
				}
			case "receive":
				for range n {
					want, sure := x.next()
					got := q.order.next(1, x.now)
					if (len(got) == 0) != (want == nil) {
						t.Fatalf("got %d messages, want %v", len(got), want != nil)
					}
					if want == nil {
						break
					}
					if sure && got[0] != want {
						t.Fatalf("got message %d of group %q, want %d of %q", got[0].serial, got[0].group, want.serial, want.group)
					}
					q.deliver(got[0], 30*time.Second, x.now)
					x.observe()
				}
			case "delete", "change":
				for _, serial := range slices.Sorted(maps.Keys(q.messages)) {
					m := q.messages[serial]
					if n == 0 || m.group != group || m.receipt == 0 {
						continue
					}
					n--
					if op == "delete" {
						q.remove(m, x.now)
					} else if m.inFlight() {
						q.hide(m, x.now, x.now)
					}
				}
			}
			x.observe()
		}
	})
}

// Random runs seldom come near the tenth of the messages in flight, and do not see a tenant that is kept for nothing.
func TestFairTenthInFlight(t *testing.T) {
	s, now := New(), time.Unix(0, 0)
	defer s.Close()
	q := newQueue(s, "jobs", attributes{Retention: time.Hour}, now)
	send := func(n int, group string) (m *message) {
		for range n {
			m = &message{group: group, sentAt: now, enqueuedAt: now, visibleAt: now}
			q.insert(m, nil, now)
		}
		return m
	}
	send(31, "a")
	alone := send(279, "")
	for range 310 {
		q.deliver(q.order.next(1, now)[0], time.Minute, now)
	}
	send(1, "a")
	send(1, "b")
	if m := q.order.next(1, now)[0]; m.group != "a" {
		t.Errorf("with 31 of 310 in flight: got group %q, want a, which is the older one", m.group)
	}
	q.remove(alone, now)
	if m := q.order.next(1, now)[0]; m.group != "b" {
		t.Errorf("with 31 of 309 in flight: got group %q, want b", m.group)
	}
	for _, m := range q.messages {
		q.remove(m, now)
	}
	if n := len(q.order.(*standardOrder).tenants); n > 0 {
		t.Errorf("%d tenants are left in an empty queue, want none", n)
	}
}
