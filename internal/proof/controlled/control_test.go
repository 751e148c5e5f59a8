//go:build unix

package controlled

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/control"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/proof/process"
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
	processes  = 10
	messages   = 2600 // more than are done before the second pause
	visibility = 15 * time.Second
	patience   = 2 * time.Minute // for a busy machine: what is bounded is what a process does after it has said that it is paused
)

// fleet is the processes, and the oracle that hears of them.
type fleet struct {
	*testing.T
	role  role
	queue *memsqs.Server
	store *dynamostore.Store
	away  atomic.Bool // the store

	mu      sync.Mutex
	running map[int]*process.Process // by PID
	states  map[int]note             // the last ones
	held    map[int]int64            // the most messages that each has held
	notes   []note                   // starts and ends
}

func (f *fleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var n note
	if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if n.Event == "" {
		f.states[n.PID] = n
		f.held[n.PID] = max(f.held[n.PID], n.Held)
	} else {
		f.notes = append(f.notes, n)
	}
}

// TestProcesses: ten processes are paused twice. Handlers run when each pause begins, a process starts into one, one is killed, and the
// store is down for some seconds.
func TestProcesses(t *testing.T) {
	f := &fleet{T: t, running: map[int]*process.Process{}, states: map[int]note{}, held: map[int]int64{}}
	f.services()
	for range processes - 1 {
		f.start()
	}
	f.wait("all run handlers", f.allHaveStarted(time.Time{}))

	late := 0
	f.pause("the first pause", func() { late = f.start() })
	if n := f.count(func(n note) bool { return n.PID == late }); n > 0 {
		t.Errorf("%d handlers of a process that started into a pause", n)
	}
	resumed := f.set(control.State{Reason: "resume"})
	f.wait("all run handlers again", f.allHaveStarted(resumed))

	victim := 0
	f.pause("the second pause", func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for pid, p := range f.running {
			if pid != late {
				victim = pid
				must.Do(t, p.Kill())
				delete(f.running, pid)
				break
			}
		}
	})
	f.away.Store(true)
	began := time.Now()
	time.Sleep(2 * every) // each process has read for nothing
	f.wantQuiet(began, "while the store is down")
	f.away.Store(false)
	f.set(control.State{Reason: "resume"})
	f.wait("all events are done", func() bool {
		done := map[string]bool{}
		for _, n := range f.notes {
			if n.End {
				done[n.Event] = true
			}
		}
		return len(done) == messages && len(f.queue.Messages("jobs")) == 0
	})
	f.end()
	f.check(victim)
}

// services starts AWS and the oracle.
func (f *fleet) services() {
	f.queue = memsqs.New()
	f.Cleanup(f.queue.Close)
	tables := memdynamodb.New(func(o *memdynamodb.Options) { o.NoRecord = true })
	f.Cleanup(tables.Close)
	direct := localstack.Handler(f.queue, tables)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.away.Load() && strings.HasPrefix(r.Header.Get("X-Amz-Target"), "DynamoDB") {
			panic(http.ErrAbortHandler) // the connection ends
		}
		direct.ServeHTTP(w, r)
	}))
	f.Cleanup(server.Close)
	oracle := httptest.NewServer(f)
	f.Cleanup(oracle.Close)
	stack := must.Get(localstack.Start(f.Context(), func(o *localstack.Options) {
		o.Endpoint, o.Tables, o.Queues = server.URL, []string{recordTable}, []localstack.Queue{{Name: "jobs", MaxReceiveCount: 3}}
	}))(f)
	f.store = must.Get(dynamostore.New(stack.DynamoDB, recordTable))(f)
	f.role = role{AWS: server.URL, Queue: stack.QueueURL["jobs"], Oracle: oracle.URL}
	for i := 0; i < messages; i += 10 {
		in := &sqs.SendMessageBatchInput{QueueUrl: &f.role.Queue}
		for j := i; j < i+10; j++ {
			in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(j)), MessageBody: aws.String(fmt.Sprint(j))})
		}
		must.Get(stack.SQS.SendMessageBatch(f.Context(), in))(f)
	}
}

func (f *fleet) start() (pid int) {
	env := envRole + "=" + string(must.Get(json.Marshal(f.role))(f))
	p := must.Get(process.Start(f.Context(), process.Options{Env: []string{env}}))(f)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running[p.Pid] = p
	return p.Pid
}

