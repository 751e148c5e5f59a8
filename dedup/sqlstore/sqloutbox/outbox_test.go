package sqloutbox

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/sqlstore"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
)

// What is added is read again, with all that an event has, and deleted after that.
func TestAddReadDelete(t *testing.T) {
	eachOutbox(t, func(t *testing.T, b *bed, o *Outbox) {
		want := []fifo.Event{
			{ID: "ord-42/v3 \U0001F4E6 ", Group: "ord-42!~", Body: "{\"a\": \"\\é\u2028'\U0001F4E6\"}\r\n\t", Type: "order.päid", TraceHeader: "Root=1-5759e988-bd862e3fe1be46a994272793", Attributes: map[string]sqsonce.Attribute{
				"s": {Type: "String", String: "é\"\n"}, "n": {Type: "Number.int", String: "42"}, "b": {Type: "Binary", Binary: []byte{0, 255, '\''}},
			}},
			{ID: strings.Repeat("é", 3000), Group: "ord-42!~", Body: strings.Repeat("x", 900<<10)},
		}
		b.commit(t, o, want...)
		b.commit(t, b.named(t, "box2"), event("ord-42!~", "other"), event("z", "other"))
		got := read(t, o, "ord-42!~", 10)
		if len(got) != len(want) {
			t.Fatalf("read %d events, want %d", len(got), len(want))
		}
		for i := range want {
			if diff := cmp.Diff(want[i], got[i].Event, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("event %d (-want +got):\n%s", i, diff)
			}
			if got[i].Source != source || got[i].Seq < 1 || got[i].Age < 0 || got[i].Age > time.Minute || got[i].Parked != 0 || got[i].Reason != "" {
				t.Errorf("event %d: got %+v", i, got[i])
			}
		}
		if got[0].Seq >= got[1].Seq {
			t.Errorf("numbers %d and %d, want them in the slice's order", got[0].Seq, got[1].Seq)
		}
		if left, err := o.Delete(t.Context(), got); err != nil || len(left) > 0 {
			t.Fatalf("Delete: %d left, %v", len(left), err)
		}
		if left := read(t, o, "ord-42!~", 10); len(left) > 0 {
			t.Errorf("after Delete: %s", ids(left))
		}
		if left, err := o.Delete(t.Context(), got); err != nil || len(left) > 0 {
			t.Errorf("Delete of what is gone: %d left, %v", len(left), err)
		}
		if other := read(t, b.named(t, "box2"), "ord-42!~", 10); ids(other) != " other" {
			t.Errorf("another outbox has%s, want other", ids(other))
		}
	})
}

// A number alone is not the event: another ID, another group, another outbox.
func TestDeleteNamesTheEvent(t *testing.T) {
	eachOutbox(t, func(t *testing.T, b *bed, o *Outbox) {
		b.commit(t, o, event("g", "a"), event("g", "b"))
		es := read(t, o, "g", 10)
		for name, change := range map[string]func(*outbox.Entry){
			"ID":    func(e *outbox.Entry) { e.ID = "A" },
			"blank": func(e *outbox.Entry) { e.ID = "a " },
			"group": func(e *outbox.Entry) { e.Group = "h" },
			"seq":   func(e *outbox.Entry) { e.Seq += 1000 },
		} {
			e := es[0]
			change(&e)
			if left, err := o.Delete(t.Context(), []outbox.Entry{e}); err != nil || len(left) > 0 {
				t.Errorf("%s: %d left, %v", name, len(left), err)
			}
		}
		if left, err := b.named(t, "other").Delete(t.Context(), es); err != nil || len(left) > 0 {
			t.Errorf("by another outbox: %d left, %v", len(left), err)
		}
		if got := ids(read(t, o, "g", 10)); got != " a b" {
			t.Errorf("left%s, want a b", got)
		}
		// A late delete of an earlier run of events is not one of a range.
		must.Get(o.Delete(t.Context(), es[1:]))(t)
		if got := ids(read(t, o, "g", 10)); got != " a" {
			t.Errorf("after the delete of b:%s, want a", got)
		}
	})
}

// A claim names its groups once each, those that have events, and ends with its row. The suite shows the rest.
func TestClaim(t *testing.T) {
	eachBed(t, func(t *testing.T, b *bed) {
		if b.Dialect.OneWriter() {
			t.Skip("there are no claims: TestClaimOnSQLite")
		}
		one, two := b.outbox(t), b.outbox(t)
		for _, g := range []string{"a", "b"} {
			b.commit(t, one, events(g, 2)...)
		}
		claim := func(o *Outbox, lease time.Duration, want string, groups ...string) {
			t.Helper()
			got, err := o.Claim(t.Context(), groups, lease)
			if err != nil || strings.Join(got, "") != want {
				t.Fatalf("Claim %v: got %v, %v, want %q", groups, got, err, want)
			}
		}
		claim(one, time.Hour, "ab", "b", "a", "gone", "a")
		claim(two, time.Hour, "", "a", "b")
		// The server's clock steps back by four hours. The claims of before wait for none of them.
		b.exec(t, "UPDATE {outbox} SET lease_until = lease_until + 14400000 WHERE lease_until > 0")
		claim(two, time.Hour, "ab", "a", "b")
		claim(one, time.Hour, "", "a", "b")
		// The claim ends with its row.
		must.Get(one.Delete(t.Context(), read(t, one, "b", 1)))(t)
		claim(two, time.Hour, "b", "b")
		if _, err := one.Claim(t.Context(), []string{"a"}, 0); !isField(err, "lease") {
			t.Errorf("lease 0: got error %v, want a OptionError", err)
		}
	})
}

// Claims of visits that did not end well are forgotten when they are over.
func TestClaimsAreForgotten(t *testing.T) {
	t.Parallel()
	c := claims{}
	for i := range 3 * maxClaims {
		group := strconv.Itoa(i)
		c.add([]head{{group: group, first: 1, seen: 2}}, []string{group}, "token", time.Now().Add(-time.Second))
	}
	c.add([]head{{group: "live", first: 1, seen: 7}, {group: "other", first: 1}}, []string{"live"}, "token", time.Now().Add(time.Hour))
	if n := len(c.all); n > maxClaims+1 || c.seen("live") != 7 || len(c.of([]string{"live", "live", "other"})) != 1 {
		t.Errorf("%d claims are kept, want at most %d and the live one", n, maxClaims+1)
	}
}

func TestClaimOnSQLite(t *testing.T) {
	t.Parallel()
	b := newBed(t, "SQLite")
	for range 2 {
		got, err := b.outbox(t).Claim(t.Context(), []string{"b", "a"}, time.Second)
		if err != nil || strings.Join(got, "") != "ba" {
			t.Errorf("Claim: %v, %v, want all", got, err)
		}
	}
}

func isField(err error, field string) bool { return slices.Contains(testaws.Fields(err), field) }

func isProblem(err, problem error) bool {
	_, ok := errors.AsType[*sqlstore.DatabaseError](err)
	return ok && errors.Is(err, problem) && errors.Is(err, outbox.ErrDenied) == (problem != sqlstore.ErrReadOnly)
}
