package dynamostore

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// at is a moment at which both of the host's clocks have counted the same time.
func at(d time.Duration) moment { return apart(d, d) }

func apart(wall, mono time.Duration) moment {
	return moment{host: time.UnixMilli(0).Add(wall), wall: wall, mono: mono}
}

// day is a server's Date, far from any host's clock.
const day = int64(1_700_000_000_000)

func learned(sent, received time.Duration, date int64) *clock {
	c := newClock(time.Now)
	c.learn(sending{at(sent), 1}, at(received), time.UnixMilli(date))
	return c
}

// The taker is never ahead of the server's time, and the holder is never behind it.
func TestTakerAndHolder(t *testing.T) {
	t.Parallel()
	const g = int64(2000)
	hour := time.Hour.Milliseconds()
	for _, c := range []struct {
		name          string
		clock         *clock
		now           moment
		taker, holder int64
	}{
		{"before any answer time clauses are off, and the holder's is the host's", newClock(time.Now), at(time.Hour), 0, hour},
		{"anchored when the reply came and when the request went, a Date's second later", learned(0, 5*time.Second, day), at(5 * time.Second), day - g, day + 6_005},
		{"goes on, less drift and with it", learned(0, 0, day), at(10 * time.Second), day + 9_990 - g, day + 11_010},
		{"suspended: the monotonic clock stood still", learned(0, 0, day), apart(time.Hour, time.Second), day + 999 - g, day + 3_604_600},
		{"frozen: the wall clock stood still", learned(0, 0, day), apart(time.Second, time.Hour), day + 999 - g, day + 3_604_600},
		{"wall clock set back", learned(0, 0, day), apart(-time.Hour, time.Second), day - g, day + 2_001},
		{"wall clock set forward", learned(0, 0, day), apart(24*time.Hour, time.Second), day + 999 - g, day + 86_487_400},
		{"rounded down and up", learned(0, 0, day), at(time.Microsecond), day - g, day + 1_001},
	} {
		if taker, holder := c.clock.taker(c.now), c.clock.holder(c.now); taker != c.taker || holder != c.holder {
			t.Errorf("%s: got %d and %d, want %d and %d", c.name, taker, holder, c.taker, c.holder)
		}
	}
}

// Each answer sets the clock back, and an event that starts later has a greater fence all the same. After a wrong Date fences are a second
// ahead at most.
func TestFencesTellWhichStartedLast(t *testing.T) {
	t.Parallel()
	c, last := learned(0, 0, day), int64(0)
	for n, date := range []int64{day, day, day + time.Hour.Milliseconds(), day, day} {
		m := at(time.Duration(n) * 200 * time.Millisecond)
		f, most := c.fence(m), c.holder(m)+1000
		if n < 4 && f <= last || f > most {
			t.Errorf("start %d has the fence %d, the one before has %d, and the clock says %d", n, f, last, most-1000)
		}
		last = f
		c.learn(sending{m, uint64(n + 2)}, m, time.UnixMilli(date))
	}
}

// For every behaviour of the host's clocks, as long as one of them counts the time that passes, and for every latency.
func TestClocksEncloseTheServers(t *testing.T) {
	t.Parallel()
	for _, latency := range []time.Duration{0, 10 * time.Millisecond, 900 * time.Millisecond, 20 * time.Second} {
		for _, jump := range []time.Duration{-48 * time.Hour, -time.Second, 0, time.Second, 48 * time.Hour} {
			for _, suspended := range []time.Duration{0, time.Minute, 30 * time.Hour} {
				c := newClock(time.Now)
				server, wall, mono := time.Duration(0), time.Duration(0), time.Duration(0)
				pass := func(d time.Duration) { server, wall, mono = server+d, wall+d, mono+d }
				check := func(when string) {
					t.Helper()
					m, now := apart(wall, mono), day+server.Milliseconds()
					if got := c.taker(m); got > now-takeoverMargin.Milliseconds() {
						t.Errorf("latency %s, jump %s, suspended %s, %s: the taker is %d ms ahead", latency, jump, suspended, when, got-now+takeoverMargin.Milliseconds())
					}
					if got := c.holder(m); got < now {
						t.Errorf("latency %s, jump %s, suspended %s, %s: the holder is %d ms behind", latency, jump, suspended, when, now-got)
					}
				}
				for n := range 5 {
					pass(1234 * time.Millisecond)
					sent := sending{apart(wall, mono), uint64(n + 1)}
					pass(latency / 3)
					date := (day + server.Milliseconds()) / 1000 * 1000 // cut to the second
					pass(latency - latency/3)
					c.learn(sent, apart(wall, mono), time.UnixMilli(date))
					check("after the answer")
					pass(4321 * time.Millisecond)
					server, wall = server+suspended, wall+suspended // the monotonic clock stands still
					check("after the suspend")
					if suspended == 0 {
						wall += jump // both at once cannot be detected by any clock
						check("after the jump")
					}
				}
			}
		}
	}
}

