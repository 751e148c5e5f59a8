package hosttest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// script is what the handler does in a run.
type script func(ctx context.Context, r *run) error

// scenario is a row of the table: what is sent, what the handler does, what happens meanwhile, and the end state.
type scenario struct {
	name     string
	send     []message // default: the event a1
	script   script
	worker   func(*sqsworker.Options)
	before   func(w *fixture)            // runs before the host starts
	during   func(w *fixture, h running) // runs while the host runs
	length   time.Duration               // of the scenario. Default: 1 h
	receives int                         // maxReceiveCount of the queue. Default: 5
	kinds    []kind                      // default: both
	want     endStates
	differ   []difference
}

// difference is another end state that some hosts must have, and why.
type difference struct {
	hosts   []string
	kinds   []kind    // default: both
	want    endStates // of the events that differ
	because string
}

type kind string

const (
	standard kind = "standard"
	fifo     kind = "fifo"
)

// endStates are the end states of events, by name.
type endStates map[string]endState

// endState is the state of an event at the end of a scenario. The queue must be empty then, in every scenario.
type endState struct {
	Status   string // of the record: done, released, leased, none
	Error    string // the record's last
	Attempts int    // receive count of the record's last acquire; anyAttempts: not compared
	Dead     string // in the dead-letter queue with this reason; byPolicy: without one; "": not there
	Runs     int    // starts of the handler
	// Again is the time from the first start to the second, in whole seconds. 0: not compared.
	Again time.Duration
}

const (
	done     = "done"
	released = "released"
	leased   = "leased"
	none     = "none"
	byPolicy = "moved by the redrive policy"
)

// anyAttempts is for two deliveries at once: either of them may acquire the record.
const anyAttempts = -1

const maxReceives = 5 // maxReceiveCount of the queue, by default

func TestScenarios(t *testing.T) {
	t.Parallel()
	for _, sc := range allScenarios {
		sc.checkDifferences(t)
		for _, k := range orDefault(sc.kinds, standard, fifo) {
			for _, h := range hosts {
				must.RunParallel(t, fmt.Sprintf("%s/%s/%s", sc.name, k, h.name), func(t *testing.T) { sc.play(t, h, k) })
			}
		}
	}
}

// checkDifferences checks that each difference has a reason and does differ.
func (sc *scenario) checkDifferences(t *testing.T) {
	for _, d := range sc.differ {
		if d.because == "" {
			t.Errorf("%s: a difference of %v has no reason", sc.name, d.hosts)
		}
		for name, f := range d.want {
			if base, known := sc.want[name]; !known || base == f {
				t.Errorf("%s: the difference of %s with %v is none", sc.name, name, d.hosts)
			}
		}
	}
}

func orDefault[T any](list []T, all ...T) []T {
	if len(list) == 0 {
		return all
	}
	return list
}

func (sc *scenario) play(t *testing.T, h host, k kind) {
	w := newFixture(t, setup{fifo: k == fifo, visibility: 6 * functionTimeout, maxReceives: cmp.Or(sc.receives, maxReceives)})
	w.rejects = h.name != bareFunction
	w.send(orDefault(sc.send, message{name: "a1"})...)
	if sc.before != nil {
		sc.before(w)
	}
	r := h.start(w, sc)
	begun := time.Now()
	if sc.during != nil {
		sc.during(w, r)
	}
	time.Sleep(time.Until(begun.Add(cmp.Or(sc.length, time.Hour))))
	r.stop()
	w.admin.kill()

	want := maps.Clone(sc.want)
	for _, d := range sc.differ {
		if slices.Contains(d.hosts, h.name) && slices.Contains(orDefault(d.kinds, standard, fifo), k) {
			maps.Copy(want, d.want)
		}
	}
	if d := gocmp.Diff(want, w.endStates(want)); d != "" {
		t.Errorf("end states (-want +got):\n%s", d)
	}
	for _, m := range w.sqs.Messages(w.url) {
		t.Errorf("in the queue: %s, received %d times", m.Body, m.ReceiveCount)
	}
	for _, p := range w.checker.report() {
		t.Error(p)
	}
	if w.fifo {
		w.checkOrder(sc.send)
	}
}

// endStates returns the end states of the events in want.
func (w *fixture) endStates(want endStates) endStates {
	dead := map[string]string{}
	for _, m := range w.sqs.Messages(w.dlq) {
		name, reason := m.Attributes[sqsonce.AttrEventID], m.Attributes[sqsonce.AttrRejectReason]
		if reason == "" {
			reason = byPolicy
		}
		if dead[name] != "" {
			reason = dead[name] + ", " + reason // the event is there twice
		}
		dead[name] = reason
	}
	got := endStates{}
	for name, wanted := range want {
		r, runs := w.record(name), w.checker.runs(name)
		f := endState{Error: r.Error.S, Dead: dead[name], Runs: len(runs)}
		if strings.Contains(f.Error, "in a process that crashed") {
			f.Error = "" // a record keeps the note of a crash
		}
		f.Attempts, _ = strconv.Atoi(r.Attempts.N)
		if wanted.Attempts == anyAttempts {
			f.Attempts = anyAttempts
		}
		switch {
		case r.completed():
			f.Status = done
		case r.Status.S == "":
			f.Status = none
		case r.Until.N == "0":
			f.Status = released
		default:
			f.Status = leased
		}
		if wanted.Again > 0 && len(runs) > 1 {
			f.Again = runs[1].begun.Sub(runs[0].begun).Round(time.Second)
		}
		got[name] = f
		delete(dead, name)
	}
	for name, reason := range dead {
		w.Errorf("in the dead-letter queue: %s: %s", name, reason)
	}
	return got
}

// checkOrder checks that the events of each group succeeded in the order they were sent.
func (w *fixture) checkOrder(sent []message) {
	position := map[string]int{}
	for i, m := range sent {
		if _, ok := position[m.name]; !ok {
			position[m.name] = i
		}
	}
	for group, names := range w.checker.order {
		if !slices.IsSortedFunc(names, func(a, b string) int { return position[a] - position[b] }) {
			w.Errorf("group %s succeeded as %v", group, names)
		}
	}
}
