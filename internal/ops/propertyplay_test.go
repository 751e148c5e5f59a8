package ops_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// redrivePlay plays a plan.
type redrivePlay struct {
	*fixture
	redrivePlan
	once  *dedup.Once // the consumer's
	keys  *dedup.Once // the redriver's
	mem   *memstore.Store
	wire  *wire
	kills int
	ended sync.WaitGroup // all that goes on beside the runs

	mu       sync.Mutex
	effects  map[string]int    // by event
	last     map[string]string // by group: the body of the last effect
	reopened map[string]bool   // by event
	rejects  map[string]int    // by event: those to come
	back     map[string]int    // by body: how often it came back
}

func (x *redrivePlay) play() {
	// Block: a consumer that cannot complete a record for longer than its lease would have the effect once more, whoever sent the
	// event.
	x.mem = memstore.New()
	x.once = x.consumes(x.newProcess(), func(o *dedup.Options) { o.OnCrash = dedup.OnCrashBlock })
	x.keys = x.fixture.once(x.admin)
	x.effects, x.last, x.reopened = map[string]int{}, map[string]string{}, map[string]bool{}
	x.rejects, x.back = map[string]int{}, map[string]int{}
	for _, i := range x.Rejects {
		x.rejects[x.Messages[i].event()]++
	}
	x.prepare()
	x.wire = x.wired(nil)
	x.sqs.Set(fault.Plan{Rules: x.SQS})
	x.ddb.Set(fault.Plan{Rules: x.Store})
	x.beside()
	consumer := make(chan host, 1)
	time.AfterFunc(x.LateStart, func() {
		consumer <- x.worker(x.url, func(*process) sqsonce.Handler { return sqsonce.OpenEnvelope(x.once.Handler(x.effect)) })
	})
	var journal []byte
	for _, run := range x.Runs {
		if !run.Journal {
			journal = nil
		}
		journal = x.run(run, journal)
		time.Sleep(run.Pause)
	}
	h := <-consumer
	x.sqs.Set(fault.Plan{})
	x.ddb.Set(fault.Plan{})
	time.Sleep(2 * time.Minute) // what a killed run has hidden is visible
	x.run(plannedRun{Canary: -1, Unknown: x.Unknown}, journal)
	time.Sleep(5 * time.Minute)
	h.stop()
	x.ended.Wait()
	x.check()
}

// consumes is the consumer in a process.
func (x *redrivePlay) consumes(p *process, optFns ...func(*dedup.Options)) *dedup.Once {
	var store dedup.Store = x.fixture.store(p)
	if x.Memory {
		store = mortal{x.mem, p}
	}
	return must.Get(dedup.New(store, consumer, append(optFns, func(o *dedup.Options) {
		if o.Logger = x.quiet; x.Function {
			o.Key = ownKey
		}
	})...))(x)
}

// ownKey is a key function.
func ownKey(m *sqsonce.Message) (string, error) {
	if a, ok := m.Attributes[sqsonce.AttrEventID]; ok {
		return "own|" + a.String, nil
	}
	key, _, err := m.Key()
	return key, err
}

// records are the store's as a redriver or an operator in a process uses them.
func (x *redrivePlay) records(p *process) interface {
	dedup.Inspector
	dedup.Reopener
} {
	if x.Memory {
		return x.mem
	}
	return x.store(p)
}

// mortal is a store in memory, of which a dead process makes no use.
type mortal struct {
	dedup.Store
	p *process
}

func (m mortal) alive() error {
	if m.p.dead.Load() {
		return errDead
	}
	return nil
}

func (m mortal) Acquire(ctx context.Context, c dedup.Claim) (dedup.Grant, error) {
	if err := m.alive(); err != nil {
		return dedup.Grant{}, err
	}
	return m.Store.Acquire(ctx, c)
}

func (m mortal) Renew(ctx context.Context, l dedup.Lease, d time.Duration) (dedup.Lease, error) {
	if err := m.alive(); err != nil {
		return dedup.Lease{}, err
	}
	return m.Store.Renew(ctx, l, d)
}

