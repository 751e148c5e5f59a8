//go:build unix

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/testworld"
	"github.com/sqsonce/sqsonce/control"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/must"
)

const process1 = "pod-1.ABCDEFGH"

// attack is a dead-letter queue that operators treat by commands that are killed, behind a network that breaks.
type attack struct {
	*world
	net     *network
	rng     *rand.Rand
	store   *dynamostore.Store
	events  []*attacked
	dir     string // where the commands run
	journal string // of the last redrive
	history []string

	mu   sync.Mutex     // of runs, and of:
	last map[string]int // by FIFO group: the released event that ran last
}

// attacked is an event of the queue.
type attacked struct {
	id, key, message string
	state            dedup.RecordState // at the beginning
	fence            int64
	runs             int
}

// Operators lose nothing and run nothing twice, whatever breaks and whenever a command is killed, and a command claims nothing that
// it has not read. SEED=N plays another one, on a FIFO queue where that is odd.
func TestAttack(t *testing.T) {
	t.Parallel()
	seeds := []uint64{1, 504}
	if s := os.Getenv("SEED"); s != "" {
		seeds = []uint64{must.Get(strconv.ParseUint(s, 10, 64))(t)}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			newAttack(t, seed).play()
		})
	}
}

func newAttack(t *testing.T, seed uint64) *attack {
	w := newWorld(t, []string{"orders", "orders.fifo"}[seed%2])
	a := &attack{world: w, rng: rand.New(rand.NewPCG(seed, 1)), last: map[string]int{}, dir: t.TempDir(), store: testworld.Store(t, w.stack)}
	a.net = &network{to: w.stack.URL, rng: rand.New(rand.NewPCG(seed, 2))}
	server := httptest.NewServer(a.net)
	t.Cleanup(server.Close)
	w.env = append(w.env, "AWS_ENDPOINT_URL="+server.URL) // the last one counts
	for i := range 60 {
		e := a.put(i, []dedup.RecordState{dedup.StateReleased, dedup.StateReleased, dedup.StateReleased, dedup.StateCompleted, dedup.StateCrashed}[i%5])
		a.events = append(a.events, e)
		e.message = testworld.Send(t, w.stack, w.dlq, fmt.Sprint("g", i%5), `{"id":"`+e.id+`"}`, testworld.Event(e.id)...)
	}
	testworld.Consume(t, w.stack, a.store, w.queue, func(_ context.Context, m *sqsonce.Message) error {
		a.ran(m)
		return nil
	})
	return a
}

func (a *attack) put(i int, state dedup.RecordState) *attacked {
	e := &attacked{id: strconv.Itoa(i), key: fmt.Sprintf("%s#orders|%d", testworld.Consumer, i), state: state}
	claim := dedup.Claim{Key: e.key, Owner: "o@" + process1, Lease: time.Minute, Retention: 24 * time.Hour, ReceiveCount: 3}
	if state == dedup.StateCrashed {
		claim.Lease = time.Second
	}
	l := must.Get(granted.Lease(a.store.Acquire(a.Context(), claim)))(a)
	e.fence = l.Fence
	switch state {
	case dedup.StateReleased:
		must.Do(a, a.store.Release(a.Context(), l, errors.New("status 503 for order "+e.id)))
	case dedup.StateCompleted:
		must.Do(a, a.store.Complete(a.Context(), l, dedup.Result{}))
	}
	return e
}

// ran is the handler. Released events of a FIFO group run in order.
func (a *attack) ran(m *sqsonce.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i, err := strconv.Atoi(m.Attributes[sqsonce.AttrEventID].String)
	if err != nil {
		a.Errorf("a message of no event: %+v", m)
		return
	}
	a.events[i].runs++
	if m.Group == "" || a.events[i].state != dedup.StateReleased {
		return
	}
	if last, ran := a.last[m.Group]; ran && last > i {
		a.Errorf("group %s: %d ran after %d", m.Group, i, last)
	}
	a.last[m.Group] = i
}

// command runs a command to its end, or kills it, unless that is 0.
func (a *attack) command(kill time.Duration, args ...string) *process {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir = a.dir
	p := a.start(cmd)
	if kill > 0 {
		timer := time.AfterFunc(kill, func() { _ = p.Process.Kill() }) // it may have ended
		defer timer.Stop()
	}
	code := p.end()
	a.history = append(a.history, fmt.Sprintf("%q, killed after %s: exit %d\n%s%s", args, kill, code, p.out, p.err))
	if code == 2 {
		a.Error(a.history[len(a.history)-1])
	}
	return p
}

func (a *attack) left() int { return len(a.stack.MemSQS().Messages(a.dlq)) }

func (a *attack) play() {
	defer func() {
		if a.Failed() {
			a.Logf("%s\n%q", strings.Join(a.history, "\n"), a.net.log)
		}
	}()
	calls := []string{"SendMessageBatch", "SendMessage", "DeleteMessageBatch", "ChangeMessageVisibilityBatch", "GetItem", "ReceiveMessage", "UpdateItem", "GetQueueAttributes"}
	for range 10 {
		switch one, other := calls[a.rng.IntN(len(calls))], calls[a.rng.IntN(len(calls))]; a.rng.IntN(3) {
		case 0:
			a.net.set(0.3)
		case 1:
			a.net.set(0.9, one)
		default:
			a.net.set(0.4, one, other)
		}
		a.step()
	}
	a.net.set(0)
	a.eventually("nothing is hidden", func() bool { return a.hidden() == 0 })
	for range 3 { // a FIFO queue shows ten messages of a group
		a.command(0, "dlq", "redrive", "--state", "released", "--yes", "--canary=0")
	}
	a.eventually("the queue is empty", func() bool { return len(a.stack.MemSQS().Messages(a.queue)) == 0 })
	a.judge()
}

