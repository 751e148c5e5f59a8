package outboxtest

import (
	"strings"
	"sync"

	"github.com/sqsonce/sqsonce/fifo/outbox"
)

var deleteCases = []testCase{
	{name: "delete/what it names and nothing else", run: func(x *exam) {
		x.commit("g", 5)
		x.commit("h", 2)
		es := x.read("g", 10)
		x.delete(es[3])
		x.ids("g", "after the delete of 4", 1, 2, 3, 5)
		x.delete(es[0], es[4])
		x.ids("g", "after the delete of 1 and 5", 2, 3)
		x.ids("h", "after deletes in another group", 1, 2)
	}},
	{name: "delete/a late one leaves what came since", run: func(x *exam) {
		x.commit("g", 3)
		es := x.read("g", 10)
		x.delete(es...)
		x.commit("g", 2)
		x.delete(es...) // of a relay that was frozen
		x.delete(es[2])
		x.ids("g", "after late deletes", 4, 5)
	}},
	{name: "delete/of none", run: func(x *exam) {
		x.delete()
		x.commit("g", 1)
		x.delete()
		x.ids("g", "after a delete of nothing", 1)
	}},
	{name: "delete/gone", run: func(x *exam) {
		x.commit("g", 2)
		es := x.read("g", 10)
		x.delete(es[0])
		x.delete(es...)
		x.delete(es...)
		x.ids("g", "after three deletes")
	}},
	{name: "delete/by the names alone", run: func(x *exam) {
		x.commit("g", 2)
		es := x.read("g", 10)
		var name outbox.Entry
		name.Group, name.ID, name.Seq = es[0].Group, es[0].ID, es[0].Seq
		x.delete(name)
		x.ids("g", "after a delete by Group, Seq and ID", 2)
	}},
	{name: "delete/another event in its place stays", needs: replace, run: func(x *exam) {
		x.commit("g", 2)
		es := x.read("g", 10)
		for _, change := range []func(*outbox.Entry){
			func(e *outbox.Entry) { e.ID = strings.ToUpper(e.ID) },
			func(e *outbox.Entry) { e.ID += " " },
			func(e *outbox.Entry) { e.Group = "other" },
			func(e *outbox.Entry) { e.Seq += 1000 },
		} {
			e := es[0]
			change(&e)
			x.delete(e)
		}
		x.ids("g", "after deletes of others", 1, 2)
		e := x.events("g", 1)[0]
		x.Replace(x.t, x.Store, es[0], e)
		x.delete(es[0])
		x.same(x.read("g", 10), "g", "after the delete of an event whose place has another one", 3, 2)
	}},
	{name: "delete/several groups, many events", run: func(x *exam) {
		var es []outbox.Entry
		for _, g := range []string{"a", "b", "c", "d", "e"} {
			x.commit(g, 21)
			es = append(es, x.read(g, 20)...)
		}
		x.delete(es...)
		for _, g := range []string{"a", "b", "c", "d", "e"} {
			x.ids(g, "after a delete of 100 events of five groups", 21)
		}
	}},
	{name: "delete/a parked one", run: func(x *exam) {
		// Another relay had success for it.
		x.commit("g", 2)
		es := x.read("g", 10)
		x.park(es[0], outbox.OnRefusedHalt)
		x.delete(es[0])
		x.ids("g", "after the delete of a parked event", 2)
	}},
	{name: "delete/at the same time", run: func(x *exam) {
		x.commit("g", 20)
		es := x.read("g", 20)
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			wg.Go(func() {
				var left []outbox.Entry
				if left, errs[i] = x.Delete(x.ctx, es[i:i+10]); errs[i] != nil && len(left) == 0 {
					errs[i] = nil // reported below: what is left is there
				}
			})
		}
		wg.Wait()
		x.delete(es[:17]...)
		x.ids("g", "after deletes at the same time", 18, 19, 20)
	}},
}
