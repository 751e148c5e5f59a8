package outboxstorm

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/fifo"
)

// finish has one relay of a calm world publish the rest, in time.
func (s *storm) finish(ctx context.Context) {
	_, r := s.calmly()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	start := time.Now()
	for left := 1; left > 0 && time.Since(start) < 15*time.Minute; {
		time.Sleep(10 * time.Second)
		left = 0
		for g := range s.plan.Groups {
			left += len(s.world.Left(s.group(g)))
		}
	}
	cancel()
	if err := <-done; err != nil {
		s.problem("Run at the end: %v", err)
	}
	for g := range s.plan.Groups {
		if left := s.world.Left(s.group(g)); len(left) > 0 {
			s.problem("15 calm minutes: %d events of group %d are left, the first %s", len(left), g, left[0])
		}
	}
}

// check compares the queue with what was committed.
func (s *storm) check() {
	for g := range s.plan.Groups {
		next := 1
		last := make(map[string]time.Time)
		for _, m := range s.queue.Messages(s.url) {
			if m.Group != s.group(g) {
				continue
			}
			n := number(m.Body)
			if want := event(s.group(g), n); n < 1 || n > s.plan.Events || m.Body != want.Body {
				s.problem("group %d: %s was never committed", g, m.Body)
				return
			}
			if n > next {
				s.problem("group %d: %s comes before event %d", g, m.Body, next)
				return
			}
			if at, copied := last[m.Body]; copied && m.VisibleAt.Sub(at) < window {
				s.problem("group %d: a copy of %s comes %s after it", g, m.Body, m.VisibleAt.Sub(at))
			}
			last[m.Body] = m.VisibleAt
			next = max(next, n+1)
		}
		if next != s.plan.Events+1 {
			s.problem("group %d: event %d is lost", g, next)
		}
	}
}

// window is how long SQS drops copies.
const window = 5 * time.Minute

// event returns an event whose body is its ID.
func event(group string, n int) fifo.Event {
	id := fmt.Sprintf("%s/v%d", group, n)
	return fifo.Event{ID: id, Group: group, Body: id}
}

// number returns the number of an event from its body, "group/v12".
func number(body string) (n int) {
	_, after, _ := strings.Cut(body, "/v")
	if _, err := fmt.Sscan(after, &n); err != nil {
		return -1
	}
	return n
}
