package hosttest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// fleetPlan is what happens to a fleet: workers, a function, publishers, their queues and their store. It is drawn before
// the simulation begins, and printed when it fails. All times count from the begin of the simulation.
type fleetPlan struct {
	seed        uint64
	fifo        bool
	inbox       bool    // the effect is a write in the record's own transaction
	strict      bool    // memsqs.Options.StrictHandles
	network     bool    // requests and answers take some milliseconds, and one answer in a hundred is lost
	replays     float64 // part of the store's writes that arrive again later
	duplicates  float64 // part of the receives of a standard queue that come twice
	receives    int     // maxReceiveCount. Default: 5
	changes     []queueState
	retention   time.Duration // of the queue. Default: 4 days
	publishers  int           // 0: the messages are sent without faults
	workers     []workerPlan
	functions   int          // invocations at once; 0: no function
	batch       int          // BatchSize of the mapping. Default: 10
	perProcess  int          // invocations of one process at once. Default: 1
	invocations []disruption // of each attempt to invoke before calm, again and again
	limiter     *limitPlan   // nil: none
	events      []eventPlan
	faults      []window
	timeout     time.Duration // of handlers; 0: none
	impatient   bool          // the HTTP clients of hosts give a call of the store 2 s, and one of SQS 25 s
	calm        time.Duration // after it nothing is disturbed any more
	limit       time.Duration // after calm: by then all events are done or dead-lettered
}

// workerPlan is one worker: processes one after the other.
type workerPlan struct {
	concurrency, inFlight int // 0: the default
	lives                 []life
}

// life is a process of a worker. The last one ends by a stop when the simulation ends.
type life struct {
	from, to time.Duration
	killed   bool     // else stopped
	freezes  []window // the process does nothing meanwhile
}

// eventPlan is an event: when it is published, and what the handler does in each try of it.
type eventPlan struct {
	name   string
	at     time.Duration
	copies []time.Duration // when it is sent once more
	takes  time.Duration   // of each run
	fails  int             // the first tries; always: poison
	how    failure
	deaf   time.Duration // for how long it ignores its context
	reject bool          // in the end
}

const always = 1 << 30

// failure is how a try fails.
type failure string

const (
	withError      failure = "error"
	withPanic      failure = "panic"
	withGoexit     failure = "Goexit"
	withRetryAfter failure = "RetryAfter"       // 30 s
	withTimeout    failure = "takes 5 min"      // longer than an invocation lasts
	withStuck      failure = "stuck"            // does not return before its process ends; after calm: error
	withDeaf       failure = "deaf"             // ignores its context for a while
	withClaim      failure = "Unavailable"      // nobody can be asked
	withQuestion   failure = "UnavailableUntil" // the question passes
	withPostpone   failure = "Postpone"         // 30 s
	withLate       failure = "late"             // ignores its context for a while, and succeeds
	withExit       failure = "exit"             // ends its process
)

// window is a fault from at on, for length.
type window struct {
	kind       faultKind
	mode       mode // of what is away
	at, length time.Duration
	host       int    // index of the worker; everyone: all of them, the function and the publishers
	percent    int    // of the calls, drawn for each; 0: all
	group      string // of the store: only calls with keys of groups that begin so; "": all
}

// isPartial says that other calls go well meanwhile.
func (w *window) isPartial() bool { return w.percent > 0 || w.group != "" }

const everyone = -1

type faultKind string

const (
	storeAway      faultKind = "store away"
	queueAway      faultKind = "SQS away"
	receivesAway   faultKind = "receives away"
	dlqAway        faultKind = "DLQ away"
	dependencyAway faultKind = "dependency away"
	dependencyAsks faultKind = "dependency away, with a question"
	badDeploy      faultKind = "every message fails"
	lossy          faultKind = "answers lost"  // three in ten
	latePackets    faultKind = "requests late" // one in ten
	frozen         faultKind = "frozen"
)

// mode is what a caller sees of a service that is away.
type mode string

const (
	refuses   mode = "refuses connections"
	hangs     mode = "does not answer"
	breaks    mode = "answers 500"
	throttles mode = "throttles"
	forbids   mode = "denies access" // of the store: it is misconfigured
	unlisted  mode = "answers with an unknown code"
	loses     mode = "does what it is asked, and its answers are lost"
	swallows  mode = "does what it is asked, and never answers"
	cuts      mode = "does what it is asked, and its answers end in the middle"
	unsigned  mode = "is not asked, since there are no credentials"
	outdated  mode = "answers that the credentials have expired"
)

