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

// check compares the queue with the versions.
func (q *queue) check(t *testing.T, versions map[string]int) (events, copies int) {
	next := map[string]int{}
	for _, m := range q.srv.Messages(q.url) {
		n, err := strconv.Atoi(m.Body[strings.LastIndex(m.Body, "/v")+2:])
		switch want := next[m.Group] + 1; {
		case err != nil || n < 1 || n > versions[m.Group] || m.Body != event(m.Group, n).Body:
			t.Errorf("group %s: %q was never committed", m.Group, m.Body)
		case n > want:
			t.Errorf("group %s: %q comes before event %d", m.Group, m.Body, want)
			return events, copies
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
	return events, copies
}
