//go:build unix

package outboxkill

import (
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/proof/process"
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

// Target is the outbox whose processes are killed.
type Target struct {
	// Env leads the children to it.
	Env []string
	// Versions returns the version of each group: how many events of it were committed.
	Versions func(t *testing.T) map[string]int
	// Left returns how many events are in the outbox.
	Left func(t *testing.T) int
}

// Run kills processes, KILLS of them, stops some, and lets one relay publish the rest. Then each group's events are in the queue, in
// the order of their versions, and there is none that was not committed.
func Run(t *testing.T, target Target) {
	kills := usual
	if s := os.Getenv("KILLS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		kills = n
	}
	seed := uint64(time.Now().UnixNano())
	q := newQueue(t)
	s := &supervisor{
		t: t, rng: rand.New(rand.NewPCG(seed, 0)), toKill: kills, kills: map[string]int{}, children: map[*process.Process]bool{},
		env:    append([]string{envSQS + "=" + q.server, envQueue + "=" + q.url}, target.Env...),
		forget: func() { q.ahead.Add(int64(forgets)) },
	}
	s.start()
	s.waitForKills()
	s.stop()
	time.Sleep(settle)
	s.finish(func() bool { return target.Left(t) == 0 })
	events, copies := q.check(t, target.Versions(t))
	t.Logf("seed %d: %d events, %d copies; %s", seed, events, copies, s)
	if events == 0 {
		t.Error("nothing was committed: nothing is shown")
	}
}

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
	client := sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: &q.server, Credentials: aws.CredentialsProviderFunc(credentials)})
	out, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{
		QueueName: aws.String("orders.fifo"), Attributes: map[string]string{"FifoQueue": "true", "MessageRetentionPeriod": "1209600"},
	})
	if err != nil {
		t.Fatal(err)
	}
	q.url = *out.QueueUrl
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
