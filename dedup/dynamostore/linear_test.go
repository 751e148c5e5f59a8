package dynamostore

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/sqsonce/sqsonce/internal/linear"
)

// Eight owners use two keys, with clocks up to a minute apart. Replies are lost, requests are throttled and meet conflicts,
// and packets are delivered late and twice. All answers can be put into one order of a single record: no two owners have
// its lease, fences grow, and a completed record stays completed.
func TestHistoryIsLinearizable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		plan := genPlan.Draw(rt, "plan")
		var h linearHistory
		synctest.Test(t, func(t *testing.T) { h.run(t, plan, nil) })
		if err := h.Check(); err != nil {
			rt.Fatalf("%v\n%s", err, plan)
		}
	})
}

// A checker that never fails proves nothing: with a broken clause of a condition some history has no order.
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
				if h.Check() != nil {
					return
				}
			}
			t.Errorf("400 histories have an order; %d conditions were broken", br.hits)
		})
	}
}

// linearHistory is the history of one run.
type linearHistory struct{ linear.History }

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
				h.Deliver(linear.Host{Store: s, Client: i, Skew: o.skew, Lease: linearLease}, fmt.Sprintf("%d.%d", i, n), d)
			}
			wire.pending.Wait()
		})
	}
	hosts.Wait()
	time.Sleep(releaseTimeout) // the store's own releases
}

// lateWire is a host's network. It delivers some packets late, instead or a second time, and records their results in the
// history.
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
	c := linear.Call{Kind: p.kind(), Key: key.Key[attrID]["S"], Owner: p.owner(), Delayed: true}
	called := time.Now()
	a := linear.Result{Status: p.send(w.to), Until: time.UnixMilli(p.number(":until")), Fence: p.number(":fence")}
	if a.Status != "nothing" {
		w.history.Add(linearOwners+w.client, called, c, a)
	}
}
