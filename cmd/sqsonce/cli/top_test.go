package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/fleet"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/statusreport"
	"github.com/sqsonce/sqsonce/limit"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/status"
)

const someWorkers = "http://billing-1:8080,http://billing-2:8080/,http://billing-3:8080,http://relay:8080"

// fillTop makes workers of orders, of which one is away and one is not ready, and messages in its queues.
func (w *world) fillTop() {
	first, slow := w.working("billing-1", "orders", 12.25), w.working("billing-2", "orders", 0.5)
	rule := func(name, plan, scope string, stats statusreport.Stats) statusreport.Limit {
		return statusreport.Limit{Component: statusreport.Component{Name: name, Stats: stats}, Plan: plan, Scope: scope}
	}
	w.workers = map[string]func() statusreport.Report{
		"billing-1:8080": func() statusreport.Report {
			r := first()
			next := float64(r.Now.UnixMilli())/1000 + 0.4
			r.Limits = []statusreport.Limit{
				rule("billing/a.rule.with.a.name.that.is.longer.than.its.column", "", "process", statusreport.Stats{"waiting": 0, "running": 2, "next_timestamp_seconds": 0}),
				rule("billing/payments", "10/s", "fleet", statusreport.Stats{"waiting": 40, "running": 1, "next_timestamp_seconds": next + 20}),
			}
			return r
		},
		"billing-2:8080": func() statusreport.Report {
			r := slow()
			now := float64(r.Now.UnixMilli()) / 1000
			r.Limits = []statusreport.Limit{rule("billing/payments", "10/s", "fleet", statusreport.Stats{
				"waiting": 8, "running": 2, "next_timestamp_seconds": now + 0.4, "paused": 1, "paused_until_timestamp_seconds": now + 30, "down_seconds": 12,
			})}
			r.Workers[0].NotReady, r.Workers[0].Intake = "what every message needs is unavailable: dial tcp", "paused"
			maps.Copy(r.Workers[0].Stats, statusreport.Stats{fleet.Aside: 12, fleet.InDoubt: 0, fleet.Suspect: 1})
			delete(r.Workers[0].Stats, fleet.Held)
			return r
		},
		"relay:8080": func() statusreport.Report {
			return statusreport.Report{V: 1, Name: "relay", Started: time.Now().Add(-time.Hour), Now: time.Now()}
		},
	}
	w.ages = map[string]float64{"orders": 192}
	for i := range 30 {
		w.send("orders", strconv.Itoa(i), "b")
	}
	w.send("orders-dlq", "dead", "b")
}

func TestGoldenTop(t *testing.T) {
	bubble(t, func(w *world) {
		w.fillTop()
		args := []string{"top", "--worker", someWorkers, "--queue", "orders,orders-dlq"}
		w.golden("top-pipe", w.run(args...))
		w.golden("top-json", w.run(append(args, "--json", "--once")...))
		w.noAWS = fail(exitDenied, "no credentials: none is configured")
		w.golden("top-workers-json", w.run("top", "--worker", "http://billing-1:8080", "--once", "--json"))
	})
}