func (w *window) end() time.Duration { return w.at + w.length }

func (w *window) has(at time.Duration, host int) bool {
	return (w.host == everyone || w.host == host) && at >= w.at && at < w.end()
}

// poison says that the event's handler always fails.
func (e *eventPlan) poison() bool { return e.fails == always }

func (e *eventPlan) String() string {
	text := fmt.Sprintf("%s at %s, %s", e.name, e.at, e.takes)
	if len(e.copies) > 0 {
		text += fmt.Sprintf(", copies at %s", e.copies)
	}
	switch {
	case e.poison():
		text += fmt.Sprintf(", poison (%s)", e.how)
	case e.fails > 0:
		text += fmt.Sprintf(", fails %d times (%s)", e.fails, e.how)
	}
	if e.reject {
		text += ", rejected"
	}
	return text
}

// String has everything but the events that nothing is special about.
func (p *fleetPlan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "SEED=%d: fifo %t, inbox %t, strict handles %t, network %t, replays %g, duplicates %g, maxReceiveCount %d, retention %s, %d publishers, %d functions with batches of %d and %d invocations at once in a process, handlers' timeout %s, HTTP timeouts %t, calm after %s, limit %s\n%s\n",
		p.seed, p.fifo, p.inbox, p.strict, p.network, p.replays, p.duplicates, p.receives, p.retention, p.publishers, p.functions, p.batch, p.perProcess, p.timeout, p.impatient, p.calm, p.limit, p.limiter)
	for _, s := range p.changes {
		b.WriteString(s.String())
	}
	for i, w := range p.workers {
		fmt.Fprintf(&b, "worker %d: concurrency %d, in flight %d\n", i, w.concurrency, w.inFlight)
		for _, l := range w.lives {
			how := "stopped"
			if l.killed {
				how = "killed"
			}
			fmt.Fprintf(&b, "  from %s, %s at %s", l.from, how, l.to)
			for _, f := range l.freezes {
				fmt.Fprintf(&b, ", frozen at %s for %s", f.at, f.length)
			}
			b.WriteByte('\n')
		}
	}
	for _, f := range p.faults {
		fmt.Fprintf(&b, "%s %s at %s for %s, host %d, %d%% of the calls, groups %q\n", f.kind, f.mode, f.at, f.length, f.host, f.percent, f.group)
	}
	for i := range p.events {
		if e := &p.events[i]; e.takes > time.Second || e.fails > 0 || e.reject || len(e.copies) > 0 {
			fmt.Fprintln(&b, e)
		}
	}
	return b.String()
}

// toTheEnd is the end of a life that the end of the simulation ends.
const toTheEnd = 100 * 24 * time.Hour

// drawFleet draws a plan. Each part has a generator of its own: a change of one leaves the others as they are.
func drawFleet(seed uint64) *fleetPlan {
	r := rand.New(rand.NewPCG(seed, 0x666c656574))
	p := &fleetPlan{
		seed: seed, fifo: seed%2 == 1, strict: seed/2%2 == 0, inbox: seed%3 != 2, network: true,
		receives: []int{3, 5, 5, 10}[r.IntN(4)], publishers: 1 + r.IntN(3),
		calm: time.Duration(5+r.IntN(10)) * time.Minute,
	}
	if r.IntN(2) == 0 {
		p.replays = 0.01
	}
	if r.IntN(2) == 0 {
		p.duplicates = 0.02
	}
	if r.IntN(3) == 0 {
		p.functions = 2 + r.IntN(10)
	}
	p.drawFaults(r)
	for range 1 + r.IntN(5) {
		p.workers = append(p.workers, p.drawWorker(r))
	}
	for range 200 {
		d := drawDisruption(r)
		if r.IntN(3) > 0 {
			d = disruption{}
		}
		p.invocations = append(p.invocations, d)
	}
	p.drawEvents(r, 400)
	p.drawPartial(rand.New(rand.NewPCG(seed, 0x7061727469616c)))
	p.drawLost(rand.New(rand.NewPCG(seed, 0x6c6f7374)))
	p.drawLimiter(rand.New(rand.NewPCG(seed, 0x6c696d6974)))
	p.drawChanges(rand.New(rand.NewPCG(seed, 0x6368616e6765)))
	p.drawRetention(rand.New(rand.NewPCG(seed, 0x726574656e74)))
	p.drawCredentials(rand.New(rand.NewPCG(seed, 0x63726564)))
	p.drawExits(rand.New(rand.NewPCG(seed, 0x65786974)))
	p.limit = p.longest()
	return p
}

