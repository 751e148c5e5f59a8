package dynamostore

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/counting"
	"github.com/sqsonce/sqsonce/internal/golden"
)

// goldenBed is a bed with a ledger.
func goldenBed(t *testing.T) *bed {
	t.Helper()
	b := newBed(t)
	b.createLedger()
	return b
}

var randomText = regexp.MustCompile(`"[A-Z2-7]{26}(@[\w-]{1,32}\.[A-Z2-7]{8})?"`) // of crypto/rand: owners, with their process, and tokens

// checkGolden compares the items that write leaves with those of the newest golden version: each bubble begins at the same
// time. Then read gets those of every version.
func checkGolden(t *testing.T, name string, write, read func(b *bed)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := goldenBed(t)
		write(b)
		var items []json.RawMessage
		for _, item := range b.srv.Items(testTable) {
			items = append(items, randomText.ReplaceAll(item, []byte(`"RANDOM"`)))
		}
		golden.Check(t, name, items)
	})
	golden.Each(t, name, func(t *testing.T, items []json.RawMessage) {
		synctest.Test(t, func(t *testing.T) {
			b := goldenBed(t)
			for _, item := range items {
				if got := (packet{op: "PutItem", body: `{"TableName":"` + testTable + `","Item":` + string(item) + `}`}).send(b.srv); got != "granted" {
					t.Fatalf("PutItem %s: %s", item, got)
				}
			}
			read(b)
		})
	})
}

// The records of single requests.
func TestGolden(t *testing.T) {
	checkGolden(t, "items.json", func(b *bed) {
		golden.WriteRecords(b.T, b.store())
	}, func(b *bed) {
		golden.CheckRecords(b.T, b.store(), func(_ string, by time.Duration) { time.Sleep(by) })
	})
}

// The records of statements in batches.
func TestGoldenBatch(t *testing.T) {
	const completed = 2 // of the events; the other one is in progress
	checkGolden(t, "batch.json", func(b *bed) {
		s := b.storeWithPeer()
		begun := len(b.srv.Calls())
		leases, errs := acquireAll(b.Context(), s, claimsOf(completed+1))
		must.Do(b, errors.Join(append(errs, completeAll(b.Context(), s, leases[:completed]))...))
		if got := b.ops(begun); !slices.Equal(got, []string{batchCall, batchCall}) {
			b.Errorf("calls: got %v, want batches only", got)
		}
	}, func(b *bed) {
		s, claims := b.store(), claimsOf(completed+1)
		for i := range claims {
			claims[i].Owner = "second"
			g, err := s.Acquire(b.Context(), claims[i])
			want := dedup.VerdictCompleted
			if i == completed {
				want = dedup.VerdictInProgress
			}
			if g.Verdict != want || g.Foreign || time.Until(g.Until) > 2*lease {
				b.Errorf("Acquire of %q: got %+v and error %v, want %s", claims[i].Key, g, err, want)
			}
		}
		busy := claims[completed]
		before, err := s.Inspect(b.Context(), busy.Key)
		if err != nil || before.Owner != "owner 2" || before.ReceiveCount != 1 {
			b.Errorf("Inspect: got %+v and error %v, want the golden record", before, err)
		}
		time.Sleep(2 * lease)
		if l := b.acquire(s, busy); !l.Takeover || l.Fence <= before.Fence {
			b.Errorf("record in progress whose lease has ended: got %+v, want a takeover and a fence above %d", l, before.Fence)
		}
	})
}

// The record of an inbox's transaction.
func TestGoldenInbox(t *testing.T) {
	inbox := func(b *bed) sqsonce.Handler {
		return b.inbox(b.store(), func(o *dedup.Options) { o.PayloadHash = func(m *sqsonce.Message) string { return "hash of " + m.Body } }).Handler(bookAlice)
	}
	checkGolden(t, "inbox.json", func(b *bed) {
		must.Do(b, inbox(b)(b.Context(), order(1)))
		b.balance("10")
	}, func(b *bed) {
		if err := inbox(b)(b.Context(), order(1)); err != nil {
			b.Errorf("second delivery: got error %v, want nil", err)
		}
		other := order(1)
		other.Body = "another"
		if err := inbox(b)(b.Context(), other); !errors.Is(err, dedup.ErrPayloadMismatch) {
			b.Errorf("another payload: got error %v, want ErrPayloadMismatch", err)
		}
		b.balance("") // nothing is booked
		time.Sleep(30 * 24 * time.Hour)
		if err := inbox(b)(b.Context(), order(1)); err != nil {
			b.Errorf("delivery after the end of retention: got error %v, want nil", err)
		}
		b.balance("10")
	})
}

// The item of a counter's key.
func TestGoldenCounter(t *testing.T) {
	rate := counting.Take{Key: "payments#*", N: 3, Step: time.Second, Burst: 1, Ahead: time.Minute}
	checkGolden(t, "counter.json", func(b *bed) {
		c := NewCounter(b.store())
		must.Get(c.Take(b.Context(), rate))(b)
		must.Get(c.Line(b.Context(), rate.Key, 5, time.Second))(b)
	}, func(b *bed) {
		c := NewCounter(b.store())
		rate := rate
		rate.Waited = true
		if g, err := c.Take(b.Context(), rate); err != nil || g.N != 3 || g.From < 3*time.Second || g.From > 5*time.Second {
			b.Errorf("Take: got %+v and error %v, want 3 tokens behind 3", g, err)
		}
		if first, err := c.Line(b.Context(), rate.Key, 1, time.Second); err != nil || first < 8*time.Second || first > 10*time.Second {
			b.Errorf("Line: got %s and error %v, want a place behind 3 tokens and 5 messages", first, err)
		}
	})
}
