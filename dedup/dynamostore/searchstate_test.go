package dynamostore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
)

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
	lower, upper anchor
	synced       bool
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