func (m mortal) Complete(ctx context.Context, l dedup.Lease, r dedup.Result) error {
	if err := m.alive(); err != nil {
		return err
	}
	return m.Store.Complete(ctx, l, r)
}

func (m mortal) Release(ctx context.Context, l dedup.Lease, cause error) error {
	if err := m.alive(); err != nil {
		return err
	}
	return m.Store.Release(ctx, l, cause)
}

// effect is the consumer's handler.
func (x *redrivePlay) effect(_ context.Context, m *sqsonce.Message) error {
	time.Sleep(x.Take)
	x.mu.Lock()
	defer x.mu.Unlock()
	event := m.Body
	if a, ok := m.Attributes[sqsonce.AttrEventID]; ok {
		event = a.String
	}
	if x.rejects[event] > 0 {
		x.rejects[event]--
		x.back[m.Body]++
		return sqsonce.Reject(errCard)
	}
	if x.effects[event]++; x.reopened[event] { // it passed as done, and comes again
		return nil
	}
	if x.FIFO && !x.skips() && len(x.back) == 0 && m.Body <= x.last[m.Group] {
		x.Errorf("%s has its effect after %s", m.Body, x.last[m.Group])
	}
	x.last[m.Group] = m.Body
	return nil
}

func (x *redrivePlay) skips() bool {
	return slices.ContainsFunc(x.Runs, func(r plannedRun) bool { return r.SkipAhead })
}

// prepare puts the messages into the dead-letter queue, and their events into their states.
func (x *redrivePlay) prepare() {
	x.set(x.url, x.redrive("jobs-dlq", 1))
	events := map[string]plannedMessage{}
	for _, m := range x.Messages {
		x.arrive(m)
		if m.State != noRecord {
			events[m.Event] = m
		}
	}
	x.set(x.url, x.redrive("jobs-dlq", 100))
	leave := func(once *dedup.Once, m plannedMessage, h sqsonce.Handler) {
		in := &sqsonce.Message{ID: "1", Attributes: map[string]sqsonce.Attribute{}}
		for name, value := range attributesOfEvent(m) {
			in.Attributes[name] = sqsonce.Attribute{Type: "String", String: value}
		}
		_ = once.Handler(h)(context.Background(), in)
	}
	p := x.newProcess()
	crashing := x.consumes(p)
	for _, event := range slices.Sorted(maps.Keys(events)) {
		if m := events[event]; m.State == dedup.StateCrashed {
			leave(crashing, m, func(context.Context, *sqsonce.Message) error { p.dead.Store(true); return nil })
			p.dead.Store(false)
		}
	}
	p.dead.Store(true)
	time.Sleep(2 * time.Minute) // their leases end
	for _, event := range slices.Sorted(maps.Keys(events)) {
		switch m := events[event]; m.State {
		case dedup.StateReleased:
			leave(x.once, m, fails(errCard))
		case dedup.StateCompleted: // which the consumer remembers
			leave(x.once, m, func(context.Context, *sqsonce.Message) error { return nil })
		}
	}
}

func attributesOfEvent(m plannedMessage) map[string]string {
	if m.Event == "" {
		return map[string]string{}
	}
	return map[string]string{sqsonce.AttrEventID: m.Event, sqsonce.AttrEventSource: "orders"}
}

// arrive has the message come to the dead-letter queue.
func (x *redrivePlay) arrive(m plannedMessage) {
	attrs := attributesOfEvent(m)
	switch m.Cause {
	case ops.CauseRejected:
		attrs[sqsonce.AttrRejectReason], attrs[sqsonce.AttrDeadLetterSource] = "card declined", arnPrefix+x.named("jobs")
	case ops.CauseReceivesUsedUp:
		x.sendWith(x.url, m.Body, attrs)
		in := &sqs.ChangeMessageVisibilityInput{QueueUrl: &x.url, ReceiptHandle: x.receiveOne(x.url).ReceiptHandle}
		must.Get(x.admin.sqs.ChangeMessageVisibility(context.Background(), in))(x)
		x.receive(x.url) // which moves it
		return
	}
	x.sendWith(x.dlq, m.Body, attrs)
}

