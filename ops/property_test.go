package ops_test

import (
	std "cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/ops"
)

// The number of draws, unless a flag says so.
func init() {
	if err := flag.Set("rapid.checks", "50"); err != nil {
		panic(err)
	}
}

// redrivePlan is drawn before the bubble begins: rapid must neither draw nor fail inside it.
type redrivePlan struct {
	FIFO     bool
	Messages []plannedMessage
	Rules    []fault.Rule
	Runs     []plannedRun // and one more, without faults
}

type plannedMessage struct {
	Body  string // group and number
	Event string // "": the message ID is its key
	State ops.State
}

func (m plannedMessage) event() string { return std.Or(m.Event, m.Body) }

type plannedRun struct {
	KillAt  int64 // see killer; 0: never
	Journal bool  // the journal of the run before is there
	Canary  int
	Hold    time.Duration
	Pause   time.Duration // after it
}

func drawRedrive(rt *rapid.T) redrivePlan {
	p := redrivePlan{FIFO: rapid.Bool().Draw(rt, "fifo")}
	groups := rapid.IntRange(1, 8).Draw(rt, "groups")
	for i := range rapid.IntRange(1, 60).Draw(rt, "messages") {
		m := plannedMessage{Body: fmt.Sprintf("g%d-%02d", rapid.IntRange(1, groups).Draw(rt, fmt.Sprint("group", i)), i), Event: fmt.Sprint("e", i)}
		m.State = rapid.SampledFrom([]ops.State{ops.None, ops.None, ops.Released, ops.Released, ops.Completed, ops.Crashed}).Draw(rt, fmt.Sprint("state", i))
		switch rapid.IntRange(0, 9).Draw(rt, fmt.Sprint("kind", i)) {
		case 0: // the message ID is known when it is sent
			m.Event, m.State = "", ops.None
		case 1: // a second message of one event
			if i > 0 {
				m.Event, m.State = p.Messages[i-1].Event, p.Messages[i-1].State
			}
		}
		p.Messages = append(p.Messages, m)
	}
	for i := range rapid.IntRange(0, 6).Draw(rt, "faults") {
		r := fault.Rule{
			Op:    rapid.SampledFrom([]string{"ReceiveMessage", "SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch"}).Draw(rt, fmt.Sprint("op", i)),
			Nth:   rapid.IntRange(1, 12).Draw(rt, fmt.Sprint("nth", i)),
			Times: rapid.IntRange(1, 3).Draw(rt, fmt.Sprint("times", i)),
		}
		kinds := []fault.Kind{fault.Error, fault.LoseReply, fault.Reset}
		if r.Op == "ReceiveMessage" {
			kinds = append(kinds, fault.ExpireEarly, fault.Duplicate)
		} else {
			kinds = append(kinds, fault.FailEntries, fault.DropEntries)
		}
		r.Do = rapid.SampledFrom(kinds).Draw(rt, fmt.Sprint("do", i))
		if r.Do == fault.Error || r.Do == fault.FailEntries {
			r.Code = rapid.SampledFrom([]string{"InternalError", "RequestThrottled"}).Draw(rt, fmt.Sprint("code", i))
		}
		p.Rules = append(p.Rules, r)
	}
	for i := range rapid.IntRange(0, 5).Draw(rt, "runs") {
		p.Runs = append(p.Runs, plannedRun{
			KillAt:  rapid.Int64Range(0, 40).Draw(rt, fmt.Sprint("kill", i)),
			Journal: rapid.Bool().Draw(rt, fmt.Sprint("journal", i)),
			Canary:  rapid.SampledFrom([]int{-1, 1}).Draw(rt, fmt.Sprint("canary", i)),
			Hold:    rapid.SampledFrom([]time.Duration{10 * time.Second, time.Minute}).Draw(rt, fmt.Sprint("hold", i)),
			Pause:   time.Duration(rapid.IntRange(0, 20*60).Draw(rt, fmt.Sprint("pause", i))) * time.Second,
		})
	}
	return p
}

// TestRedriveProperties: whatever fails, and whenever a redrive is killed, no event is lost, none has its effect twice, none that
// was done runs, and the effects of a FIFO group come in the order of the queue.
func TestRedriveProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := drawRedrive(rt)
		defer func() {
			if t.Failed() {
				t.Logf("plan: %+v", p)
			}
		}()
		bubble(t, setup{fifo: p.FIFO, maxReceives: 100}, func(x *fixture) { x.runRedrives(p) })
		if t.Failed() {
			rt.Fatal("see above")
		}
	})
}

// ledger counts what events have done.
type ledger struct {
	mu      sync.Mutex
	effects map[string]int    // by event
	last    map[string]string // by group: the body of the last effect
}