// What the newest answer says counts, and not the greatest Date.
func TestNewestAnswerTeaches(t *testing.T) {
	t.Parallel()
	const g, hours = int64(2000), int64(3 * 3_600_000)
	for _, c := range []struct {
		name   string
		second sending // its answer comes as the second one
		date   int64
		want   int64 // the server's time, by that Date
	}{
		{"after a Date that was ahead", sending{at(time.Second), 2}, day - hours + 1000, day - hours + 1000},
		{"after a Date that was behind", sending{at(time.Second), 2}, day + hours, day + hours},
		{"an older answer arrives late", sending{at(-20 * time.Second), 0}, day - 20_000, day + 999},
		{"an older answer with a wrong Date", sending{at(-20 * time.Second), 0}, day + hours, day + 999},
	} {
		clock, now := learned(0, 0, day), at(time.Second)
		clock.learn(c.second, now, time.UnixMilli(c.date))
		if got := clock.taker(now); got != c.want-g {
			t.Errorf("%s: the taker's clock is %d ms off", c.name, got-c.want+g)
		}
		if got := clock.holder(now); got < c.want || got > c.want+2_005 {
			t.Errorf("%s: the holder's clock is %d ms off, want at most 1 s ahead and its own second", c.name, got-c.want)
		}
	}
}

func TestConversionsAreSafe(t *testing.T) {
	t.Parallel()
	host := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c := newClock(func() time.Time { return host })
	if got, want := c.late(host.Add(time.Minute).UnixMilli()), host.Add(time.Minute+takeoverMargin+time.Millisecond); !got.Equal(want) {
		t.Errorf("before any answer: end of another owner's lease: got %s, want the host's own time with the takeover margin, %s", got, want)
	}
	c.learn(c.send(), c.look(), time.UnixMilli(day))
	if got, want := c.early(day+60_000, unbounded), host.Add(59*time.Second); !got.Equal(want) {
		t.Errorf("end of an own lease: got %s, want %s", got, want)
	}
	if got, want := c.early(day+60_000, 10*time.Second), host.Add(10*time.Second); !got.Equal(want) {
		t.Errorf("end of an own lease of 10 s: got %s, want %s", got, want)
	}
	if got, want := c.late(day+60_000), host.Add(62*time.Second+time.Millisecond); !got.Equal(want) {
		t.Errorf("end of another owner's lease: got %s, want %s", got, want)
	}
}

// stranger stands before DynamoDB: while on, it answers every request by itself, as a proxy whose clock is wrong.
type stranger struct {
	to     http.RoundTripper
	header http.Header
	on     bool
}

func (p *stranger) RoundTrip(r *http.Request) (*http.Response, error) {
	if !p.on {
		return p.to.RoundTrip(r)
	}
	return &http.Response{
		StatusCode: http.StatusServiceUnavailable, Header: p.header, Request: r, Body: io.NopCloser(strings.NewReader("<html>")),
	}, nil
}