// step is a command, which is killed in one of three.
func (a *attack) step() {
	kill := time.Duration(0)
	if a.rng.IntN(3) == 0 {
		kill = time.Duration(50+a.rng.IntN(2500)) * time.Millisecond
	}
	said := func(args ...string) (out string, done bool) {
		p := a.command(kill, args...)
		return p.out.String(), p.ProcessState.Success()
	}
	claim := func(args []string, claims func(out string) bool) {
		if out, done := said(args...); done && !claims(out) {
			a.Errorf("%q says %s", args, out)
		}
	}
	any1 := a.events[a.rng.IntN(len(a.events))]
	crashed := a.events[4+5*a.rng.IntN(len(a.events)/5)]
	switch a.rng.IntN(12) {
	case 0:
		a.list()
	case 1, 2, 3:
		args := []string{"dlq", "redrive", "--state", "released", "--yes", "--rate", strconv.Itoa(20 + a.rng.IntN(100)), "--hold=10s", "--canary-timeout=10s", "--canary", strconv.Itoa(a.rng.IntN(2))}
		if a.journal != "" && a.rng.IntN(2) == 0 {
			args = append(args, "--journal", a.journal)
		}
		p := a.command(kill, args...)
		_, journal, _ := strings.Cut(p.err.String(), "\njournal ")
		journal, _, _ = strings.Cut(journal, "\n")
		a.journal = cmp.Or(journal, a.journal)
	case 4:
		said("dlq", "export", "--hold=10s", "--state", "completed", "copies.jsonl")
	case 5:
		said("dlq", "export", "--hold=10s", "--drain", "--state", "completed", "--yes", "drained.jsonl")
	case 6:
		said("dlq", "restore", "drained.jsonl", "--yes")
	case 7:
		claim([]string{"record", "free", crashed.key, "--yes"}, func(out string) bool { return strings.Contains(out, "released") })
	case 8:
		said("record", "free", "--process", process1, "--none-happened", "--except", a.events[4].key, "--yes")
	case 9:
		claim([]string{"record", "show", any1.key}, func(out string) bool { return strings.Contains(out, "state\t") && !strings.Contains(out, "no record") })
	case 10: // it is killed while it waits until consumers have forgotten the event
		kill += 200 * time.Millisecond
		said("replay", "--note", "n", "--yes", "--again", strconv.FormatInt(a.events[3].fence, 10), a.events[3].message)
	default:
		pause := []string{"pause", "--until", "1h", "--reason", "r", "--yes", "--yes-lose"}
		claim(pause, func(string) bool { return a.paused() })
		claim([]string{"status"}, func(out string) bool { return strings.Contains(out, "paused") == a.paused() })
		claim([]string{"resume", "--reason", "r", "--yes"}, func(string) bool { return !a.paused() })
	}
}

func (a *attack) paused() bool {
	return must.Get(control.Read(a.Context(), a.store, testworld.Consumer))(a).Paused
}

// list compares a list with the queue and the records.
func (a *attack) list() {
	p := a.command(0, "dlq", "ls", "--messages", "--json")
	var listed struct {
		Complete bool
		Read     int
		Messages []struct{ Key, State, Problem string }
	}
	done := p.ProcessState.Success()
	if err := json.Unmarshal([]byte(p.out.String()), &listed); err != nil {
		if done {
			a.Errorf("it is done, and its list is none: %v", err)
		}
		return
	}
	if listed.Complete && listed.Read < a.left() {
		a.Errorf("%d of %d are a complete list", listed.Read, a.left())
	}
	for _, m := range listed.Messages {
		if m.State == "unknown" && (done || !strings.Contains(m.Problem, "not read")) {
			a.Errorf("%s is unknown, %s: done %t", m.Key, m.Problem, done)
		}
	}
}

// judge compares what has become of each event with what was asked.
func (a *attack) judge() {
	kept := map[string]bool{}
	for _, m := range a.stack.MemSQS().Messages(a.dlq) {
		kept[m.Body] = true
	}
	file, err := os.ReadFile(filepath.Join(a.dir, "drained.jsonl"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		a.Fatal(err)
	}
	for line := range strings.Lines(string(file)) {
		var l struct{ Body string }
		if json.Unmarshal([]byte(line), &l) == nil { // the last one may be torn: its message is in the queue
			kept[l.Body] = true
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.events {
		done := must.Get(a.store.Inspect(a.Context(), e.key))(a).Completed
		here, replayed := kept[`{"id":"`+e.id+`"}`], e == a.events[3]
		switch {
		case e.runs > 1, e.runs > 0 && e.state == dedup.StateCompleted && !replayed:
			a.Errorf("%s, which was %s, ran %d times", e.id, e.state, e.runs)
		case !here && (!done || e.runs == 0):
			a.Errorf("%s, which was %s, is lost: it is done %t, after %d runs", e.id, e.state, done, e.runs)
		case done && e.runs == 0 && e.state != dedup.StateCompleted:
			a.Errorf("%s, which was %s, is completed without a run", e.id, e.state)
		}
	}
}