func (x *fixture) runRedrives(p redrivePlan) {
	for _, m := range p.Messages {
		x.prepare(m)
	}
	time.Sleep(2 * time.Minute) // crashed leases end
	l := &ledger{effects: map[string]int{}, last: map[string]string{}}
	consumer := x.worker(x.url, x.guarded(func(_ context.Context, m *sqsonce.Message) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		event := m.Body
		if a, ok := m.Attributes[sqsonce.AttrEventID]; ok {
			event = a.String
		}
		if l.effects[event]++; p.FIFO && m.Body <= l.last[m.Group] {
			x.Errorf("%s has its effect after %s", m.Body, l.last[m.Group])
		}
		l.last[m.Group] = m.Body
		return nil
	}))
	x.sqs.Set(fault.Plan{Rules: p.Rules})
	w := x.wired(nil)
	var journal []byte
	var ended sync.WaitGroup
	for _, run := range p.Runs {
		if !run.Journal {
			journal = nil
		}
		journal = x.runOnce(run, journal, w, &ended)
		time.Sleep(run.Pause)
	}
	x.sqs.Set(fault.Plan{})
	x.runOnce(plannedRun{Canary: -1}, journal, w, &ended)
	time.Sleep(5 * time.Minute)
	consumer.stop()
	ended.Wait()
	x.checkEvents(p, l)
	stopped := map[string]string{} // by group: what was left from the first run on
	for _, m := range p.Messages {
		group := m.Body[:2]
		if behind := stopped[group]; p.FIFO && behind != "" && w.sent[m.Body] > 0 {
			x.Errorf("%s was sent, though %s before it was left", m.Body, behind)
		}
		if m.State == ops.Completed || m.State == ops.Crashed {
			stopped[group] = m.Body
		}
	}
}

// prepare puts a message into the dead-letter queue, and its event into its state.
func (x *fixture) prepare(m plannedMessage) {
	attrs := map[string]string{}
	if m.Event != "" {
		attrs[sqsonce.AttrEventID], attrs[sqsonce.AttrEventSource] = m.Event, "orders"
	}
	x.sendWith(x.dlq, m.Body, attrs)
	if m.State == ops.None {
		return
	}
	p := x.newProcess()
	in := &sqsonce.Message{ID: "1", Attributes: map[string]sqsonce.Attribute{}}
	for name, value := range attrs {
		in.Attributes[name] = sqsonce.Attribute{Type: "String", String: value}
	}
	_ = x.once(p).Handler(func(context.Context, *sqsonce.Message) error {
		if m.State == ops.Released {
			return errCard
		}
		p.dead.Store(m.State == ops.Crashed)
		return nil
	})(context.Background(), in)
}

// runOnce redrives until the end, or until the process is killed, and returns the journal of that moment.
func (x *fixture) runOnce(run plannedRun, before []byte, w *wire, ended *sync.WaitGroup) (journal []byte) {
	p := x.newProcess()
	path := filepath.Join(x.TempDir(), "journal")
	if err := os.WriteFile(path, before, 0o600); err != nil {
		x.Fatal(err)
	}
	k := &killer{Client: w.over(p.sqs), p: p, path: path, at: run.KillAt, killed: make(chan struct{})}
	d, err := ops.Open(context.Background(), k, x.dlq, func(o *ops.Options) { o.Key, o.Store = x.once(x.admin).Key, x.store(p) })
	if err != nil {
		return before // by a fault, or killed
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	ended.Go(func() {
		defer close(done)
		r, _ := d.Redrive(ctx, func(o *ops.RedriveOptions) {
			o.NeverStarted, o.Journal, o.Canary, o.Hold = true, path, run.Canary, run.Hold
		})
		if !p.dead.Load() {
			x.checkSums(r)
		}
	})
	select {
	case <-k.killed:
		cancel() // what it does from now on has no effect
		return k.journal
	case <-done:
		cancel()
		journal, _ = os.ReadFile(path)
		return journal
	}
}

// checkSums: a report has one result with one action for each message.
func (x *fixture) checkSums(r ops.Report) {
	x.Helper()
	ids := map[string]bool{}
	for _, res := range r.Results {
		ids[res.ID] = true
	}
	if n := r.Count(ops.Redriven, ops.Undeleted, ops.UnknownOutcome, ops.SendFailed, ops.Left); n != len(r.Results) || len(ids) != n {
		x.Errorf("%d results of %d messages, %d with an action", len(r.Results), len(ids), n)
	}
}

func (x *fixture) checkEvents(p redrivePlan, l *ledger) {
	there := append(x.bodies(x.url), x.bodies(x.dlq)...)
	kept := map[string]bool{} // by event
	for _, m := range p.Messages {
		if slices.Contains(there, m.Body) {
			kept[m.event()] = true
		}
	}
	for _, m := range p.Messages {
		event := m.event()
		n := l.effects[event]
		runs := m.State == ops.None || m.State == ops.Released
		if n > 1 || n > 0 && !runs {
			x.Errorf("%s (%s, %s) has had its effect %d times", event, m.Body, m.State, n)
		}
		if runs && n == 0 && !kept[event] {
			x.Errorf("%s (%s, %s) is lost", event, m.Body, m.State)
		}
		if !runs && !slices.Contains(there, m.Body) {
			x.Errorf("%s (%s, %s) was sent", event, m.Body, m.State)
		}
	}
}
