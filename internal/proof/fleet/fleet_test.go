//go:build unix

package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

func TestMain(m *testing.M) {
	text := os.Getenv(envRole)
	if text == "" {
		os.Exit(m.Run())
	}
	var r role
	err := json.Unmarshal([]byte(text), &r)
	if err == nil {
		err = r.child()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const (
	functionTimeout = 6 * time.Second
	// recovery is how long all may take after the last fault. SQS's clock jumps where all that is left is hidden for at least far: by the
	// delay that a function gave it in an outage. Then what was hidden has that time again. Two heads of one FIFO group that kill their
	// processes take most of it: six receives each, for which the group is hidden for 12 s and a process starts. Those behind them follow
	// one by one.
	recovery = 5 * time.Minute
	far      = 20 * time.Second
	// mostHidden is by how much SQS's clock may jump: 13.7a of the protocol.
	mostHidden = 18 * time.Minute
)

var queues = []string{"fleet", "fleet.fifo"}

// TestFleet plays one run of some seconds, always the same plan, with SOAK eight others of two minutes. SEED in the environment repeats the
// plan of one. LOGS names a folder for the logs of its processes. It compiles their program, which takes a minute the first time.
func TestFleet(t *testing.T) {
	seed, runs, length := uint64(1), 1, 8*time.Second
	if os.Getenv("SOAK") != "" {
		seed, runs, length = uint64(time.Now().UnixNano())%1e6, 8, 2*time.Minute
	}
	if s := os.Getenv("SEED"); s != "" {
		n := must.Get(strconv.ParseUint(s, 10, 64))(t)
		seed, runs = n, 1
	}
	program := withClock(t)
	for i := range uint64(runs) {
		t.Run(fmt.Sprint("seed ", seed+i), func(t *testing.T) { play(t, program, seed+i, length) })
	}
}

// fleet is a run.
type fleet struct {
	*testing.T
	program  string // of its processes
	ctx      context.Context
	bad      time.Time // until then there are faults
	finished chan struct{}
	aws      http.Handler
	queue    *memsqs.Server
	ahead    atomic.Int64 // of SQS's clock
	oracle   *oracle
	urls     []string
	seats    []*seat

	everywhere *network // its trouble is that of all networks

	mu         sync.Mutex
	networks   []*network
	complaints []string
}

func (f *fleet) over() bool { return time.Now().After(f.bad) }

// pause sleeps for d, but not after the faults.
func (f *fleet) pause(d time.Duration) { time.Sleep(min(d, time.Until(f.bad))) }

func (f *fleet) complain(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.complaints = append(f.complaints, fmt.Sprintf(format, args...))
}

// play has the fleet work while it is harmed for some time, and then until all events are done.
func play(t *testing.T, program string, seed uint64, length time.Duration) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := &fleet{T: t, program: program, ctx: ctx, bad: time.Now().Add(length), finished: make(chan struct{}), everywhere: &network{}}
	random := func(of int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(of))) }
	f.oracle = &oracle{
		over: f.over, poison: length > time.Minute, complain: f.complain, rng: random(0), events: map[string]*event{}, groups: map[string][]*event{},
	}
	f.services(seed)
	o := httptest.NewServer(f.oracle)
	defer o.Close()
	var wg sync.WaitGroup
	add := func(kind string, urls []string, run func(*seat)) {
		n := len(f.seats) + 1
		s := &seat{fleet: f, net: f.network(fmt.Sprint(kind, "-", n)), rng: random(n)}
		s.role = role{Kind: kind, Seat: s.net.seat, Oracle: o.URL, AWS: s.net.URL, Queues: urls, Logs: os.Getenv("LOGS")}
		f.seats = append(f.seats, s)
		wg.Go(func() { run(s) })
	}
	for range 3 {
		for i := range f.urls {
			add("worker", f.urls[i:i+1], (*seat).processes)
		}
		add("publisher", f.urls, (*seat).processes)
	}
	for i := range f.urls {
		add("function", f.urls[i:i+1], (*seat).function)
	}
	everywhere := &seat{fleet: f, net: f.everywhere, rng: random(100)}
	f.seats = append(f.seats, everywhere)
	for !f.over() {
		f.pause(everywhere.between(10 * time.Second))
		t := draw(everywhere.rng)
		t.share = 1
		everywhere.suffer("outage", t, func() { f.pause(everywhere.between(4 * time.Second)) })
	}
	f.drain()
	close(f.finished)
	wg.Wait()
	for _, n := range f.networks {
		n.Close()
		n.running.Wait()
	}
	f.check()
}

