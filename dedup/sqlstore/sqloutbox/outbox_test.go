package sqloutbox

import (
	"errors"
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
)

// What is added is read again, with all that an event has, and deleted after that.
func TestAddReadDelete(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		o := b.outbox(t)
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
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		o := b.outbox(t)
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
		if _, err := o.Delete(t.Context(), es[1:]); err != nil {
			t.Fatal(err)
		}
		if got := ids(read(t, o, "g", 10)); got != " a" {
			t.Errorf("after the delete of b:%s, want a", got)
		}
	})
}

func TestGroups(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		o := b.outbox(t)
		b.commit(t, b.named(t, "a"), event("a0", "1"))
		b.commit(t, b.named(t, "z"), event("a1", "1"))
		want := map[string]int64{}
		for _, g := range []string{"A", "a", "a!", "a~", "B", "~"} {
			b.commit(t, o, events(g, 3)...)
			es := read(t, o, g, 10)
			want[g] = es[2].Seq
			if g == "a" {
				if err := o.Park(t.Context(), es[0], outbox.Halt, "why"); err != nil {
					t.Fatal(err)
				}
			}
		}
		b.exec(t, "UPDATE {outbox} SET created_at = created_at - 60000 WHERE id = 'B-1'")
		for _, limit := range []int{1, 2, 3, 6, 100} {
			var all []outbox.Group
			for next, calls := "", 0; ; calls++ {
				found, after, err := o.Groups(t.Context(), next, limit)
				if err != nil || len(found) > limit || calls > 10 {
					t.Fatalf("Groups: %d groups, %v", len(found), err)
				}
				all = append(all, found...)
				if next = after; next == "" {
					break
				}
			}
			names := ""
			for _, g := range all {
				names += " " + g.Name
				if g.Last != want[g.Name] {
					t.Errorf("group %s: last %d, want %d", g.Name, g.Last, want[g.Name])
				}
				if wantParked := map[bool]outbox.Policy{true: outbox.Halt}[g.Name == "a"]; g.Parked != wantParked {
					t.Errorf("group %s: parked %d, want %d", g.Name, g.Parked, wantParked)
				}
				if old := g.Age >= time.Minute; old != (g.Name == "B") {
					t.Errorf("group %s: age %v", g.Name, g.Age)
				}
			}
			if names != " A B a a! a~ ~" {
				t.Errorf("limit %d: groups%s", limit, names)
			}
		}
	})
}

// Claims exclude one another between stores, end by time, by Unclaim and with the row.
func TestClaim(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		if b.kind == "SQLite" {
			t.Skip("SQLite has no claims: TestClaimOnSQLite")
		}
		one, two := b.outbox(t), b.outbox(t)
		for _, g := range []string{"a", "b", "c"} {
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
		claim(two, time.Hour, "c", "a", "b", "c")
		claim(one, time.Hour, "", "a", "b", "c")
		if err := two.Unclaim(t.Context(), []string{"a", "b"}); err != nil {
			t.Fatal(err)
		}
		claim(two, time.Hour, "", "a", "b")
		if err := one.Unclaim(t.Context(), []string{"a", "c"}); err != nil {
			t.Fatal(err)
		}
		claim(two, time.Hour, "a", "a", "b", "c")
		// The claim ends with its row.
		if _, err := one.Delete(t.Context(), read(t, one, "b", 1)); err != nil {
			t.Fatal(err)
		}
		claim(two, time.Hour, "b", "b")
		// A store that comes back late does not end the claim that another has since.
		b.exec(t, "UPDATE {outbox} SET lease_until = 1")
		claim(one, time.Hour, "c", "c")
		if err := two.Unclaim(t.Context(), []string{"c"}); err != nil {
			t.Fatal(err)
		}
		claim(two, time.Hour, "", "c")
		// The lease is by the database's clock.
		claim(one, 50*time.Millisecond, "a", "a")
		for end := time.Now().Add(10 * time.Second); ; {
			got, err := two.Claim(t.Context(), []string{"a"}, time.Hour)
			if err != nil || time.Now().After(end) {
				t.Fatalf("Claim after the lease: %v, %v", got, err)
			}
			if len(got) == 1 {
				break
			}
		}
		if _, err := one.Claim(t.Context(), []string{"a"}, 0); !isField(err, "lease") {
			t.Errorf("lease 0: got error %v, want a FieldError", err)
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

func TestPark(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		o := b.outbox(t)
		b.commit(t, o, events("g", 4)...)
		es := read(t, o, "g", 10)
		reason := strings.Repeat("é", 200) + "\x00"
		for _, err := range []error{
			o.Park(t.Context(), es[0], outbox.Skip, reason),
			o.Park(t.Context(), es[0], outbox.Halt, "second mark"),
			o.Park(t.Context(), es[1], outbox.Halt, "why"),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := o.Park(t.Context(), es[2], 0, ""); !isField(err, "policy") {
			t.Errorf("no policy: %v", err)
		}
		if _, err := o.Delete(t.Context(), es[3:]); err != nil {
			t.Fatal(err)
		}
		if err := o.Park(t.Context(), es[3], outbox.Halt, "late"); err != nil {
			t.Errorf("Park of an event that is gone: %v", err)
		}
		got := read(t, o, "g", 10)
		if ids(got) != " g-1 g-2 g-3" || got[0].Parked != outbox.Skip || got[0].Reason != strings.Repeat("é", 128) || got[1].Parked != outbox.Halt || got[1].Reason != "why" || got[2].Parked != 0 {
			t.Errorf("read %+v", got)
		}
		parked, err := o.Parked(t.Context(), 10)
		if err != nil || ids(parked) != " g-1 g-2" {
			t.Errorf("Parked:%s, %v", ids(parked), err)
		}
		if parked, err = o.Parked(t.Context(), 1); err != nil || ids(parked) != " g-1" {
			t.Errorf("Parked, at most one:%s, %v", ids(parked), err)
		}
		other := es[1]
		other.ID = "x"
		for _, f := range []func(outbox.Entry) error{
			func(e outbox.Entry) error { return o.Unpark(t.Context(), e) },
			func(e outbox.Entry) error { return o.Discard(t.Context(), e) },
		} {
			if err := f(es[2]); !errors.Is(err, outbox.ErrNotParked) {
				t.Errorf("not parked: %v", err)
			}
			if err := f(es[3]); !errors.Is(err, outbox.ErrNotFound) {
				t.Errorf("gone: %v", err)
			}
			if err := f(other); !errors.Is(err, outbox.ErrNotFound) {
				t.Errorf("another event: %v", err)
			}
		}
		if err := errors.Join(o.Unpark(t.Context(), es[0]), o.Discard(t.Context(), es[1])); err != nil {
			t.Fatal(err)
		}
		got = read(t, o, "g", 10)
		if ids(got) != " g-1 g-3" || got[0].Parked != 0 || got[0].Reason != "" {
			t.Errorf("after Unpark and Discard: %+v", got)
		}
	})
}

func isField(err error, field string) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			if isField(e, field) {
				return true
			}
		}
	}
	e, ok := errors.AsType[*sqsonce.FieldError](err)
	return ok && e.Field == field
}

func isProblem(err, problem error) bool {
	_, ok := errors.AsType[*sqlstore.DatabaseError](err)
	return ok && errors.Is(err, problem) && errors.Is(err, outbox.ErrDenied) == (problem != sqlstore.ErrReadOnly)
}