// beside starts what others do: the store is away, an operator reopens records, a producer sends events once more.
func (x *redrivePlay) beside() {
	at := func(when time.Duration, f func()) {
		x.ended.Go(func() { time.Sleep(when); f() })
	}
	if x.Away.For > 0 {
		at(x.Away.At, func() {
			x.ddb.Set(fault.Plan{Rules: []fault.Rule{{Prob: 1, Do: fault.Error, Code: "InternalServerError"}}})
		})
		at(x.Away.At+x.Away.For, func() { x.ddb.Set(fault.Plan{}) })
	}
	for _, r := range x.Reopens {
		at(r.At, func() { x.reopen(x.Messages[r.Of]) })
	}
	for _, c := range x.Copies {
		at(c.At, func() {
			if m := x.Messages[c.Of]; m.Event != "" {
				x.sendWith(x.url, m.Body+"-again", attributesOfEvent(m))
			}
		})
	}
}

// reopen reopens the record of an event that has not run since the play began, and would not run again.
func (x *redrivePlay) reopen(m plannedMessage) {
	if m.State != dedup.StateCompleted && m.State != dedup.StateCrashed {
		return
	}
	x.mu.Lock() // not during a call: the bubble's time stands still while somebody waits for a lock
	again := x.reopened[m.Event]
	x.reopened[m.Event] = true
	x.mu.Unlock()
	store, key := x.records(x.admin), "billing#orders|"+m.Event
	if x.Function {
		key = "billing#own|" + m.Event
	}
	if rec, err := store.Inspect(context.Background(), key); err == nil && !again {
		_ = store.Reopen(context.Background(), rec, "again") // or not: an answer may be lost
	}
}

// killedNotCut is a file of a machine that keeps its power: what a killed process wrote is there.
type killedNotCut struct{ ops.Appender }

func (killedNotCut) Sync() error { return nil }

// run redrives until the end, or until the process is killed, and returns the journal of that moment.
func (x *redrivePlay) run(run plannedRun, before []byte) (journal []byte) {
	p := x.newProcess()
	path := filepath.Join(x.TempDir(), "journal")
	must.Do(x, os.WriteFile(path, before, 0o600))
	k := newKiller(x.wire.over(p.sqs), p, path, run.KillAt)
	d, err := ops.Open(context.Background(), k, x.dlq, func(o *ops.Options) { o.Key, o.Store, o.Hold = x.keys.Key, x.records(p), run.Hold })
	if err != nil {
		return before // by a fault
	}
	d.Wrap(func(f ops.Appender) ops.Appender { return killedNotCut{f} })
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel() // what a killed process does from then on has no effect
	done := make(chan struct{})
	x.ended.Go(func() {
		defer close(done)
		r, _ := d.Redrive(ctx, func(o *ops.RedriveOptions) {
			o.Unknown, o.Journal, o.Canary, o.SkipAhead = run.Unknown, path, run.Canary, run.SkipAhead
		})
		if !p.dead.Load() {
			x.checkSums(r)
			if ids := idsOf(r); len(ids) > 0 && !maps.Equal(ids, k.ids) {
				x.Errorf("results of %d messages, %d were received", len(ids), len(k.ids))
			}
		}
	})
	select {
	case <-k.killed:
		x.kills++
		return k.journal
	case <-done:
		journal, _ = os.ReadFile(path)
		return journal
	}
}

func idsOf(r ops.Report) map[string]bool {
	ids := map[string]bool{}
	for _, res := range r.Results {
		ids[res.ID] = true
	}
	return ids
}

// checkSums: a report has one result with one action for each message, and a reason for each that is still there.
func (x *fixture) checkSums(r ops.Report) {
	x.Helper()
	ids := idsOf(r)
	if n := r.Count(ops.ActionRedriven, ops.ActionUndeleted, ops.ActionUnknownOutcome, ops.ActionSendFailed, ops.ActionLeft); n != len(r.Results) || len(ids) != n {
		x.Errorf("%d results of %d messages, %d with an action", len(r.Results), len(ids), n)
	}
	for _, res := range r.Results {
		if (res.Err == nil) != (res.Action == ops.ActionRedriven) {
			x.Errorf("%s is %s: %v", res.ID, res.Action, res.Err)
		}
	}
}