// The error page of a proxy whose clock is days ahead or behind: a live lease is not taken over, a completed record not
// acquired again, and a lease that is over is.
func TestOnlyDynamoDBTeachesTheClock(t *testing.T) {
	t.Parallel()
	for _, wrong := range []time.Duration{48 * time.Hour, -48 * time.Hour} {
		runBed(t, wrong.String(), func(t *testing.T, b *bed) {
			proxy := &stranger{to: b.srv, header: http.Header{"Date": {time.Now().Add(wrong).UTC().Format(http.TimeFormat)}}}
			s := must.Get(New(b.client(proxy), testTable))(t)
			other := b.store()
			live, done := claim("other"), claim("other")
			done.Key = "billing#done"
			b.acquire(other, live)
			b.complete(other, b.acquire(other, done))
			ask := func(key string) error {
				proxy.on = true
				if _, err := s.Inspect(t.Context(), testKey); !errors.Is(err, sqsonce.ErrUnavailable) {
					t.Fatalf("Inspect, answered by the proxy: got error %v, want ErrUnavailable", err)
				}
				proxy.on = false
				c := claim("taker")
				c.Key = key
				return second(granted.Lease(s.Acquire(t.Context(), c)))
			}
			for range 2 { // before the clock has a Date, and after it
				if err := ask(live.Key); !errors.Is(err, sqsonce.ErrInProgress) {
					t.Errorf("Acquire of a live lease: got error %v, want in progress", err)
				}
				if err := ask(done.Key); !isCompleted(err) {
					t.Errorf("Acquire of a completed record: got error %v, want completed", err)
				}
			}
			time.Sleep(lease + 5*time.Second)
			if err := ask(live.Key); err != nil {
				t.Errorf("Acquire after the lease: got error %v, want a lease", err)
			}
		})
	}
}

// withoutOptions is a wrapper that does not pass the options of a call on.
type withoutOptions struct{ Client }

func (c withoutOptions) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return c.Client.UpdateItem(ctx, in)
}

func (c withoutOptions) BatchExecuteStatement(ctx context.Context, in *dynamodb.BatchExecuteStatementInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
	return c.Client.BatchExecuteStatement(ctx, in)
}

func (c withoutOptions) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return c.Client.GetItem(ctx, in)
}

func (c withoutOptions) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return c.Client.DeleteItem(ctx, in)
}

func (c withoutOptions) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return c.Client.DescribeTable(ctx, in)
}

func (c withoutOptions) DescribeTimeToLive(ctx context.Context, in *dynamodb.DescribeTimeToLiveInput, _ ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	return c.Client.DescribeTimeToLive(ctx, in)
}

// stripped is a proxy that does not pass a header of the answers on.
func (b *bed) stripped(header string) Client {
	return b.client(transport(func(r *http.Request) (*http.Response, error) {
		resp, err := b.srv.RoundTrip(r)
		if err == nil {
			resp.Header.Del(header)
		}
		return resp, err
	}))
}

// Without DynamoDB's time leases do not end. Check and every acquire say so, whatever the record is, and leave no lease.
func TestAnswersWithoutTime(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]func(*bed) Client{
		"options dropped":    func(b *bed) Client { return withoutOptions{b.client(b.srv)} },
		"without Date":       func(b *bed) Client { return b.stripped("Date") },
		"without request ID": func(b *bed) Client { return b.stripped(requestID) },
	} {
		runBed(t, name, func(t *testing.T, b *bed) {
			live := claimsOf(4)
			live[0].ReceiveCount, live[1].ReceiveCount = 2, 2 // not batched
			other := b.store()
			for i, c := range []dedup.Claim{live[1], live[2]} {
				c.Owner = "other"
				if l := b.acquire(other, c); i == 1 {
					b.complete(other, l)
				}
			}
			s := must.Get(New(client(b), testTable))(t)
			s.peers.enter("peer", s.clock.look().host.Add(lease))
			// An SDK that retries by itself meets its own records.
			b.faults(fault.Rule{Op: batchCall, Nth: 1, Do: fault.LoseReply})
			_, acquired := acquireAll(t.Context(), s, live)
			for i, err := range acquired {
				b.settle(s, live[i], err)
			}
			for what, err := range map[string]error{
				"Check":                          s.Check(t.Context()),
				"Acquire, a new record":          acquired[0],
				"Acquire, a live record":         acquired[1],
				"Acquire, a completed record":    acquired[2],
				"Acquire, a new record, batched": acquired[3],
				"Delete of a live record":        s.Delete(t.Context(), live[1].Key),
			} {
				if kindOf(err) != misconfigured || errors.Is(err, dedup.ErrOutcomeUnknown) != strings.Contains(what, "new") || !strings.HasSuffix(err.Error(), errNoTime.Error()) {
					t.Errorf("%s: got error %v, want ErrMisconfigured, with what to do", what, err)
				}
			}
			for key, r := range b.records() {
				if r[attrOwner] != "other" && r[attrUntil] != "0" {
					t.Errorf("record %s: got %v, want no lease", key, r)
				}
			}
		})
	}
}
