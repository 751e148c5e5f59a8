package outboxtest

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
)

var readCases = []testCase{
	{name: "read/an empty group", run: func(x *exam) {
		x.ids("g", "an empty outbox")
		x.commit("other", 1)
		x.ids("g", "a group without events")
	}},
	{name: "read/the whole event", run: func(x *exam) {
		e := fifo.Event{
			ID: "id ✓ '\"\\ \U0001F4E6 ", Group: "Group-!#$%&'()*+,-./:;<=>?@[]^_`{|}~", Body: `{"text":"ü \"x\" 鍵"}` + "\n", Type: "charged",
			TraceHeader: "Root=1-67891233-abcdef012345678912345678", Attributes: map[string]sqsonce.Attribute{
				"text": {Type: "String.label", String: "ü"}, "number": {Type: "Number", String: "-1.5e10"},
				"bytes": {Type: "Binary", Binary: []byte{0, 1, 255}},
			},
		}
		long := fifo.Event{ID: strings.Repeat("é", 3000), Group: e.Group, Body: "\u2028\U0001F4E6\r\n\t"}
		x.commitTx(x.t, e, long)
		got := x.read(e.Group, 10)
		if len(got) != 2 || !reflect.DeepEqual(got[0].Event, e) || !reflect.DeepEqual(got[1].Event, long) {
			x.fatalf("Read: got %+v, want events %+v and %+v", got, e, long)
		}
		if got[0].Source != x.Source || got[0].Parked != 0 || got[0].Reason != "" {
			x.fatalf("Read: got %+v, want source %q and neither mark nor reason", got[0], x.Source)
		}
	}},
	{name: "read/groups are told apart", run: func(x *exam) {
		names := []string{"g", "G", "g2", "g#1", "g/1", "g%", "g_", strings.Repeat("n", 128), strings.Repeat("n", 127)}
		for _, name := range names {
			x.commit(name, 2)
		}
		for _, name := range names {
			for _, e := range x.ids(name, "groups with like names", 1, 2) {
				if e.Group != name {
					x.fatalf("Read of %q: got an event of %q", name, e.Group)
				}
			}
		}
	}},
	{name: "read/a large body", run: func(x *exam) {
		e := x.events("g", 1)[0]
		e.Body = strings.Repeat("x", 300<<10)
		x.commitTx(x.t, e)
		if got := x.read("g", 10); len(got) != 1 || got[0].Body != e.Body {
			x.fatalf("Read: the body of 300 KiB is not the one that was committed")
		}
	}},
	{name: "read/in the order of the commits", run: func(x *exam) {
		for range 4 {
			x.commit("g", 3)
			x.commit("h", 1)
		}
		x.ids("g", "12 transactions", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
	}},
	{name: "read/several events of a transaction keep its order", run: func(x *exam) {
		x.commitTx(x.t, x.events("g", 5)...)
		x.commit("g", 1)
		x.ids("g", "a transaction of five events", 1, 2, 3, 4, 5, 6)
	}},
	{name: "read/a transaction with several groups", run: func(x *exam) {
		var es []fifo.Event
		for _, g := range []string{"b", "a", "c", "b", "a"} {
			es = append(es, x.events(g, 1)...)
		}
		x.commitTx(x.t, es...)
		x.ids("a", "a transaction of three groups", 1, 2)
		x.ids("b", "a transaction of three groups", 1, 2)
		x.ids("c", "a transaction of three groups", 1)
	}},
	{name: "read/limit", run: func(x *exam) {
		x.commit("g", 7)
		x.same(x.read("g", 3), "g", "limit 3", 1, 2, 3)
		x.same(x.read("g", 7), "g", "limit 7", 1, 2, 3, 4, 5, 6, 7)
		x.same(x.read("g", 8), "g", "limit 8", 1, 2, 3, 4, 5, 6, 7)
	}},
	{name: "read/from the first", run: func(x *exam) {
		x.commit("g", 5)
		es := x.read("g", 10)
		x.delete(es[0], es[1])
		// A relay that holds the confirmation of the first ones still wants what is there, also below that.
		got, err := x.Read(x.ctx, outbox.Group{Name: "g", Last: es[4].Seq}, outbox.Known{Confirmed: es[3].Seq, Seen: es[4].Seq}, 10)
		if err != nil {
			x.fatalf("Read: got error %v, want none", err)
		}
		x.same(got, "g", "known up to 4", 3, 4, 5)
	}},
	{name: "read/with and without what is known", run: func(x *exam) {
		x.commit("g", 4)
		es := x.read("g", 10)
		for _, k := range []outbox.Known{{}, {Seen: es[0].Seq}, {Seen: es[3].Seq}, {Confirmed: es[1].Seq}, {Confirmed: es[1].Seq, Seen: es[2].Seq}} {
			x.complete(k, 1, 2, 3, 4)
		}
		x.commit("g", 2)
		x.complete(outbox.Known{Seen: es[3].Seq, Confirmed: es[3].Seq}, 1, 2, 3, 4, 5, 6)
	}},
	{name: "read/fewer than limit and no error is the end", needs: half, run: func(x *exam) {
		x.commit("g", 2)
		finish := x.Half(x.t, x.Store, x.events("g", 3)...)
		es, err := x.Read(x.ctx, outbox.Group{Name: "g"}, outbox.Known{}, 10)
		if !errors.Is(err, outbox.ErrUnsettled) {
			x.fatalf("Read with a transaction that has reached one of its three events: got %v and error %v, want ErrUnsettled", seqs(es), err)
		}
		x.prefix(es, 2)
		finish()
		x.complete(outbox.Known{}, 1, 2, 3, 4, 5)
	}},
	{name: "read/what was committed before the last one is there", needs: half, run: func(x *exam) {
		finish := x.Half(x.t, x.Store, x.events("g", 3)...)
		es, err := x.Read(x.ctx, outbox.Group{Name: "g"}, outbox.Known{}, 10)
		if !errors.Is(err, outbox.ErrUnsettled) || len(es) > 0 {
			x.fatalf("Read of the last event of three, the others of which are not visible: got %v and error %v, want ErrUnsettled alone", seqs(es), err)
		}
		finish()
		x.complete(outbox.Known{}, 1, 2, 3)
	}},
	{name: "read/the same behind what was confirmed", needs: half, run: func(x *exam) {
		x.commit("g", 2)
		es := x.read("g", 10)
		x.delete(es...)
		known := outbox.Known{Confirmed: es[1].Seq, Seen: es[1].Seq}
		finish := x.Half(x.t, x.Store, x.events("g", 2)...)
		got, err := x.Read(x.ctx, outbox.Group{Name: "g"}, known, 10)
		if !errors.Is(err, outbox.ErrUnsettled) || len(got) > 0 {
			x.fatalf("Read of the second event of two, the first of which is not visible: got %v and error %v, want ErrUnsettled alone", seqs(got), err)
		}
		finish()
		x.complete(known, 3, 4)
	}},
	{name: "read/a transaction that is not committed", needs: begin, run: func(x *exam) {
		x.commit("g", 1)
		commit, _ := x.Begin(x.t, x.Store, x.events("g", 2)...)
		es, err := x.Read(x.ctx, outbox.Group{Name: "g"}, outbox.Known{}, 10)
		if err != nil && !errors.Is(err, outbox.ErrUnsettled) {
			x.fatalf("Read beside an open transaction: got error %v, want none or ErrUnsettled", err)
		}
		x.prefix(es, 1)
		commit()
		x.complete(outbox.Known{}, 1, 2, 3)
	}},
	{name: "read/a transaction that was rolled back", needs: begin, run: func(x *exam) {
		x.commit("g", 1)
		_, rollback := x.Begin(x.t, x.Store, fifo.Event{ID: "never", Group: "g", Body: "x"})
		rollback()
		x.commit("g", 1)
		x.complete(outbox.Known{}, 1, 2)
	}},
	{name: "read/age", run: func(x *exam) {
		x.commit("g", 1)
		x.pass(x.Lease)
		start := time.Now()
		x.commit("g", 1)
		es := x.ids("g", "two events", 1, 2)
		most := x.Lease/2 + time.Since(start) // a slow call's own time is no age
		if d := (es[0].Age - es[1].Age - x.Lease).Abs(); d > most {
			x.fatalf("Age: got %v and %v of two events with %v between them", es[0].Age, es[1].Age, x.Lease)
		}
		if es[1].Age < -x.Lease/2 || es[1].Age > most {
			x.fatalf("Age of an event that was just committed: got %v", es[1].Age)
		}
	}},
	{name: "read/an event that cannot be decoded", needs: breaks, run: func(x *exam) {
		x.commit("g", 4)
		es := x.read("g", 10)
		x.Break(x.t, x.Store, es[2])
		got, err := x.Read(x.ctx, outbox.Group{Name: "g"}, outbox.Known{}, 10)
		broken, ok := errors.AsType[*outbox.GroupError](err)
		if !ok || !errors.Is(err, outbox.ErrBroken) || broken.Group != "g" || broken.Seq != es[2].Seq {
			x.fatalf("Read: got error %v, want ErrBroken of %d", err, es[2].Seq)
		}
		x.same(got, "g", "beside the error", 1, 2)
		x.commit("h", 1)
		x.ids("h", "beside a group with a broken event", 1)
	}},
	{name: "read/a page before an event that cannot be decoded", needs: breaks, run: func(x *exam) {
		x.commit("g", 4)
		es := x.read("g", 10)
		x.Break(x.t, x.Store, es[3])
		got, err := x.Read(x.ctx, outbox.Group{Name: "g"}, outbox.Known{}, 2)
		if err != nil && !errors.Is(err, outbox.ErrBroken) {
			x.fatalf("Read: got error %v, want none or ErrBroken", err)
		}
		x.same(got, "g", "limit 2, the fourth is broken", 1, 2)
	}},
	{name: "read/concurrently with writers and deletes", run: func(x *exam) {
		const writers, each = 4, 10
		var all [][]fifo.Event
		for w := range writers {
			all = append(all, x.events(fmt.Sprint("g", w), each))
		}
		done := make(chan struct{}, writers)
		for _, es := range all {
			go func() {
				defer func() { done <- struct{}{} }()
				for _, e := range es {
					x.commitTx(x.t, e)
				}
			}()
		}
		read := make([]int, writers)
		for turn := 0; ; turn++ {
			left := 0
			for w := range writers {
				got := x.patient(outbox.Group{Name: fmt.Sprint("g", w)}, outbox.Known{}, 3)
				for _, e := range got {
					if want := all[w][read[w]].ID; e.ID != want {
						x.fatalf("read beside writers: got %s, want %s next", e.ID, want)
					}
					read[w]++
				}
				x.delete(got...)
				left += each - read[w]
			}
			if left == 0 {
				break
			}
			if turn > 10_000 {
				x.fatalf("%d events were not read", left)
			}
			time.Sleep(time.Millisecond)
		}
		for range writers {
			<-done
		}
	}},
}

// patient reads until the group is settled.
func (x *exam) patient(g outbox.Group, k outbox.Known, limit int) []outbox.Entry {
	for range 1000 {
		es, err := x.Read(x.ctx, g, k, limit)
		if err == nil || errors.Is(err, outbox.ErrUnsettled) && len(es) > 0 {
			x.ordered(es)
			return es
		}
		if !errors.Is(err, outbox.ErrUnsettled) {
			x.fatalf("Read of %s: got error %v, want none or ErrUnsettled", g.Name, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	x.fatalf("Read of %s: ErrUnsettled a thousand times", g.Name)
	return nil
}

// complete expects a settled read of group g to have all its events.
func (x *exam) complete(k outbox.Known, numbers ...int) {
	x.same(x.patient(outbox.Group{Name: "g"}, k, 1000), "g", fmt.Sprintf("known %+v", k), numbers...)
}

// prefix expects the first events of group g, at most most of them.
func (x *exam) prefix(es []outbox.Entry, most int) {
	var buf bytes.Buffer
	for i, e := range es {
		if want := fmt.Sprintf("g/v%d", i+1); e.ID != want || i >= most {
			fmt.Fprintf(&buf, " %s", e.ID)
		}
	}
	if buf.Len() > 0 {
		x.fatalf("Read: got%s among %v, want the first %d or fewer", buf.String(), seqs(es), most)
	}
}
