package job

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// The body of an event is {"id":"0000042","pad":"..."}. The number is at a fixed position, so that reading it costs a
// contestant almost nothing: the bench measures the way of a message to its handler.
const (
	bodyHead   = `{"id":"`
	digits     = 7
	bodyMiddle = `","pad":"`
	bodyTail   = `"}`
	// SmallestBody is the smallest size of a body, in bytes.
	SmallestBody = len(bodyHead) + digits + len(bodyMiddle) + len(bodyTail)
)

// Body returns the body of event n. It has size bytes, or SmallestBody where size is less.
func Body(n, size int) string {
	return fmt.Sprintf("%s%0*d%s%s%s", bodyHead, digits, n, bodyMiddle, strings.Repeat("x", max(0, size-SmallestBody)), bodyTail)
}

// Number returns the number of the event in a body, or -1 where the body is not one of the bench.
func Number(body string) int {
	if len(body) < SmallestBody {
		return -1
	}
	n := 0
	for _, c := range []byte(body[len(bodyHead) : len(bodyHead)+digits]) {
		if c < '0' || c > '9' {
			return -1
		}
		n = 10*n + int(c-'0')
	}
	return n
}

// EventID is the ID that a producer gives event n. A second send of the event has the same ID.
func EventID(n int) string { return fmt.Sprintf("event-%0*d", digits, n) }

// Event is one event to be published.
type Event struct {
	N     int // its number: events happen in the order of their numbers
	Group int // its FIFO group
}

// Backlog returns the events of a publisher in the order they happened: bursts of one to four of a group, the groups in
// a mixed order that is the same for every contestant and round.
//
// Every group has the same number of events, or one more, and at no point of the backlog is a group far ahead of another.
// At the end of a publisher's run all groups then end together. With unequal groups the largest ones would be left, with
// one event in flight each, and the rate would depend on the sizes of the groups.
func Backlog(events, groups int) []Event {
	out := make([]Event, 0, events)
	sent := make([]int, groups)
	random := rand.New(rand.NewPCG(1, 2))
	for round := 0; len(out) < events; round++ {
		for _, group := range random.Perm(groups) {
			share := events / groups
			if group < events%groups {
				share++
			}
			// The lengths 1 to 4 take turns, so that each group has ten events in four rounds.
			burst := min(1+(round+group)%4, share-sent[group])
			for range burst {
				out = append(out, Event{N: len(out), Group: group})
			}
			sent[group] += burst
		}
	}
	return out
}