// set asks for a state, as the command sqsonce pause does, and returns when.
func (f *fleet) set(s control.State) time.Time {
	s.By = "ann"
	seen := must.Get(control.Read(f.Context(), f.store, consumer))(f)
	must.Get(control.Set(f.Context(), f.store, seen, s, time.Hour))(f)
	return time.Now()
}

// pause pauses the fleet, has something happen at once, and returns some time after all processes have obeyed.
func (f *fleet) pause(reason string, happens func()) {
	asked := f.set(control.State{Paused: true, Reason: reason})
	happens()
	f.wait(reason, func() bool {
		for pid := range f.running {
			if s := f.states[pid]; !s.Paused || s.Reason != reason {
				return false
			}
		}
		return true
	})
	said := time.Since(asked)
	time.Sleep(max(0, time.Until(asked.Add(obeys))) + waitTime + 500*time.Millisecond) // polls end
	from, receives := time.Now(), f.receives()
	time.Sleep(1500 * time.Millisecond)
	f.wantQuiet(from, "in "+reason)
	held := int64(0)
	f.mu.Lock()
	for pid := range f.running {
		held += f.states[pid].Held
	}
	f.mu.Unlock()
	if held == 0 {
		f.Errorf("no message is held in %s", reason)
	}
	if n := f.receives() - receives; n > 0 {
		f.Errorf("%d receives in %s", n, reason)
	}
	f.Logf("%s: the last process said so %s after the command, %d messages are held", reason, said.Round(time.Millisecond), held)
}

func (f *fleet) wantQuiet(from time.Time, when string) {
	f.Helper()
	if n := f.count(func(n note) bool { return !n.End && n.At.After(from) }); n > 0 {
		f.Errorf("%d handlers have started %s", n, when)
	}
}

func (f *fleet) receives() (n int) {
	for _, c := range f.queue.Calls() {
		if c.Op == "ReceiveMessage" {
			n++
		}
	}
	return n
}

func (f *fleet) count(is func(note) bool) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, note := range f.notes {
		if is(note) {
			n++
		}
	}
	return n
}

// allHaveStarted reports that each process has started a handler after since.
func (f *fleet) allHaveStarted(since time.Time) func() bool {
	return func() bool {
		for pid := range f.running {
			if !slices.ContainsFunc(f.notes, func(n note) bool { return n.PID == pid && !n.End && n.At.After(since) }) {
				return false
			}
		}
		return true
	}
}

// wait waits until ok, which it calls with the lock.
func (f *fleet) wait(what string, ok func() bool) {
	f.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		f.mu.Lock()
		is := ok()
		f.mu.Unlock()
		switch {
		case is:
			return
		case time.Since(began) > patience:
			f.Fatalf("%s: not after %s; states %+v", what, patience, f.states)
		}
	}
}

// end stops the processes.
func (f *fleet) end() {
	for _, p := range f.running {
		must.Do(f, p.Signal(syscall.SIGTERM))
	}
	for _, p := range f.running {
		if err := p.Wait(); err != nil {
			f.Errorf("process %d: %v", p.Pid, err)
		}
	}
}

// check checks that a pause has cost no message an attempt or a receive, but those of the process that was killed.
func (f *fleet) check(victim int) {
	if dead := f.queue.Messages("jobs-dlq"); len(dead) > 0 {
		f.Errorf("%d messages in the dead-letter queue", len(dead))
	}
	starts, received := map[string][]int{}, map[string]int{}
	for _, n := range f.notes {
		if !n.End {
			starts[n.Event] = append(starts[n.Event], n.PID)
			received[n.Event] = max(received[n.Event], n.Receive)
		}
	}
	again := 0
	for event, by := range starts {
		if received[event] > 1 {
			again++
		}
		if len(by) > 1 && by[0] != victim {
			f.Errorf("event %s was run by %v, and %d was killed", event, by, victim)
		}
	}
	most := inFlight + int(f.held[victim]) // what it held in the first pause got its place back beyond MaxInFlight
	if again > most {
		f.Errorf("%d messages were received again, want only those of the process that was killed, %d at most", again, most)
	}
	f.Logf("%d events, %d received again, of %d at most", len(starts), again, most)
}
