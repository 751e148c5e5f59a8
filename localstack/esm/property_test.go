package esm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"pgregory.net/rapid"

	"github.com/sqsonce/sqsonce/localstack/esm"
)

// plan is the events of one run. It is drawn before the run, so that a failure can be printed and repeated.
type plan struct {
	fifo        bool
	groups      int
	messages    int
	batch       int
	concurrency int
	window      time.Duration
	report      bool
	results     []functionResult // of the invocations, in order; after them all succeed
}

type functionResult struct {
	kind   string
	after  time.Duration
	failed int // with partial: the first record that fails; the rest of the event is reported too
}

func drawPlan(t *rapid.T) plan {
	p := plan{
		fifo:        rapid.Bool().Draw(t, "fifo"),
		groups:      rapid.IntRange(1, 3).Draw(t, "groups"),
		messages:    rapid.IntRange(1, 40).Draw(t, "messages"),
		batch:       rapid.IntRange(1, 10).Draw(t, "batch"),
		concurrency: rapid.IntRange(2, 4).Draw(t, "concurrency"),
		report:      rapid.Bool().Draw(t, "report"),
	}
	if !p.fifo {
		p.window = time.Duration(rapid.IntRange(0, 20).Draw(t, "window")) * time.Second
	}
	kinds := []string{"ok", "error", "panic", "hang", "throttle"}
	if p.report {
		kinds = append(kinds, "partial", "malformed")
	}
	p.results = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) functionResult {
		return functionResult{
			kind:   rapid.SampledFrom(kinds).Draw(t, "kind"),
			after:  time.Duration(rapid.IntRange(0, 6).Draw(t, "after")) * time.Second, // the timeout is 5 s
			failed: rapid.IntRange(0, 9).Draw(t, "failed"),
		}
	}), 0, 30).Draw(t, "results")
	return p
}

// run returns the violations. The queue never fails here, so every message must succeed exactly once.
func (p plan) run(t *testing.T) error {
	queue := "jobs"
	if p.fifo {
		queue = "jobs.fifo"
	}
	var mu sync.Mutex
	var errs []error
	sent, succeeded := map[string][]string{}, map[string][]string{} // bodies by group
	live, next := 0, 0
	liveGroups := map[string]int{}

	begin := func(e events.SQSEvent) (functionResult, []string) {
		mu.Lock()
		defer mu.Unlock()
		live++
		if live > p.concurrency {
			errs = append(errs, fmt.Errorf("%d invocations at once, want at most %d", live, p.concurrency))
		}
		if len(e.Records) > p.batch {
			errs = append(errs, fmt.Errorf("event of %d records, want at most %d", len(e.Records), p.batch))
		}
		groups := groupsOf(e)
		for _, g := range groups {
			liveGroups[g]++
			if p.fifo && liveGroups[g] > 1 {
				errs = append(errs, fmt.Errorf("group %s is in two invocations at once", g))
			}
		}
		o := functionResult{kind: "ok"}
		if next < len(p.results) {
			o = p.results[next]
		}
		next++
		return o, groups
	}
	end := func(groups []string, done []events.SQSMessage) {
		mu.Lock()
		defer mu.Unlock()
		live--
		for _, g := range groups {
			liveGroups[g]--
		}
		for _, r := range done {
			g, _, _ := strings.Cut(r.Body, "/")
			succeeded[g] = append(succeeded[g], r.Body)
		}
	}
	const timeout = 5 * time.Second
	f := &function{t: t, f: func(ctx context.Context, e events.SQSEvent) (any, error) {
		o, groups := begin(e)
		if o.kind == "hang" || o.after >= timeout {
			time.Sleep(timeout - 1) // Lambda kills it: its result at the deadline is ignored
			end(groups, nil)
			<-ctx.Done()
			return failing(), nil
		}
		time.Sleep(o.after)
		switch {
		case o.kind == "ok" || o.kind == "partial" && o.failed >= len(e.Records):
			end(groups, e.Records)
			return failing(), nil
		case o.kind == "partial":
			end(groups, e.Records[:o.failed])
			return failing(e.Records[o.failed:]...), nil
		}
		end(groups, nil)
		switch o.kind {
		case "malformed":
			return map[string]any{"batchItemFailures": []any{map[string]string{"itemIdentifier": "unknown"}}}, nil
		case "throttle":
			return nil, esm.ErrThrottled
		case "panic":
			panic("planned")
		}
		return nil, errors.New("planned")
	}}
	onQueue(t, queue, func(x *fixture) {
		for i := range p.messages {
			g := fmt.Sprint("g", i%p.groups)
			body := fmt.Sprintf("%s/%03d", g, i)
			sent[g] = append(sent[g], body)
			if p.fifo {
				x.sendGroup(g, body)
			} else {
				x.send(body)
			}
		}
		x.run(esm.Config{
			BatchSize: p.batch, MaximumConcurrency: p.concurrency, BatchingWindow: p.window, FunctionTimeout: timeout,
			ReportBatchItemFailures: p.report,
		}, f.invoke)
		for begin := time.Now(); len(x.bodies()) > 0 && time.Since(begin) < 3*time.Hour; {
			time.Sleep(10 * time.Second)
		}
		time.Sleep(time.Minute)
		if err := x.stop(); err != nil {
			errs = append(errs, err)
		}
		if remaining := x.bodies(); len(remaining) > 0 {
			errs = append(errs, fmt.Errorf("still in the queue: %q", remaining))
		}
	})
	for g, want := range sent {
		got := succeeded[g]
		if !p.fifo {
			slices.Sort(got)
		}
		if !slices.Equal(got, want) {
			errs = append(errs, fmt.Errorf("group %s succeeded with %q, want %q", g, got, want))
		}
	}
	return errors.Join(errs...)
}

func groupsOf(e events.SQSEvent) (out []string) {
	for _, r := range e.Records {
		if g, _, _ := strings.Cut(r.Body, "/"); !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	return out
}

// For any behaviour of the function, each message is deleted after it has succeeded and not before, a FIFO group stays in
// order and is in one invocation at a time, and the limits apply.
func TestProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt)
		if err := p.run(t); err != nil {
			rt.Fatalf("%v\n%+v", err, p)
		}
	})
}
