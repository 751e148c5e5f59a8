//go:build unix

package killtest_test

import (
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

const (
	groups    = 64
	busy      = 4 // groups of every second event, so that timers are cancelled
	relays    = 3
	producers = 2
	usual     = 3 // kills without KILLS=n in the environment
	// drain is how long the rest may take after the last kill: claims of the dead last 10 s.
	drain = 2 * time.Minute
	// forgets is how far the clock of the queue jumps while a relay is stopped: over the five minutes in which SQS drops copies.
	forgets = 6 * time.Minute
)

// settle is for the last requests of producers that were killed, and for transactions that reach their items late: a commit that came
// after the last look at the outbox would count as lost, or as never made.
const settle = 2 * time.Second

// queue is SQS, with a clock that jumps.
type queue struct {
	srv         *memsqs.Server
	server, url string
	ahead       atomic.Int64
}

func newQueue(t *testing.T) *queue {
	q := &queue{}
	q.srv = memsqs.New(func(o *memsqs.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(q.ahead.Load())) }
		o.NoRecord = true
	})
	t.Cleanup(q.srv.Close)
	server := httptest.NewServer(q.srv)
	t.Cleanup(server.Close)
	q.server = server.URL
	q.url = testaws.Queue(t, testaws.SQS(q.srv), "orders.fifo", map[string]string{"MessageRetentionPeriod": "1209600"})
	return q
}

// timerState is what became of a timer that a committed version has scheduled.
type timerState struct {
	cancelled int // 1: it was
	missed    int // the first version that found nothing to cancel: the timer was moved before it
}

// check compares the queue with what was committed: the versions, and the timers.
func (q *queue) check(t *testing.T, versions map[string]int, timers map[string]timerState) (events, moved, copies int) {
	next, seen := map[string]int{}, map[string]bool{}
	for _, m := range q.srv.Messages(q.url) {
		n, err := strconv.Atoi(m.Body[strings.LastIndex(m.Body, "/")+2:])
		if err == nil && m.Body == timer(m.Group, n).Body {
			state, committed := timers[m.Body]
			switch at := next[m.Group]; {
			case seen[m.Body]:
				copies++
				continue
			case !committed || state.cancelled != 0:
				t.Errorf("group %s: %q was published, committed: %t, cancelled: %d", m.Group, m.Body, committed, state.cancelled)
			case at < n:
				t.Errorf("group %s: %q comes before version %d, which scheduled it", m.Group, m.Body, n)
			case state.missed != 0 && at >= state.missed:
				t.Errorf("group %s: %q comes after version %d, before which it was moved", m.Group, m.Body, state.missed)
			}
			seen[m.Body] = true
			moved++
			continue
		}
		switch want := next[m.Group] + 1; {
		case err != nil || n < 1 || n > versions[m.Group] || m.Body != event(m.Group, n).Body:
			t.Errorf("group %s: %q was never committed", m.Group, m.Body)
		case n > want:
			t.Errorf("group %s: %q comes before event %d", m.Group, m.Body, want)
			return events, moved, copies
		case n < want:
			copies++
		default:
			next[m.Group] = n
			events++
		}
	}
	for group, version := range versions {
		if next[group] != version {
			t.Errorf("group %s: event %d is lost", group, next[group]+1)
		}
	}
	for id, state := range timers {
		if state.cancelled == 0 && !seen[id] {
			t.Errorf("timer %s is lost", id)
		}
	}
	return events, moved, copies
}
