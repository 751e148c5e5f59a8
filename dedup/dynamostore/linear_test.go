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

// Eight owners on two keys, their clocks up to a minute apart, lose replies, are throttled and refused for conflicts, and
// have packets delivered late and twice. Whatever they are told can be put into one order in which the record is one
// record: no two hold it, fences grow, and what is completed stays so.
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
				if h.Check() != nil {
					return
				}
			}
			t.Errorf("400 histories have an order; %d conditions were broken", br.hits)
		})
	}
}

// linearHistory is what one run does to the store.
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
	time.Sleep(abandonTimeout) // the store's own releases
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
	c := linear.Call{Kind: p.kind(), Key: key.Key[attrID]["S"], Owner: p.owner(), Ghost: true}
	called := time.Now()
	a := linear.Answer{Outcome: p.send(w.to), Until: time.UnixMilli(p.number(":until")), Fence: p.number(":fence")}
	if a.Outcome != "nothing" {
		w.history.Add(linearOwners+w.client, called, c, a)
	}
}
