package dynamostore

import (
	"testing"
	"time"
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
	c.learn(at(sent), at(received), date)
	return c
}

func TestTakerIsNeverAhead(t *testing.T) {
	t.Parallel()
	const g = int64(2000)
	for _, c := range []struct {
		name  string
		clock *clock
		now   moment
		want  int64
	}{
		{"before any answer it switches the time clauses off", newClock(time.Now), at(time.Hour), 0},
		{"anchored when the reply came", learned(0, 5*time.Second, day), at(5 * time.Second), day - g},
		{"goes on, less drift", learned(0, 0, day), at(10 * time.Second), day + 9_990 - g},
		{"suspended: the monotonic clock stood still", learned(0, 0, day), apart(time.Hour, time.Second), day + 999 - g},
		{"frozen: the wall clock stood still", learned(0, 0, day), apart(time.Second, time.Hour), day + 999 - g},
		{"wall clock set back", learned(0, 0, day), apart(-time.Hour, time.Second), day - g},
		{"wall clock set forward", learned(0, 0, day), apart(24*time.Hour, time.Second), day + 999 - g},
	} {
		if got := c.clock.taker(c.now); got != c.want {
			t.Errorf("%s: got %d, want %d (%d ms off)", c.name, got, c.want, got-c.want)
		}
	}
}

func TestHolderIsNeverBehind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		clock *clock
		now   moment
		want  int64
	}{
		{"before any answer it is the host's", newClock(time.Now), at(time.Hour), time.Hour.Milliseconds()},
		{"anchored when the request went, a Date's second later", learned(0, 5*time.Second, day), at(5 * time.Second), day + 6_005},
		{"goes on, with drift", learned(0, 0, day), at(10 * time.Second), day + 11_010},
		{"suspended: the monotonic clock stood still", learned(0, 0, day), apart(time.Hour, time.Second), day + 3_604_600},
		{"frozen: the wall clock stood still", learned(0, 0, day), apart(time.Second, time.Hour), day + 3_604_600},
		{"wall clock set back", learned(0, 0, day), apart(-time.Hour, time.Second), day + 2_001},
		{"rounded up", learned(0, 0, day), at(time.Microsecond), day + 1_001},
	} {
		if got := c.clock.holder(c.now); got != c.want {
			t.Errorf("%s: got %d, want %d (%d ms off)", c.name, got, c.want, got-c.want)
		}
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
				for range 5 {
					pass(1234 * time.Millisecond)
					sent := apart(wall, mono)
					pass(latency / 3)
					date := (day + server.Milliseconds()) / 1000 * 1000 // cut to the second
					pass(latency - latency/3)
					c.learn(sent, apart(wall, mono), date)
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

// A Date is cut to its second: the newest one may be less than an older one and the time since then.
func TestTakerKeepsTheBestBound(t *testing.T) {
	t.Parallel()
	c := learned(0, 0, day)
	before := c.taker(at(1900 * time.Millisecond))
	c.learn(at(1900*time.Millisecond), at(1900*time.Millisecond), day+1000)
	if got := c.taker(at(1900 * time.Millisecond)); got < before {
		t.Errorf("an answer put the taker's clock back from %d to %d", before, got)
	}
}

func TestConversionsAreSafe(t *testing.T) {
	t.Parallel()
	host := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c := newClock(func() time.Time { return host })
	if got, want := c.late(host.Add(time.Minute).UnixMilli()), host.Add(time.Minute+takeoverMargin+time.Millisecond); !got.Equal(want) {
		t.Errorf("before any answer: end of another owner's lease: got %s, want the host's own time with the takeover margin, %s", got, want)
	}
	c.learn(c.look(), c.look(), day)
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
