package console

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/queues"
)

// series makes samples of one figure, five seconds apart.
func series(from time.Time, values ...float64) (all []sample) {
	for i, v := range values {
		s := newSample(from.Add(time.Duration(i) * sampleEvery))
		s.values[visibleNow] = v
		all = append(all, s)
	}
	return all
}

func TestPath(t *testing.T) {
	from := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	nan := math.NaN()
	later := series(from, 1, 2, 3)
	later[2].at = later[2].at.Add(time.Minute) // the computer slept
	for name, test := range map[string]struct {
		samples []sample
		want    string
	}{
		"none":                  {nil, ""},
		"one":                   {series(from, 5), "M0 50h0"},
		"nothing known":         {series(from, nan, nan), ""},
		"a line":                {series(from, 0, 5, 10), "M0 100h0L12 50L24 0"},
		"a gap":                 {series(from, 0, nan, 10), "M0 100h0M24 0h0"},
		"gaps at the ends":      {series(from, nan, 5, 10, nan), "M12 50h0L24 0"},
		"level":                 {series(from, 5, 5, 5, 5, 10), "M0 50h0L36 50L48 0"},
		"level, then a gap":     {series(from, 5, 5, 5, nan, 5), "M0 50h0L24 50M48 50h0"},
		"a gap in the times":    {later, "M0 90h0L12 80M168 70h0"},
		"older than the plot":   {series(from.Add(-sampleEvery), 5, 10), "M0 0h0"},
		"the clock put back":    {series(from.Add(time.Hour), 7), ""},
		"infinite and negative": {series(from, math.Inf(1), -1, 5), "M24 50h0"},
	} {
		if got := linePath(test.samples, visibleNow, from, 5*time.Minute, 10); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestTop(t *testing.T) {
	for most, want := range map[float64]float64{0: 1, 1: 1, 1.5: 2, 3: 5, 7: 10, 10: 10, 11: 20, 371: 500, 0.03: 0.05, 9.2e18: 1e19} {
		if got := depthPlot.top(most); math.Abs(got-want) > want*1e-9 {
			t.Errorf("%g: got %g, want %g", most, got, want)
		}
	}
	for most, want := range map[float64]float64{0: 10, 11: 30, 3601: 3 * 3600, 10 * day: 14 * day, 15 * day: 2e6} {
		if got := agePlot.top(most); got != want {
			t.Errorf("age %g: got %g, want %g", most, got, want)
		}
	}
}

func TestDraw(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 10, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		samples   []sample
		top, desc string
		span      time.Duration
		rows      int
	}{
		"no sample":  {nil, "1", "visible: no sample", 5 * time.Minute, 0},
		"one":        {series(now, 40), "50", "visible: 40 now, 40 at least, 40 at most", 5 * time.Minute, 1},
		"zero":       {series(now.Add(-time.Minute), 0, 0), "1", "visible: 0 now, 0 at least, 0 at most", 5 * time.Minute, 1},
		"not by now": {series(now.Add(-time.Minute), 3, math.NaN()), "5", "visible: not known now, 3 at least, 3 at most", 5 * time.Minute, 1},
		"huge":       {series(now, 9.2e18), "1e+19", "visible: 9.2e+18 now", 5 * time.Minute, 1},
		"ten minutes": {
			series(now.Add(-10*time.Minute), make([]float64, 121)...), "1", "From 11:55:00 UTC to 12:10:00 UTC", 15 * time.Minute, 11,
		},
		"an hour": {series(now.Add(-time.Hour+sampleEvery), make([]float64, mostSamples)...), "1", "From 11:10:00 UTC", time.Hour, 61},
	} {
		p := depthPlot.draw("q0", test.samples, now)
		if p.Top != test.top || !strings.Contains(p.Desc, test.desc) || p.To.Sub(p.From) != test.span || len(p.Rows) != test.rows {
			t.Errorf("%s: got top %s, %q, %s, %d rows", name, p.Top, p.Desc, p.To.Sub(p.From), len(p.Rows))
		}
		for _, l := range p.Lines {
			for _, bad := range []string{"NaN", "Inf", "e+"} {
				if strings.Contains(l.Path, bad) {
					t.Errorf("%s: the path of %s has %s: %s", name, l.Name, bad, l.Path)
				}
			}
		}
		if p.Lines[1].Path != "" || p.Lines[1].Now != "not known" {
			t.Errorf("%s: a figure that has no sample is drawn: %+v", name, p.Lines[1])
		}
	}
	rows := depthPlot.draw("q0", series(now, 1200, math.NaN()), now).Rows
	if len(rows) != 1 || rows[0].Values[0] != "not known" {
		t.Errorf("got %v: a row is the last sample of its minute", rows)
	}
}

// A table goes with each drawing, and neither needs the colours.
func TestPlotsOnPages(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Workers = []string{"http://127.0.0.1:1"} })
	f.sampler.queues["orders"].add(series(time.Now(), 1234)[0])
	body := f.has("/fragment/queues?queue=orders", "visible: 1,234", `role="img"`, `<desc id="q0-depth-desc">From `, "<td class=\"n\">1,234</td>", "M720 ")
	if svg, tables := strings.Count(body, `role="img"`), strings.Count(body, "<details"); svg != 3 || tables != svg {
		t.Errorf("%d drawings and %d tables, want 3: depth, dead letters, rates", svg, tables)
	}
	if strings.Contains(body, "s-1") {
		t.Error("the queue that was not chosen is plotted too")
	}
	if w := f.get("/?queue=none"); w.Code != 404 {
		t.Errorf("another queue: got %d", w.Code)
	}
}