func seconds(r *rand.Rand, most int) time.Duration {
	return time.Duration(r.IntN(most*1000)) * time.Millisecond
}

func (p *fleetPlan) drawFaults(r *rand.Rand) {
	kinds := []faultKind{storeAway, storeAway, queueAway, dlqAway, dependencyAway, dependencyAsks, lossy, latePackets, latePackets}
	modes := []mode{refuses, hangs, breaks, throttles}
	for range 2 + r.IntN(6) {
		w := window{
			kind: kinds[r.IntN(len(kinds))], mode: modes[r.IntN(len(modes))], at: seconds(r, int(p.calm/time.Second)),
			length: seconds(r, 1<<(1+r.IntN(8))), host: everyone,
		}
		if r.IntN(3) == 0 {
			w.host = r.IntN(3)
		}
		w.length = min(w.length, p.calm-w.at)
		if w.kind == dependencyAway || w.kind == dependencyAsks || w.kind == lossy || w.kind == latePackets {
			w.mode = ""
		}
		p.faults = append(p.faults, w)
	}
	if r.IntN(3) == 0 {
		w := window{kind: badDeploy, at: seconds(r, int(p.calm/time.Second)), length: seconds(r, 240), host: everyone}
		w.length = min(w.length, p.calm-w.at)
		p.faults = append(p.faults, w)
	}
}

// drawPartial draws faults that hit a part of the calls, the store and SQS at once, and timeouts of handlers and HTTP clients.
func (p *fleetPlan) drawPartial(r *rand.Rand) {
	modes := []mode{refuses, hangs, breaks, throttles, unlisted}
	for range r.IntN(4) {
		w := window{mode: modes[r.IntN(len(modes))], at: seconds(r, int(p.calm/time.Second)), length: seconds(r, 1<<(3+r.IntN(6))), host: everyone}
		w.length = min(w.length, p.calm-w.at)
		switch w.kind = storeAway; r.IntN(4) {
		case 0:
			w.group = fmt.Sprintf("g%d", 1+r.IntN(9))
		case 1:
			w.percent = 10 + r.IntN(80)
		case 2:
			w.kind, w.percent = queueAway, 10+r.IntN(80)
		default:
			p.faults = append(p.faults, w)
			w.kind = queueAway
		}
		p.faults = append(p.faults, w)
	}
	p.impatient = r.IntN(2) == 0
	if r.IntN(2) == 0 {
		p.timeout = 2 * time.Minute
		if p.functions > 0 {
			p.timeout = 20 * time.Second
		}
	}
}

// drawLost draws times in which SQS does what it is asked, and its answers are lost, and batches of one message.
func (p *fleetPlan) drawLost(r *rand.Rand) {
	for range r.IntN(3) {
		w := window{
			kind: []faultKind{queueAway, receivesAway, receivesAway}[r.IntN(3)], mode: []mode{loses, swallows, cuts}[r.IntN(3)],
			at: seconds(r, int(p.calm/time.Second)), length: seconds(r, 1<<(2+r.IntN(6))), host: r.IntN(4) - 1,
		}
		w.length = min(w.length, p.calm-w.at)
		p.faults = append(p.faults, w)
	}
	if p.functions > 0 && r.IntN(3) == 0 {
		p.batch = 1
	}
}

// drawWorker draws lives up to calm. There each worker is replaced once more, which ends what is stuck.
func (p *fleetPlan) drawWorker(r *rand.Rand) workerPlan {
	w := workerPlan{concurrency: []int{0, 1, 3, 10, 30}[r.IntN(5)]}
	if r.IntN(3) == 0 {
		w.inFlight = max(1, w.concurrency)
	}
	var deploys []time.Duration // each replaces every worker
	for _, f := range p.faults {
		if f.kind == badDeploy {
			deploys = append(deploys, f.at, f.end())
		}
	}
	for at := seconds(r, 20); at < p.calm; {
		l := life{from: at, to: min(at+20*time.Second+seconds(r, 300), p.calm), killed: r.IntN(2) == 0}
		for _, d := range deploys {
			if d > l.from && d < l.to {
				l.to, l.killed = d, false
			}
		}
		for r.IntN(3) == 0 {
			f := window{kind: frozen, at: l.from + seconds(r, int((l.to-l.from)/time.Second)+1), length: 200*time.Millisecond + seconds(r, 60)}
			l.freezes = append(l.freezes, f)
		}
		at = l.to + 100*time.Millisecond + seconds(r, 10)
		w.lives = append(w.lives, l)
	}
	w.lives = append(w.lives, life{from: p.calm + 100*time.Millisecond + seconds(r, 10), to: toTheEnd})
	return w
}