// unseen says that the redriver finds no record of an event, until a copy that it does not send has made one under its keys.
func (x *redrivePlay) unseen(m plannedMessage) bool { return m.State == noRecord || x.Function }

// anyUnknown says that a run has sent unknown events.
func (x *redrivePlay) anyUnknown() bool {
	return x.Unknown || slices.ContainsFunc(x.Runs, func(r plannedRun) bool { return r.Unknown })
}

// copied says that a producer has sent the event once more.
func (x *redrivePlay) copied(m plannedMessage) bool {
	return slices.ContainsFunc(x.Copies, func(c plannedTime) bool { return x.Messages[c.Of].event() == m.event() })
}

func (x *redrivePlay) check() {
	left := x.bodies(x.dlq)
	there := append(x.bodies(x.url), left...)
	kept, messages := map[string]bool{}, map[string]int{} // by event
	for _, m := range x.Messages {
		if messages[m.event()]++; slices.Contains(there, m.Body) {
			kept[m.event()] = true
		}
	}
	journalKept := !slices.ContainsFunc(x.Runs, func(r plannedRun) bool { return !r.Journal })
	// A message that was sent and is still there is left when its event is completed. SQS shows none behind ten of these in a group.
	mustRun := len(x.Store) == 0 && len(x.Rejects) == 0 && x.Away.For == 0 && (!x.FIFO || len(x.SQS) == 0 && x.kills == 0)
	stopped, maybe, done := map[string]string{}, map[string]bool{}, map[string]int{} // by group: what was left from the first run on, or may have been
	for _, m := range x.Messages {
		event, group := m.event(), m.Body[:2]
		n := x.effects[event]
		runs := m.State == noRecord || m.State == dedup.StateReleased
		behind := stopped[group]
		blind := x.Function && x.anyUnknown() // sends what it would leave if it saw the record: the consumer does
		switch {
		case x.unseen(m) && !x.anyUnknown() && (x.Function || !x.copied(m)) && x.wire.sent[m.Body] > 0:
			x.Errorf("%s (%s, %s) was sent without a record", event, m.Body, m.State)
		case n > 1 || n > 0 && !runs && !x.reopened[event]:
			x.Errorf("%s (%s, %s) has had its effect %d times", event, m.Body, m.State, n)
		case (runs || x.reopened[event] && !blind) && n == 0 && !kept[event]:
			x.Errorf("%s (%s, %s) is lost", event, m.Body, m.State)
		case runs && n == 0 && mustRun && (x.Unknown || !x.unseen(m)) && (!x.FIFO || !maybe[group]):
			x.Errorf("%s (%s, %s) has not run", event, m.Body, m.State)
		case !runs && !blind && !x.reopened[event] && !slices.Contains(left, m.Body):
			x.Errorf("%s (%s, %s) was sent", event, m.Body, m.State)
		case x.FIFO && !x.skips() && behind != "" && x.wire.sent[m.Body] > 0:
			x.Errorf("%s was sent, though %s before it was left", m.Body, behind)
		case journalKept && !blind && x.wire.sent[m.Body] > 1+x.kills+x.back[m.Body]:
			x.Errorf("%s was sent %d times, with its journal and %d kills", m.Body, x.wire.sent[m.Body], x.kills)
		}
		if m.State == dedup.StateCrashed && !x.reopened[event] && !blind || x.unseen(m) && !x.anyUnknown() && x.Function {
			stopped[group] = m.Body
		}
		if m.State == dedup.StateCompleted || messages[event] > 1 {
			done[group]++
		}
		maybe[group] = maybe[group] || m.State == dedup.StateCrashed || done[group] == 9 || x.unseen(m) && !x.Unknown
	}
}
