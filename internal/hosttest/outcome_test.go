package hosttest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// script is what the handler does in a run.
type script func(ctx context.Context, r *run) error

// outcome is a row of the table.
type outcome struct {
	name     string
	send     []message // default: the event a1
	script   script
	worker   func(*sqsworker.Options)
	before   func(w *world)            // what happens before the host starts
	during   func(w *world, h running) // and while it runs
	length   time.Duration             // of the run. Default: 1 h
	receives int                       // before a message goes to the dead-letter queue. Default: 5
	kinds    []kind                    // default: both
	want     fates
	differ   []difference
}

// difference is where a host must leave something else behind, and why.
type difference struct {
	hosts   []string
	kinds   []kind // default: both
	want    fates  // of the events that differ
	because string
}

type kind string

const (
	standard kind = "standard"
	fifo     kind = "fifo"
)

// fates are what is left of each event, by name.
type fates map[string]fate

// fate is what is left of an event when all is settled. That no message is left in the queue goes without saying.
type fate struct {
	Status   string // of the record: done, released, held, none
	Error    string // the record's last
	Attempts int    // receive count of the record's last acquire; anyAttempts: not compared
	Dead     string // in the dead-letter queue, with this reason; redriven: by SQS, without one; "": not there
	Runs     int    // starts of the handler
	// Again is the time from the first start to the second, in whole seconds. 0: not compared.
	Again time.Duration
}

const (
	done     = "done"
	released = "released"
	held     = "held"
	none     = "none"
	redriven = "redriven"
)

// anyAttempts is where two deliveries may meet: which of them acquires the record is chance.
const anyAttempts = -1

const maxReceives = 5 // of a message, by default

func TestOutcomes(t *testing.T) {
	t.Parallel()
	for _, o := range slices.Concat(singles, troubles, duplicates, groups) {
		o.checkDifferences(t)
		for _, k := range orDefault(o.kinds, standard, fifo) {
			for _, h := range hosts {
				t.Run(fmt.Sprintf("%s/%s/%s", o.name, k, h.name), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { o.play(t, h, k) })
				})
			}
		}
	}
}

// checkDifferences: each has its reason, and is one.
func (o *outcome) checkDifferences(t *testing.T) {
	for _, d := range o.differ {
		if d.because == "" {
			t.Errorf("%s: a difference of %v has no reason", o.name, d.hosts)
		}
		for name, f := range d.want {
			if base, known := o.want[name]; !known || base == f {
				t.Errorf("%s: %s is said to differ with %v, and does not", o.name, name, d.hosts)
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

func (o *outcome) play(t *testing.T, h host, k kind) {
	w := newWorld(t, setup{fifo: k == fifo, visibility: 6 * functionTimeout, maxReceives: cmp.Or(o.receives, maxReceives)})
	w.rejects = h.name != bareFunction
	w.send(orDefault(o.send, message{name: "a1"})...)
	if o.before != nil {
		o.before(w)
	}
	r := h.start(w, o)
	begun := time.Now()
	if o.during != nil {
		o.during(w, r)
	}
	time.Sleep(time.Until(begun.Add(cmp.Or(o.length, time.Hour))))
	r.stop()
	w.admin.kill()

	want := maps.Clone(o.want)
	for _, d := range o.differ {
		if slices.Contains(d.hosts, h.name) && slices.Contains(orDefault(d.kinds, standard, fifo), k) {
			maps.Copy(want, d.want)
		}
	}
	if d := gocmp.Diff(want, w.fates(want)); d != "" {
		t.Errorf("left behind (-want +got):\n%s", d)
	}
	for _, m := range w.sqs.Messages(w.url) {
		t.Errorf("left in the queue: %s, received %d times", m.Body, m.ReceiveCount)
	}
	for _, p := range w.witness.report() {
		t.Error(p)
	}
	if w.fifo {
		w.checkOrder(o.send)
	}
}

// fates returns what is left of the events that are wanted.
func (w *world) fates(want fates) fates {
	dead := map[string]string{}
	for _, m := range w.sqs.Messages(w.dlq) {
		name, reason := m.Attributes[sqsonce.AttrEventID], m.Attributes[sqsonce.AttrRejectReason]
		if reason == "" {
			reason = redriven
		}
		if dead[name] != "" {
			reason = dead[name] + ", " + reason // twice
		}
		dead[name] = reason
	}
	got := fates{}
	for name, wanted := range want {
		r, runs := w.record(name), w.witness.runs(name)
		f := fate{Error: r.Error.S, Dead: dead[name], Runs: len(runs)}
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
			f.Status = held
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

// checkOrder checks that the events of a group succeeded in the order they were sent.
func (w *world) checkOrder(sent []message) {
	place := map[string]int{}
	for i, m := range sent {
		if _, ok := place[m.name]; !ok {
			place[m.name] = i
		}
	}
	for group, names := range w.witness.order {
		if !slices.IsSortedFunc(names, func(a, b string) int { return place[a] - place[b] }) {
			w.Errorf("group %s succeeded as %v", group, names)
		}
	}
}
