package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"pgregory.net/rapid"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// Eight owners on two keys, their clocks up to a minute apart, lose replies, are throttled and refused for conflicts, and
// have packets delivered late and twice. Whatever they are told can be put into one order in which the record is one
// record: no two hold it, fences grow, and what is completed stays so.
func TestHistoryIsLinearizable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		plan := genPlan.Draw(rt, "plan")
		var h linearHistory
		synctest.Test(t, func(t *testing.T) { h.run(t, plan, nil) })
		if err := h.check(); err != nil {
			rt.Fatalf("%v\n%s", err, plan)
		}
	})
}

// A checker that nothing fails proves nothing: with a clause of a condition broken there is soon a history that has no
// order.
func TestBrokenConditionsHaveNoOrder(t *testing.T) {
	t.Parallel()
	for _, b := range broken {
		if !b.linear {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			br := &breaker{kind: b.kind, clause: b.clause, within: b.within}
			for seed := range 400 {
				plan := genPlan.Example(seed)
				var h linearHistory
				synctest.Test(t, func(t *testing.T) { h.run(t, plan, br) })
				if h.check() != nil {
					return
				}
			}
			t.Errorf("400 histories have an order; %d conditions were broken", br.hits)
		})
	}
}

// linearHistory collects the calls of a run and their answers.
type linearHistory struct {
	mu  sync.Mutex
	ops []porcupine.Operation
}

const never = math.MaxInt64

func (h *linearHistory) add(client int, called int64, c linearCall, a linearAnswer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	returned := time.Now().UnixNano()
	c.returned = time.Now()
	if a.outcome == "unknown" {
		// It may have its effect at any time from now on.
		returned, c.returned = never, time.Now().Add(100*time.Hour)
	}
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: c, Call: called, Output: a, Return: returned})
}

func (h *linearHistory) run(t *testing.T, plan linearPlan, br *breaker) {
	b := newBed(t)
	b.srv.Set(plan.faults())
	var hosts sync.WaitGroup
	for i, o := range plan.owners {
		wire := &lateWire{history: h, to: b.srv, client: i, br: br, late: map[int]latePacket{}}
		for _, l := range o.late {
			wire.late[l.nth] = l
		}
		s, err := New(b.client(wire), testTable, off(o.skew))
		if err != nil {
			t.Fatal(err)
		}
		hosts.Go(func() {
			for n, d := range o.deliveries {
				h.deliver(s, i, fmt.Sprintf("%d.%d", i, n), o.skew, d)
			}
			wire.pending.Wait()
		})
	}
	hosts.Wait()
	time.Sleep(ownTimeout) // the store's own releases
}

func (h *linearHistory) deliver(s *Store, client int, owner string, skew time.Duration, d delivery) {
	time.Sleep(d.wait)
	ctx := context.Background()
	call := linearCall{kind: "acquire", key: fmt.Sprint("key ", d.key), owner: owner}
	c := dedup.Claim{Key: call.key, Owner: owner, Lease: linearLease, Retention: 24 * time.Hour, Attempt: 2}
	// The answer's times are in the host's clock.
	truth := func(l dedup.Lease) linearAnswer {
		return linearAnswer{outcome: "granted", until: l.Until.Add(-skew), fence: l.Fence}
	}
	do := func(kind string, f func() (linearAnswer, error)) bool {
		called := time.Now().UnixNano()
		a, err := f()
		call.kind = kind
		if err != nil {
			a.outcome = linearOutcome(err)
		}
		h.add(client, called, call, a)
		return err == nil
	}
	var l dedup.Lease
	if !do("acquire", func() (a linearAnswer, err error) { l, err = s.Acquire(ctx, c); return truth(l), err }) {
		return
	}
	for _, wait := range d.renews {
		time.Sleep(wait)
		do("renew", func() (linearAnswer, error) {
			r, err := s.Renew(ctx, l, linearLease)
			if err == nil {
				l = r
			}
			return truth(l), err
		})
	}
	time.Sleep(d.hold)
	switch d.end {
	case "complete":
		do("complete", func() (linearAnswer, error) {
			return linearAnswer{outcome: "granted"}, s.Complete(ctx, l, dedup.Result{})
		})
	case "release":
		do("release", func() (linearAnswer, error) {
			return linearAnswer{outcome: "granted"}, s.Release(ctx, l, errors.New("failed"))
		})
	}
}

func linearOutcome(err error) string {
	switch {
	case isCompleted(err):
		return "done"
	case errors.Is(err, sqsonce.ErrInProgress):
		return "held"
	case errors.Is(err, sqsonce.ErrLeaseLost):
		return "lost"
	}
	return "unknown"
}

func (h *linearHistory) check() error {
	model := linearModel.ToModel()
	result, _ := porcupine.CheckOperationsVerbose(model, h.ops, 20*time.Second)
	if result == porcupine.Ok {
		return nil
	}
	var b bytes.Buffer
	for _, op := range h.ops {
		c, a := op.Input.(linearCall), op.Output.(linearAnswer)
		fmt.Fprintf(&b, "%s: %s, %d to %d ms, until %d, fence %d\n", c.key, model.DescribeOperation(c, a), op.Call/1e6, op.Return/1e6, a.until.UnixMilli(), a.fence)
	}
	return fmt.Errorf("the history is %s:\n%s", strings.ToLower(string(result)), b.String())
}

// lateWire is a host's network, which delivers some packets late, instead or once more, and puts what becomes of them
// into the history.
type lateWire struct {
	history *linearHistory
	to      http.RoundTripper
	client  int
	late    map[int]latePacket
	br      *breaker
	pending sync.WaitGroup

	mu   sync.Mutex
	sent int
}

var errHeldBack = errors.New("the packet is held back")

func (w *lateWire) RoundTrip(r *http.Request) (*http.Response, error) {
	p, err := readPacket(r)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	late, isLate := w.late[w.sent]
	w.sent++
	w.mu.Unlock()
	if w.br != nil {
		p = w.br.edit(p)
		r = p.request(r.Context())
	}
	if isLate && p.op == "UpdateItem" {
		w.pending.Go(func() {
			time.Sleep(late.by)
			w.arrive(p)
		})
		if late.instead {
			<-r.Context().Done() // the sender gives the attempt up
			return nil, errHeldBack
		}
	}
	return w.to.RoundTrip(r)
}

func (w *lateWire) arrive(p packet) {
	var key struct{ Key map[string]map[string]string }
	mustDecode(p.body, &key)
	c := linearCall{kind: p.kind(), key: key.Key[attrID]["S"], owner: p.owner(), ghost: true}
	called := time.Now().UnixNano()
	a := linearAnswer{outcome: p.send(w.to), until: time.UnixMilli(p.number(":until")), fence: p.number(":fence")}
	if a.outcome != "nothing" {
		w.history.add(linearOwners+w.client, called, c, a)
	}
}
