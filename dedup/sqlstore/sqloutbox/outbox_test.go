package sqloutbox

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
)

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
	_, ok := errors.AsType[*sqldb.DatabaseError](err)
	return ok && errors.Is(err, problem) && errors.Is(err, outbox.ErrDenied) == (problem != sqldb.ErrReadOnly)
}
