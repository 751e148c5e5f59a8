package job

import (
	"fmt"
	"strings"
)

// The body of an event is {"id":"0000042","pad":"..."}. The number is at a fixed place: every contestant reads it for
// next to nothing, so that what is measured is the way to the handler.
const (
	bodyHead   = `{"id":"`
	digits     = 7
	bodyMiddle = `","pad":"`
	bodyTail   = `"}`
	// SmallestBody is the least size of a body.
	SmallestBody = len(bodyHead) + digits + len(bodyMiddle) + len(bodyTail)
)

// Body returns the body of event n, of size bytes where that is not too small.
func Body(n, size int) string {
	return fmt.Sprintf("%s%0*d%s%s%s", bodyHead, digits, n, bodyMiddle, strings.Repeat("x", max(0, size-SmallestBody)), bodyTail)
}

// Number returns the event of a body, -1 for one that is not ours.
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

// EventID is the identity that a producer gives event n: it sends a second time under the same.
func EventID(n int) string { return fmt.Sprintf("event-%0*d", digits, n) }

// Event is one event to be published, and its place in its group.
type Event struct{ N, Group int }

// Backlog returns the events of a publisher in the order they happened: bursts of one to four of a group, the groups in
// a mixed but repeatable order.
func Backlog(events, groups int) []Event {
	out := make([]Event, 0, events)
	state := uint32(1)
	for len(out) < events {
		state = state*1664525 + 1013904223 // the same backlog for every contestant and round
		group, burst := int(state>>8)%groups, 1+int(state>>28)%4
		for ; burst > 0 && len(out) < events; burst-- {
			out = append(out, Event{N: len(out), Group: group})
		}
	}
	return out
}