// network starts a network to AWS.
func (f *fleet) network(seat string) *network {
	n := &network{seat: seat, aws: f.aws, everywhere: f.everywhere}
	n.Server = httptest.NewServer(n)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.networks = append(f.networks, n)
	return n
}

// services starts SQS and DynamoDB, with the queues and the table.
func (f *fleet) services(seed uint64) {
	f.queue = memsqs.New(func(o *memsqs.Options) {
		o.Seed, o.Reorder, o.StrictHandles, o.Duplicates, o.NoRecord = seed, 3, seed%4 < 2, float64(seed%3)/100, true
		o.Now = func() time.Time { return time.Now().Add(time.Duration(f.ahead.Load())) }
	})
	f.Cleanup(f.queue.Close)
	tables := memdynamodb.New(func(o *memdynamodb.Options) { o.NoRecord = true })
	f.Cleanup(tables.Close)
	f.aws = localstack.Handler(f.queue, tables)
	direct := httptest.NewServer(f.aws)
	f.Cleanup(direct.Close)
	stack, err := localstack.Start(f.ctx, func(o *localstack.Options) {
		o.Endpoint, o.Tables = direct.URL, []string{recordTable}
		for _, name := range queues {
			attrs := map[string]string{"VisibilityTimeout": "12"}
			o.Queues = append(o.Queues, localstack.Queue{Name: name, MaxReceiveCount: 4 + int(seed%3), Attributes: attrs})
		}
	})
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range queues {
		f.urls = append(f.urls, stack.QueueURL[name])
	}
	if f.oracle.store, err = dynamostore.New(stack.DynamoDB, recordTable); err != nil {
		f.Fatal(err)
	}
}

// drain waits until all events are published, and the queues are empty.
func (f *fleet) drain() {
	since := f.bad // the last fault, or the last jump of SQS's clock
	for left, hidden := f.left(); left > 0; left, hidden = f.left() {
		if time.Since(since) > recovery || time.Duration(f.ahead.Load()) > mostHidden {
			f.complain("%s after the last fault %d messages and events are left, %d of them hidden for %s; SQS's clock jumped by %s%s",
				time.Since(f.bad).Round(time.Second), left, hidden, far, time.Duration(f.ahead.Load()), f.leftovers())
			return
		}
		if left == hidden {
			f.ahead.Add(int64(far))
			since = time.Now()
		}
		time.Sleep(50 * time.Millisecond)
	}
	f.Logf("all done %s after the last fault; SQS's clock jumped by %s", time.Since(f.bad).Round(time.Second), time.Duration(f.ahead.Load()))
}

// leftovers is the messages and events that left counts, and their histories.
func (f *fleet) leftovers() string {
	f.oracle.mu.Lock()
	defer f.oracle.mu.Unlock()
	var lines strings.Builder
	for _, name := range queues {
		for _, m := range f.queue.Messages(name) {
			visible := time.Until(m.VisibleAt) - time.Duration(f.ahead.Load())
			fmt.Fprintf(&lines, "\n%s (%s): received %d times, visible in %s", m.Body, f.oracle.events[m.Body].Kind, m.ReceiveCount, visible)
		}
	}
	for _, name := range queues {
		for _, m := range f.queue.Messages(name) {
			lines.WriteString("\n" + m.Body + f.history(f.oracle.events[m.Body]))
		}
	}
	for _, e := range f.oracle.all {
		if !e.confirmed {
			lines.WriteString("\nnot confirmed: " + e.ID + f.history(e))
		}
	}
	return lines.String()
}

// left counts the events that are not published, the messages, and those of them that are hidden for long, alone or with their group.
func (f *fleet) left() (n, hidden int) {
	for _, name := range queues {
		groups := map[string]bool{}
		for _, m := range f.queue.Messages(name) {
			n++
			far := time.Until(m.VisibleAt) > far+time.Duration(f.ahead.Load())
			if far || groups[m.Group] {
				hidden++
				groups[m.Group] = strings.HasSuffix(name, ".fifo")
			}
		}
	}
	f.oracle.mu.Lock()
	defer f.oracle.mu.Unlock()
	for _, e := range f.oracle.all {
		if !e.confirmed {
			n++
		}
	}
	return n, hidden
}