func (p *fleetPlan) drawEvents(r *rand.Rand, events int) {
	groups := 1 + r.IntN(events/8)
	hard := []int{1, 5, 20}[r.IntN(3)] // events in a hundred with a handler that is not quick and sure
	long := []time.Duration{200 * time.Millisecond, 200 * time.Millisecond, 10 * time.Second}[r.IntN(3)]
	for i := range events {
		e := eventPlan{name: fmt.Sprintf("g%d-%d", r.IntN(groups), i), takes: time.Duration(r.Int64N(int64(long)))}
		if r.IntN(3) > 0 {
			e.at = seconds(r, int(p.calm/time.Second))
		}
		if r.IntN(10) == 0 {
			e.copies = append(e.copies, e.at+seconds(r, 400))
		}
		if r.IntN(100) < hard {
			p.drawHard(r, &e)
		}
		p.events = append(p.events, e)
	}
	sortEvents(p.events)
}

func (p *fleetPlan) drawHard(r *rand.Rand, e *eventPlan) {
	ways := []failure{withError, withError, withPanic, withGoexit, withRetryAfter, withTimeout, withStuck, withDeaf, withClaim, withQuestion, withPostpone}
	switch e.how = ways[r.IntN(len(ways))]; r.IntN(8) {
	case 0:
		e.how, e.fails = withError, always
	case 1:
		e.reject = true
	case 2, 3:
		e.takes = seconds(r, 60)
		if p.functions > 0 {
			e.takes = seconds(r, 15)
		}
	default:
		e.fails, e.deaf = 1+r.IntN(2), time.Minute
	}
}

// drawFunction draws a plan of the function alone. Its processes die at random instants, and SQS is away now and then, but
// nothing else keeps a run from its record, and no message runs out of receives.
func drawFunction(seed uint64) *fleetPlan {
	r := rand.New(rand.NewPCG(seed, 0x686f7374))
	p := &fleetPlan{
		seed: seed, fifo: seed%2 == 1, inbox: seed/2%2 == 1, network: true, duplicates: 0.02, receives: 1000,
		functions: 2 + r.IntN(30), batch: 1 + r.IntN(10), perProcess: 1,
		calm: 24 * time.Hour, // most end within an hour
	}
	if seed/8%2 == 1 {
		p.perProcess = 2 + r.IntN(4)
	}
	for at := time.Duration(0); at < time.Hour; {
		w := window{kind: queueAway, mode: refuses, at: at, length: time.Duration(1+r.IntN(20)) * time.Second, host: everyone}
		p.faults = append(p.faults, w)
		at = w.end() + seconds(r, 100)
	}
	for range 1000 {
		p.invocations = append(p.invocations, drawDisruption(r))
	}
	ways := []failure{withError, withError, withPanic, withGoexit, withRetryAfter, withTimeout}
	if seed/4%2 == 1 {
		ways = append(ways, withDeaf, withLate)
	}
	const events = 300
	groups := 1 + r.IntN(events/10)
	for i := range events {
		e := eventPlan{
			name: fmt.Sprintf("g%d-%d", r.IntN(groups), i), takes: seconds(r, 15), reject: r.IntN(50) == 0,
			how: ways[r.IntN(len(ways))], deaf: 20*time.Second + seconds(r, 60),
		}
		if r.IntN(8) > 0 { // so that most invocations end in time
			e.takes = time.Duration(r.IntN(200)) * time.Millisecond
		}
		if e.reject && e.how == withLate {
			e.how = withDeaf
		}
		for r.IntN(5) == 0 {
			e.fails++
		}
		if r.IntN(10) == 0 {
			e.copies = append(e.copies, seconds(r, 100))
		}
		p.events = append(p.events, e)
	}
	p.drawLimiter(rand.New(rand.NewPCG(seed, 0x6c696d6974)))
	return p
}