// Each 2 s a frame, which fits the terminal as it is then, over the last one; the terminal is as before at the end.
func TestTopRedraws(t *testing.T) {
	bubble(t, func(w *world) {
		w.fillTop()
		w.width = 100
		sizes := [][2]int{{100, 30}, {50, 30}, {100, 5}, {3, 2}, {80, 0}}
		frame := -1
		w.size = func() (int, int) { frame++; return sizes[frame][0], sizes[frame][1] }
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(9*time.Second, func() { cancel(errInterrupted) })
		got := w.runIn(ctx, "top", "--worker", someWorkers, "--queue", "orders")
		text, opened := strings.CutPrefix(got.out, openScreen)
		text, closed := strings.CutSuffix(text, closeScreen)
		frames := strings.Split(text, "\x1b[H")[1:]
		if got.code != exitDone || got.err != "" || !opened || !closed || len(frames) != len(sizes) {
			t.Fatalf("exit %d, %d frames, %s: %q", got.code, len(frames), got.err, got.out)
		}
		for i, f := range frames {
			f, ok := strings.CutSuffix(f, "\x1b[K\x1b[J")
			lines := strings.Split(f, "\x1b[K\r\n")
			if height := sizes[i][1]; !ok || height > 0 && len(lines) > height {
				t.Errorf("frame %d has %d lines: %q", i, len(lines), f)
			}
			for _, line := range lines {
				if runewidth.StringWidth(line) > sizes[i][0] || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' }) {
					t.Errorf("frame %d: %q", i, line)
				}
			}
		}
		first := strings.Contains(frames[0], "UTC  every 2s  no answer from 1 processes") && !strings.Contains(frames[0], "12.")
		if !first || !strings.Contains(frames[1], "12.2") || !strings.Contains(frames[2], "more lines") {
			t.Errorf("%q", frames)
		}
	})
}

// snapshots are the lines of top --json until so long has passed.
func (w *world) snapshots(d time.Duration, args ...string) (all []snapshot) {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	got := w.runIn(ctx, append([]string{"top", "--json"}, args...)...)
	if got.code != exitDone || got.err != "" {
		w.Fatalf("%+v", got)
	}
	for line := range strings.Lines(got.out) {
		var s snapshot
		must.Do(w, json.Unmarshal([]byte(line), &s))
		all = append(all, s)
	}
	return all
}

// A queue that is drained: its messages, the pace, and how long it lasts. CloudWatch is asked once a minute, and what is called only
// looks.
func TestTopShowsTheDrain(t *testing.T) {
	bubble(t, func(w *world) {
		w.ages = map[string]float64{"orders": 192}
		for i := range 200 {
			w.send("orders", strconv.Itoa(i), "b")
		}
		w.workers = map[string]func() statusreport.Report{"a": w.working("a", "orders", 2)}
		before := len(w.stack.MemSQS().Calls())
		quiet := w.snapshots(13*time.Second, "--worker", "http://a")
		for _, c := range w.stack.MemSQS().Calls()[before:] {
			if c.Op != "GetQueueUrl" && c.Op != "GetQueueAttributes" {
				t.Errorf("top calls %s", c.Op)
			}
		}
		if len(quiet) != 7 || quiet[4].Queues[0].Change != nil {
			t.Errorf("%d snapshots, %+v", len(quiet), quiet[4].Queues[0])
		}
		if q := quiet[6].Queues[0]; *q.Visible != 200 || *q.Change != 0 || q.EmptyIn != nil || *q.Oldest != 192 || *q.InDLQ != 0 {
			t.Errorf("%+v", q)
		}
		w.consume("orders", func(context.Context, *sqsonce.Message) error { time.Sleep(5 * time.Second); return nil })
		w.asked = 0
		all := w.snapshots(191*time.Second, "--worker", "http://a", "--queue", "orders")
		if len(all) != 96 || w.asked != 4 {
			t.Errorf("%d snapshots, CloudWatch was asked %d times", len(all), w.asked)
		}
		for i, s := range all {
			q := s.Queues[0]
			total := *q.Visible + *q.InFlight + *q.Delayed
			switch {
			case len(s.Queues) != 1 || (q.Done == nil) != (i == 0) || i > 0 && *q.Done != 2:
				t.Errorf("%d: %+v", i, q)
			case i >= 5 && total > 0 && (*q.Change >= 0 || *q.EmptyIn <= 0 || i >= 15 && *q.EmptyIn > 200):
				t.Errorf("%d: %d messages, %v a second, empty in %v", i, total, *q.Change, q.EmptyIn)
			case total == 0 && q.EmptyIn != nil:
				t.Errorf("%d: empty in %v", i, *q.EmptyIn)
			}
		}
		if last := all[95].Queues[0]; *last.Visible != 0 || *last.Change != 0 { // the minute before had no change
			t.Errorf("%+v", last)
		}
	})
}