// What is said is never later than the loss: a standard queue's retention counts from the send, the metric from the move.
func TestLoss(t *testing.T) {
	const hour = time.Hour
	now := time.Now().Round(0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	standard := Queue{Name: "orders", URL: "u", DLQName: "orders-dlq", DLQURL: "d"}
	fifo := Queue{Name: "jobs.fifo", URL: "u", DLQName: "jobs-dlq.fifo", DLQURL: "d"}
	// The source keeps messages for 4 days, the dead-letter queue for 14.
	state := func(change func(*queueState)) queueState {
		s := queueState{
			Main: queues.Counts{Retention: 96 * hour}, Dead: queues.Counts{Visible: 3, Retention: 336 * hour}, At: now,
			Ages: ages{Read: true, Dead: queues.Age{Age: 24 * hour, At: ago(time.Minute)}},
		}
		if change != nil {
			change(&s)
		}
		return s
	}
	look := lookFacts{asOf: ago(hour), complete: true, lostAt: now.Add(100 * hour)}
	denied := errors.New("denied")
	for name, test := range map[string]struct {
		queue  Queue
		change func(*queueState)
		look   lookFacts
		metric error
		want   loss // Why: a part of it
	}{
		"no dead-letter queue": {queue: Queue{Name: "orders", URL: "u"}, want: loss{None: true}},
		"not read yet":         {queue: standard, change: func(s *queueState) { s.At = time.Time{} }, want: loss{Why: "not answered yet"}},
		"no message":           {queue: standard, change: func(s *queueState) { s.Dead.Visible = 0 }, want: loss{None: true}},
		"no message then":      {queue: standard, change: func(s *queueState) { s.Dead.Visible, s.Err = 0, denied }, want: loss{Why: "not read since"}},
		"all in flight":        {queue: standard, change: func(s *queueState) { s.Dead.Visible, s.Dead.InFlight = 0, 1 }, want: loss{At: ago(time.Minute).Add(216 * hour)}},
		// A day in the dead-letter queue, and up to four in the source before.
		"metric":                    {queue: standard, want: loss{At: ago(time.Minute).Add((336 - 96 - 24) * hour)}},
		"metric of a FIFO queue":    {queue: fifo, want: loss{At: ago(time.Minute).Add((336 - 24) * hour)}}, // it counts from the move
		"retentions that are equal": {queue: standard, change: func(s *queueState) { s.Main.Retention = 336 * hour }, want: loss{At: ago(time.Minute).Add(-24 * hour)}},
		"several sources":           {queue: standard, change: func(s *queueState) { s.Ages.Shared = true }, want: loss{At: ago(time.Minute).Add(-24 * hour)}},
		"sources not known":         {queue: standard, change: func(s *queueState) { s.Ages.SharedErr = denied }, want: loss{Why: "cannot be listed: denied"}},
		"sources not read":          {queue: standard, change: func(s *queueState) { s.Ages = ages{} }, want: loss{Why: "not answered yet"}},
		"no metric":                 {queue: standard, change: func(s *queueState) { s.Ages.Dead = queues.Age{} }, want: loss{Why: "no age"}},
		"metric denied":             {queue: standard, change: func(s *queueState) { s.Ages.Dead = queues.Age{} }, metric: denied, want: loss{Why: "CloudWatch gives no ages"}},
		// The newest value was right when it was read.
		"metric denied by now": {queue: standard, metric: denied, want: loss{At: ago(time.Minute).Add(216 * hour)}},

		"look":                  {queue: standard, look: look, want: loss{At: look.lostAt, Exact: true, AsOf: look.asOf}},
		"look, no metric":       {queue: standard, change: func(s *queueState) { s.Ages.Dead = queues.Age{} }, look: look, want: loss{At: look.lostAt, Exact: true, AsOf: look.asOf}},
		"look that missed some": {queue: standard, look: lookFacts{asOf: ago(hour), lostAt: now.Add(100 * hour)}, want: loss{At: now.Add(100 * hour), AsOf: ago(hour)}},
		"look that missed some, metric is worse": {queue: standard, look: lookFacts{asOf: ago(hour), lostAt: now.Add(300 * hour)}, want: loss{
			At: ago(time.Minute).Add(216 * hour), AsOf: ago(hour)}},
		"look that missed some, no metric": {
			queue: standard, change: func(s *queueState) { s.Ages.Dead = queues.Age{} }, look: lookFacts{asOf: ago(hour), lostAt: now.Add(100 * hour)},
			want: loss{Why: "no age", AsOf: ago(hour)},
		},
		// Since the look one may have come that had waited for four days.
		"look that is outlived": {
			queue: standard, change: func(s *queueState) { s.Ages.Dead = queues.Age{} }, look: lookFacts{ago(hour), true, now.Add(300 * hour)},
			want: loss{At: ago(hour).Add(240 * hour)},
		},
		"look at what is gone": {queue: standard, look: lookFacts{ago(9 * hour), true, ago(hour)}, want: loss{At: ago(time.Minute).Add(216 * hour)}},
		"look at nothing":      {queue: standard, look: lookFacts{asOf: ago(hour), complete: true}, want: loss{At: ago(time.Minute).Add(216 * hour)}},
		"look, sources not known": {
			queue: standard, change: func(s *queueState) { s.Ages.SharedErr = denied }, look: look, want: loss{Why: "denied", AsOf: look.asOf},
		},
		"look, several sources": {queue: standard, change: func(s *queueState) { s.Ages.Shared = true }, look: look, want: loss{At: ago(time.Minute).Add(-24 * hour), AsOf: look.asOf}},
		"look at a FIFO queue":  {queue: fifo, look: look, want: loss{At: look.lostAt, AsOf: look.asOf}},
	} {
		got := lossOf(test.queue, state(test.change), test.look, test.metric, now)
		if !strings.Contains(got.Why, test.want.Why) || (got.Why == "") != (test.want.Why == "") {
			t.Errorf("%s: why: got %q, want %q", name, got.Why, test.want.Why)
		}
		got.Why, test.want.Why = "", ""
		if seen := !got.Exact && !got.None && test.look.lostAt.After(now) && got.At.Before(test.look.lostAt); seen != !got.Seen.IsZero() || seen && got.Seen != test.look.lostAt {
			t.Errorf("%s: Seen is %s", name, got.Seen)
		}
		got.Seen = time.Time{}
		if test.want.AsOf.IsZero() {
			got.AsOf = time.Time{}
		}
		if got != test.want {
			t.Errorf("%s: got %+v, want %+v: %s later", name, got, test.want, got.At.Sub(test.want.At))
		}
	}
}

// While a laptop sleeps its monotonic clock stands still, and messages grow old: no time may be compared by that clock.
func TestTimesAreOfTheCalendar(t *testing.T) {
	wall := func(name string, at time.Time) {
		t.Helper()
		if at.IsZero() || at != at.Round(0) {
			t.Errorf("%s is %v: it has no calendar's time alone", name, at)
		}
	}
	now := time.Now()
	state := queueState{
		Main: queues.Counts{Retention: 96 * time.Hour}, Dead: queues.Counts{Visible: 3, Retention: 336 * time.Hour}, At: now, Ages: ages{Read: true},
	}
	q := Queue{Name: "orders", URL: "u", DLQName: "orders-dlq", DLQURL: "d"}
	wall("the loss", lossOf(q, state, lookFacts{now, true, now.Round(0).Add(300 * time.Hour)}, nil, now).At)

	f := newFixture(t, func(o *Options) {
		o.Write = true
		o.Command = func(_ context.Context, out, _ io.Writer, _ ...string) int {
			_, _ = io.WriteString(out, `{"key":"k","before":"crashed","after":"released","hash":"h"}`)
			return exitDone
		}
	})
	f.sampler.sample(t.Context())
	wall("a sample", f.sampler.state("orders").samples[0].at)
	if w := f.post("/plan", "op=free&key=k"); w.Code != http.StatusSeeOther {
		t.Fatalf("got %d\n%s", w.Code, w.Body)
	}
	wall("a plan", f.plans.list[0].Made)
}