// disruption is what happens to an invocation.
type disruption struct {
	kind  disruptionKind
	after time.Duration // of a kill, from the start of the invocation
}

type disruptionKind int

const (
	healthy  disruptionKind = iota
	throttle                // no environment is free
	failing                 // the response is lost, and the process lives
	stalled                 // the response comes after the deadline, and the process dies there
	killing                 // the process dies at a random instant, in this invocation or a later one
)

func drawDisruption(r *rand.Rand) disruption {
	switch n := r.IntN(100); {
	case n < 8:
		return disruption{kind: throttle}
	case n < 12:
		return disruption{kind: failing}
	case n < 14:
		return disruption{kind: stalled}
	case n < 32:
		// Most invocations are short; a kill after a long time hits a later one.
		scale := []int{50, 500, 5_000, 30_000}[r.IntN(4)]
		return disruption{kind: killing, after: time.Duration(r.IntN(scale*1000)) * time.Microsecond}
	}
	return disruption{}
}

// disturbsRecords says that something besides a kill may keep a run from its record.
func (p *fleetPlan) disturbsRecords() bool {
	return slices.ContainsFunc(p.faults, func(w window) bool { return w.kind == storeAway || w.kind == lossy || w.kind == latePackets }) ||
		p.freezes()
}

func (p *fleetPlan) freezes() bool {
	return slices.ContainsFunc(p.workers, func(w workerPlan) bool {
		return slices.ContainsFunc(w.lives, func(l life) bool { return len(l.freezes) > 0 })
	})
}

// longest is the time that may pass after calm until the last event is done: protocol, section 13. An event waits at
// most 6.5 min after a fault, and then for its own tries, for those of its group before it, and for slots. On Lambda a copy of an event in progress is delivered again after a delay that doubles with each receive, up
// to 12 h.
func (p *fleetPlan) longest() time.Duration {
	if p.functions > 0 {
		return 48 * time.Hour
	}
	const stop = time.Minute
	wait := 6*time.Minute + 30*time.Second
	if slices.ContainsFunc(p.faults, func(w window) bool { return w.isPartial() }) {
		wait += 16 * time.Minute // of what is aside, beyond MaxHeld: 17.5
	}
	if slices.ContainsFunc(p.faults, func(w window) bool { return w.kind == receivesAway }) {
		wait += 10 * time.Minute // until the next receive: 17.15f
	}
	if len(p.changes) > 0 {
		wait += 10 * time.Minute // until it is read: 17.11
	}
	wait += time.Duration(p.exits()) * 50 * time.Minute // 17.7f
	var load, most time.Duration
	handlers := 0
	lanes := map[string]time.Duration{} // what runs one after the other
	for i := range p.events {
		e := &p.events[i]
		tries := 1 + min(e.fails, p.most()-1)
		runs := time.Duration(tries) * e.takes
		switch e.how {
		case withTimeout:
			runs += time.Duration(tries-1) * 5 * time.Minute
		case withDeaf:
			runs += time.Duration(tries-1) * e.deaf
		}
		lane := e.name
		if p.fifo {
			lane = groupOf(e.name)
		}
		if e.poison() || e.reject { // its copies fail too
			runs *= time.Duration(1 + len(e.copies))
			lanes[lane] += time.Duration(len(e.copies)) * patience(tries)
		}
		load += runs
		handlers += tries * (1 + len(e.copies))
		lanes[lane] += runs + patience(tries)
		most = max(most, lanes[lane])
	}
	slots := 0
	for _, w := range p.workers {
		slots += min(cmp.Or(w.concurrency, 10), cmp.Or(w.inFlight, 10))
	}
	return wait + stop + most + load/time.Duration(slots) + p.limiter.longest(handlers, load)
}

// patience is how long the default backoff lets n tries take: 10 s, 1 min, then 5 min, each up to a quarter longer.
func patience(n int) time.Duration { return time.Duration(n-1) * 5 * time.Minute * 5 / 4 }

// sortEvents sorts events by their time. Those of one time keep their order.
func sortEvents(es []eventPlan) {
	slices.SortStableFunc(es, func(a, b eventPlan) int { return cmp.Compare(a.at, b.at) })
}