// A process that has restarted has no rate for one read, and never a negative one; nor has one that was away.
func TestTopRestart(t *testing.T) {
	bubble(t, func(w *world) {
		start, first := time.Now(), w.working("a", "orders", 2)
		second := sync.OnceValue(func() func() statusreport.Report { return w.working("a", "orders", 1) })
		w.workers = map[string]func() statusreport.Report{"a": func() statusreport.Report {
			switch passed := time.Since(start); {
			case passed < 3*time.Second:
				return first()
			case passed < 9*time.Second:
				return second()()
			}
			return statusreport.Report{}
		}}
		var got []string
		for _, s := range w.snapshots(11*time.Second, "--worker", "http://a") {
			got = append(got, rate(s.Workers[0].Done)+s.Workers[0].Error)
		}
		if want := []string{"-", "2.0", "-", "1.0", "1.0", "-connection refused"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

func TestTopExitCodes(t *testing.T) {
	refuse := func(code string) fault.Plan {
		return fault.Plan{Rules: []fault.Rule{{Op: "GetQueueAttributes", Prob: 1, Do: fault.Error, Code: code}}}
	}
	const one, away = "http://billing-1:8080", "http://billing-3:8080"
	for name, test := range map[string]struct {
		args   []string
		env    string
		plan   fault.Plan
		noAWS  bool
		noURLs bool
		code   exitCode
		says   string
		shows  string
	}{
		"all":                       {args: []string{"--worker", one, "--queue", "orders"}, shows: "queue\torders\t30"},
		"workers":                   {args: []string{"--worker", one}, shows: "queue\torders\t30"},
		"workers that say no URL":   {args: []string{"--worker", one}, noURLs: true, shows: "queue\torders\t30"},
		"queue":                     {args: []string{"--queue", "orders"}, shows: "queue\torders\t30"},
		"queue of the environment":  {env: "orders", shows: "queue\torders\t30"},
		"by URL of another host":    {args: []string{"--worker", one, "--queue", "http://localaws/000000000000/orders"}, shows: "queue\torders\t30"},
		"nothing":                   {code: exitUsage, says: "SQSONCE_QUEUE"},
		"bad workers":               {args: []string{"--worker", "a:1,http://a?b"}, code: exitUsage, says: `worker "http://a"`},
		"argument":                  {args: []string{"orders"}, code: exitUsage},
		"some workers away":         {args: []string{"--worker", one + "," + away}, code: exitPart, says: "1 of 2 workers and queues could not be read: " + away, shows: "connection refused"},
		"all workers away":          {args: []string{"--worker", away}, code: exitFailed, says: "connection refused"},
		"workers away, queue there": {args: []string{"--worker", away, "--queue", "orders"}, code: exitPart, shows: "queue\torders\t30"},
		"no such queue":             {args: []string{"--queue", "nothing"}, code: exitFailed, says: "queue nothing does not exist", shows: "queue\tnothing\t-"},
		"one queue missing":         {args: []string{"--queue", "nothing,orders"}, code: exitPart, shows: "queue\torders\t30"},
		"a URL with a slash":        {args: []string{"--queue", "http://localaws/000000000000/orders/"}, code: exitFailed, shows: "must end in a queue's name"},
		"another Region":            {args: []string{"--queue", "arn:aws:sqs:eu-west-1:000000000000:orders"}, code: exitFailed, shows: "eu-west-1"},
		"denied":                    {args: []string{"--queue", "orders"}, plan: refuse("AccessDeniedException"), code: exitDenied, says: "needs: sqs:GetQueueAttributes", shows: "sqs:GetQueueAttributes is denied"},
		"denied, not named":         {args: []string{"--worker", one}, plan: refuse("AccessDeniedException"), shows: "sqs:GetQueueAttributes is denied"},
		"SQS fails":                 {args: []string{"--worker", one, "--queue", "orders"}, plan: refuse("InternalError"), code: exitPart, shows: "InternalError"},
		"no connection": {
			args: []string{"--queue", "orders"}, plan: fault.Plan{Rules: []fault.Rule{{Op: "GetQueueUrl", Prob: 1, Do: fault.Reset}}},
			code: exitFailed, says: "could not be read: orders: sqs does not answer at http", shows: "sqs does not answer at http",
		},
		"SQS is slow": {
			args: []string{"--worker", one, "--queue", "orders"}, plan: fault.Plan{Rules: []fault.Rule{{Op: "GetQueueAttributes", Prob: 1, Do: fault.Delay, Delay: time.Hour}}},
			code: exitPart, shows: "no answer within 5s",
		},
		"no credentials":                {args: []string{"--queue", "orders"}, noAWS: true, code: exitDenied, says: "no credentials"},
		"no credentials, workers":       {args: []string{"--worker", one}, noAWS: true, says: "queues cannot be asked: no credentials", shows: "worker\tbilling-1"},
		"no credentials, workers, both": {args: []string{"--worker", one, "--queue", "orders"}, noAWS: true, code: exitDenied, shows: "worker\tbilling-1"},
	} {
		run(t, name, func(w *world) {
			w.fillTop()
			w.noURLs = test.noURLs
			w.stack.MemSQS().Set(test.plan)
			if w.env["SQSONCE_QUEUE"] = test.env; test.noAWS {
				w.noAWS = fail(exitDenied, "no credentials: none")
			}
			got := w.run(append([]string{"top"}, test.args...)...)
			if got.code != test.code || !strings.Contains(got.err, test.says) || !strings.Contains(got.out, test.shows) {
				w.Errorf("exit %d, want %d with %q and %q: %s%s", got.code, test.code, test.says, test.shows, got.out, got.err)
			}
			if n := strings.Count(got.out, "queue\torders\t"); test.shows == "queue\torders\t30" && n != 1 {
				w.Errorf("orders is shown %d times: %s", n, got.out)
			}
		})
	}
}

// An age that CloudWatch does not give is said, and is no zero; it is no failure.
func TestTopWithoutAges(t *testing.T) {
	bubble(t, func(w *world) {
		for _, test := range []struct {
			ages map[string]float64
			want string
		}{
			{nil, "-\toldest: cloudwatch:GetMetricData is denied"},
			{map[string]float64{}, "-\toldest: CloudWatch has no value of the last 15m"},
			{map[string]float64{"orders": 0}, "0\t"},
			{map[string]float64{"orders": -1}, "-\toldest: CloudWatch has no value of the last 15m"},
		} {
			w.ages = test.ages
			got := w.run("top", "--queue", "orders")
			cells := strings.Split(strings.TrimRight(got.out, "\n"), "\t")
			if age := cells[5] + "\t" + cells[11]; got.code != exitDone || age != test.want {
				t.Errorf("%+v, want %q", got, test.want)
			}
		}
	})
}

// A fair queue's noisy groups are columns of a terminal while there are any, and of a pipe always.
func TestTopShowsNoisyGroups(t *testing.T) {
	bubble(t, func(w *world) {
		w.ages = map[string]float64{"orders": 192}
		for _, test := range []struct {
			noisy, quiet map[string]float64
			pipe         string
			columns      bool
		}{
			{nil, nil, "-\t-", false},
			{map[string]float64{"orders": 0}, map[string]float64{"orders": 192}, "0\t192", false},
			{map[string]float64{"orders": 2}, nil, "2\t-", true},
			{map[string]float64{"orders": 2}, map[string]float64{"orders": 3}, "2\t3", true},
		} {
			w.noisy, w.quiet, w.width = test.noisy, test.quiet, 0
			cells := strings.Split(strings.TrimRight(w.run("top", "--queue", "orders").out, "\n"), "\t")
			if got := cells[12] + "\t" + cells[13]; got != test.pipe {
				t.Errorf("a pipe has %q, want %q", got, test.pipe)
			}
			for _, width := range []int{200, 20} {
				w.width = width
				got := w.run("top", "--queue", "orders", "--once").out
				if strings.Contains(got, "OLDEST  NOISY  QUIET") != (test.columns && width == 200) {
					t.Errorf("%d columns have noisy groups, want %t:\n%s", width, test.columns, got)
				}
			}
		}
	})
}

// A consumer that is paused has one line, however many processes say so.
func TestTopShowsAPause(t *testing.T) {
	bubble(t, func(w *world) {
		w.fillTop()
		for name, report := range w.workers {
			w.workers[name] = func() statusreport.Report {
				r := report()
				r.Controls = []statusreport.Control{{Consumer: "billing", Paused: true, Text: "paused until noon by ann: bank is down"}, {Consumer: "ledger", Text: "open"}}
				return r
			}
		}
		got := w.run("top", "--worker", someWorkers, "--once")
		if n := strings.Count(got.err, "billing is paused until noon by ann: bank is down"); n != 1 || strings.Contains(got.err, "ledger") {
			t.Errorf("got %+v, want one line about the pause", got)
		}
	})
}

// Whatever a worker says, nothing that a terminal acts on is printed, and no line is broken.
func TestTopHostile(t *testing.T) {
	bubble(t, func(w *world) {
		evil := "\x1b[2J\r\n\t\u202e\u009b" + strings.Repeat("世界", 40)
		started := time.Now()
		w.workers = map[string]func() statusreport.Report{"a": func() statusreport.Report {
			r := statusreport.Report{V: 1, Name: evil, Started: started, Now: time.Now()}
			for i := range 300 {
				r.Workers = append(r.Workers, statusreport.Worker{
					Queue: evil, URL: fmt.Sprintf("%s%d", evil, i), State: evil, NotReady: evil, NotLive: evil, Intake: evil,
					Stats: statusreport.Stats{fleet.Done: 1e18 * time.Since(started).Seconds(), fleet.Failed: 1, fleet.Received: 1, fleet.OldestRunning: 1e19, fleet.Stuck: -1e19},
				})
			}
			for i := range 40 {
				r.Limits = append(r.Limits, statusreport.Limit{Plan: evil, Scope: evil, Component: statusreport.Component{
					Name: fmt.Sprintf("%s%d", evil, i), Stats: statusreport.Stats{
						fleet.LimitWaiting: 1e19, fleet.LimitNext: 1e19, fleet.LimitDown: 1e19, fleet.LimitPaused: -1e19, fleet.LimitPausedUntil: 1e19,
					},
				}})
			}
			return r
		}}
		before := len(w.stack.MemSQS().Calls())
		for _, width := range []int{0, 1, 20, 79, 200} {
			w.width = width
			got := w.run("top", "--worker", "http://a", "--once")
			if got.code != exitDone || !strings.Contains(got.err, "more queues than the 100") {
				t.Errorf("exit %d: %s", got.code, got.err)
			}
			for line := range strings.Lines(got.out) {
				line = strings.TrimSuffix(line, "\n")
				if width > 0 && runewidth.StringWidth(line) > width {
					t.Fatalf("%d columns of %d: %q", runewidth.StringWidth(line), width, line)
				}
				for _, r := range line {
					if r < ' ' && (r != '\t' || width > 0) || r == 0x9b || r == 0x202e {
						t.Fatalf("%U in %q", r, line)
					}
				}
			}
		}
		for _, c := range w.stack.MemSQS().Calls()[before:] {
			t.Errorf("top asks for a queue that is none: %s", c.Op)
		}
	})
}

// An interrupt ends --once in part, and standard output that is gone ends what would go on.
func TestTopEnds(t *testing.T) {
	bubble(t, func(w *world) {
		w.fillTop()
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(time.Second, func() { cancel(errInterrupted) })
		if got := w.runIn(ctx, "top", "--worker", someWorkers, "--once"); got.code != exitPart || got.out != "" {
			t.Errorf("%+v", got)
		}
		if got := w.run("top", "--worker", someWorkers, "--once", "--timeout", "1s"); got.code != exitFailed || got.out != "" {
			t.Errorf("%+v", got)
		}
		w.handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		if got := w.run("top", "--worker", "http://silent", "--json", "--timeout", "1s"); got != (result{}) {
			t.Errorf("%+v", got) // no line with what was cut short
		}
		for _, width := range []int{0, 80} {
			a := &app{out: closed{}, err: t.Output(), getenv: func(string) string { return "" }, connect: w.connect, width: width, size: func() (int, int) { return width, 9 }}
			if code := a.run(context.Background(), []string{"top", "--queue", "orders", "--json=" + strconv.FormatBool(width == 0)}); code != exitFailed {
				t.Errorf("exit %d", code)
			}
		}
	})
}

// A worker that works, with the handler that it has in production.
func TestTopRealWorker(t *testing.T) {
	bubble(t, func(w *world) {
		for i := range 30 {
			w.send("orders", strconv.Itoa(i), "b")
		}
		limits := must.Get(limit.New([]limit.Rule{
			{Name: "all", Key: limit.All, Plan: limit.Plan{Concurrency: 100}},
			{Name: "slow", Key: func(*sqsonce.Message) string { return "" }, Plan: limit.Plan{Rate: limit.Rate{N: 10}}},
		}))(w)
		must.Do(w, limits.Pause(context.Background(), "slow", "tenant", time.Hour))
		worker := w.consume("orders", limit.Handler(limits, func(context.Context, *sqsonce.Message) error { time.Sleep(time.Second); return nil }))
		h := must.Get(status.Handler(func(o *status.Options) {
			o.Name, o.Workers, o.Limits = "billing", append(o.Workers, worker), map[string]*limit.Limiter{"billing": limits}
		}))(w)
		w.handler = h
		time.Sleep(500 * time.Millisecond)
		all := w.snapshots(5*time.Second, "--worker", "http://a")
		first, last := all[0].Workers[0], all[2].Workers[0]
		if first.State != "running" || first.Intake == "" || *first.Running < 1 || *first.Running > *first.Concurrency {
			t.Errorf("%+v", first)
		}
		if *first.OldestRunning <= 0 || *first.OldestRunning > 1 || *first.Stuck != 0 || *first.LeasesLost != 0 || *first.InFlight < *first.Running {
			t.Errorf("%+v", first)
		}
		if done := *all[1].Workers[0].Done; done <= 0 || *last.Done <= 0 || 2*(done+*last.Done) != 30 || *last.Failed != 0 || *last.Running != 0 {
			t.Errorf("%v done a second, then %v: %+v", done, *last.Done, last)
		}
		slow, rule := all[0].Limits[0], all[0].Limits[1]
		if slow.Name != "billing/slow" || slow.Plan != "10/s" || slow.Processes[0].PausedUntil.IsZero() || !strings.HasPrefix(slow.Why(), "paused until ") {
			t.Errorf("%+v", slow)
		}
		if p := rule.Processes[0]; *rule.Running != *first.Running || *rule.Waiting != 0 || rule.Next != nil || *p.Paused != 0 || *p.Down != 0 || *p.KeysDown != 0 {
			t.Errorf("%+v", rule)
		}
		if first.Held == nil || last.Received == nil || all[2].Queues[0].URL != w.stack.QueueURL["orders"] {
			t.Errorf("%+v, %+v", last, all[2].Queues[0])
		}
	})
}

// A queue of another Region is another queue, and is not asked for. Those that workers name are found side by side, and one that is not
// found is in a row that says why.
func TestTopOtherRegion(t *testing.T) {
	bubble(t, func(w *world) {
		here := w.working("a", "orders", 1)
		w.workers = map[string]func() statusreport.Report{"a": func() statusreport.Report {
			r := here()
			there := r.Workers[0]
			there.URL = strings.ReplaceAll(there.URL, "us-east-1", "eu-west-1")
			r.Workers = append(r.Workers, there)
			for i := range 20 {
				r.Workers = append(r.Workers, statusreport.Worker{Queue: fmt.Sprint("gone-", i), Stats: statusreport.Stats{}})
			}
			return r
		}}
		w.stack.MemSQS().Set(fault.Plan{Rules: []fault.Rule{{Op: "GetQueueUrl", Prob: 1, Do: fault.Delay, Delay: time.Second}}})
		got := w.run("top", "--worker", "http://a")
		here1, there1 := strings.Count(got.out, "queue\torders\t0\t"), strings.Count(got.out, "queue\torders\t-\t")
		if got.code != exitDone || here1 != 1 || there1 != 1 || !strings.Contains(got.out, "is in eu-west-1") || strings.Count(got.out, "another account, set Options.Identifiers") != 20 {
			t.Errorf("%+v", got)
		}
		got = w.run("top", "--worker", "http://a,http://away")
		if got.code != exitPart || !strings.Contains(got.err, "1 of 2 workers") { // a process with two workers is one
			t.Errorf("%+v", got)
		}
	})
}

func TestTopFigures(t *testing.T) {
	for v, want := range map[float64]string{0: "0 0.0 0s", 59.4: "59 59.4 59s", 90: "90 90.0 1m 30s", -1: "-1 -1.0 -1 s", 1e11: "100000000000 100000000000.0 100000000000 s", 1e15: "? ? ?", -1e19: "? ? ?"} {
		if got := whole(&v) + " " + rate(&v) + " " + long(&v); got != want {
			t.Errorf("%g is %q, want %q", v, got, want)
		}
	}
	if got := whole[int](nil) + rate(nil) + long(nil); got != "---" {
		t.Error(got)
	}
	for v, want := range map[float64]string{0: "0.0s", 0.44: "0.4s", 9.94: "9.9s", 9.96: "10s", 90: "1m 30s", 1e15: "?", -1: "-1 s"} {
		if got := soon(&v); got != want {
			t.Errorf("%g is %q, want %q", v, got, want)
		}
	}
	s := snapshot{Notes: []string{"no credentials: \x1b[2J" + strings.Repeat("x", 100)}}
	for _, line := range s.frame(&app{width: 60}, 60) {
		if strings.ContainsRune(line, '\x1b') || len(line) > 62 {
			t.Errorf("%q", line)
		}
	}
}

// CloudWatch knows queues by name: of a queue of another account it would give the age of one that has the same name here.
func TestTopAnotherAccount(t *testing.T) {
	bubble(t, func(w *world) {
		w.fillTop()
		w.run("top", "--queue", "orders") // whose policy has what is called
		s := must.Get(w.connect(context.Background()))(w)
		other := strings.Replace(w.stack.QueueURL["orders"], "/000000000000/", "/111111111111/", 1)
		for _, test := range []struct {
			name, url string
			plan      fault.Plan
			foreign   bool
		}{
			{"orders", w.stack.QueueURL["orders"], fault.Plan{}, false},
			{"orders", other, fault.Plan{}, true},
			{"elsewhere", strings.Replace(other, "orders", "elsewhere", 1), fault.Plan{}, true},
			{"orders", other, fault.Plan{Rules: []fault.Rule{{Op: "GetQueueUrl", Prob: 1, Do: fault.Error, Code: "AccessDenied"}}}, false}, // not known
		} {
			w.stack.MemSQS().Set(test.plan)
			q := newQueueWatch(s, nil, nil)
			q.readAges(context.Background(), []queueRow{{Queue: test.name, URL: test.url}})
			row := &queueRow{Queue: test.name, URL: test.url}
			if q.finish(row); strings.Contains(row.NoOldest, "another account") != test.foreign || (row.Oldest != nil) == test.foreign {
				t.Errorf("%s: %q, %v", test.url, row.NoOldest, row.Oldest)
			}
		}
		w.stack.MemSQS().Set(fault.Plan{})
	})
}
