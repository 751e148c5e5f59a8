package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
	"github.com/sqsonce/sqsonce/internal/statusreport"
)

// Names of a rule's counters and gauges in statusreport.Stats.
const (
	LimitWaiting     = "waiting"
	LimitNext        = "next_timestamp_seconds"
	LimitPaused      = "paused"
	LimitPausedUntil = "paused_until_timestamp_seconds"
	LimitDown        = "down_seconds"
	LimitKeysDown    = "keys_down"
)

// Limit is a rule with one name in all processes that have answered. A figure that a process does not report is nil.
type Limit struct {
	Name      string         `json:"name"`
	Plan      string         `json:"plan,omitempty"` // where it differs in a rollout, all of them; "": not known
	Waiting   *float64       `json:"waiting,omitempty"`
	Running   *float64       `json:"running,omitempty"`
	Next      *float64       `json:"next_seconds,omitempty"` // until the first waiting message of all processes has its turn
	Processes []LimitProcess `json:"processes"`
}

// LimitProcess is a rule in one process: what has no sum.
type LimitProcess struct {
	URL         string    `json:"url"`
	Plan        string    `json:"plan,omitempty"`
	Scope       string    `json:"scope,omitempty"` // as in statusreport.Limit
	Waiting     *float64  `json:"waiting,omitempty"`
	Running     *float64  `json:"running,omitempty"`
	Next        *float64  `json:"next_seconds,omitempty"`
	Paused      *float64  `json:"paused_keys,omitempty"`
	PausedUntil time.Time `json:"paused_until,omitzero"` // by the clock here
	Down        *float64  `json:"down_seconds,omitempty"`
	KeysDown    *float64  `json:"keys_down,omitempty"`
}

// Limits returns the rules of the processes: first those whose Counter is down, then those with paused keys, then those with
// waiting messages, by name. A process that has no rules, or is of a version that does not report them, adds nothing.
func Limits(workers []Worker) []*Limit {
	all := map[string]*Limit{}
	for _, w := range workers {
		if w.Report == nil {
			continue
		}
		for _, rule := range w.Report.Limits {
			l := all[rule.Name]
			if l == nil {
				l = &Limit{Name: rule.Name}
				all[rule.Name] = l
			}
			l.Processes = append(l.Processes, limitProcess(&w, rule))
		}
	}
	sorted := make([]*Limit, 0, len(all))
	for _, l := range all {
		l.sum()
		sorted = append(sorted, l)
	}
	slices.SortFunc(sorted, func(a, b *Limit) int { return cmp.Or(cmp.Compare(b.grave(), a.grave()), cmp.Compare(a.Name, b.Name)) })
	return sorted
}

func limitProcess(w *Worker, rule statusreport.Limit) LimitProcess {
	stat := func(name string) *float64 {
		if v, ok := rule.Stats[name]; ok {
			return &v
		}
		return nil
	}
	// after is how long it is until a timestamp of the process, by its own clock.
	after := func(name string) *float64 {
		if v := stat(name); v != nil && *v > 0 {
			left := max(0, *v-float64(w.Report.Now.UnixMilli())/1000)
			return &left
		}
		return nil
	}
	p := LimitProcess{
		URL: w.URL, Plan: rule.Plan, Scope: rule.Scope, Waiting: stat(LimitWaiting), Running: stat(RunningNow), Next: after(LimitNext),
		Paused: stat(LimitPaused), Down: stat(LimitDown), KeysDown: stat(LimitKeysDown),
	}
	if left := after(LimitPausedUntil); left != nil && *left < time.Hour.Seconds()*24*366 {
		p.PausedUntil = w.At.Add(time.Duration(*left * float64(time.Second))).UTC()
	}
	return p
}

// sum adds what has a sum. Where one process does not report it, the sum is not known.
func (l *Limit) sum() {
	waiting, running, known := 0.0, 0.0, [2]bool{true, true}
	var plans []string
	for _, p := range l.Processes {
		add := func(sum *float64, known *bool, v *float64) {
			if *known = *known && v != nil; *known {
				*sum += *v
			}
		}
		add(&waiting, &known[0], p.Waiting)
		add(&running, &known[1], p.Running)
		if p.Next != nil && (l.Next == nil || *p.Next < *l.Next) {
			l.Next = p.Next
		}
		plan := cmp.Or(p.Plan, "by key")
		switch {
		case p.Scope == "":
			plan = p.Plan
		case p.Scope == "process" && len(l.Processes) > 1:
			plan += " each"
		}
		if plan != "" && !slices.Contains(plans, plan) {
			plans = append(plans, plan)
		}
	}
	l.Plan = strings.Join(plans, "; ")
	if known[0] {
		l.Waiting = &waiting
	}
	if known[1] {
		l.Running = &running
	}
}

func (l *Limit) grave() int {
	grave := 0
	if l.Waiting != nil && *l.Waiting > 0 {
		grave = 1
	}
	for _, p := range l.Processes {
		switch {
		case above(p.Down) || above(p.KeysDown):
			return 3
		case above(p.Paused):
			grave = 2
		}
	}
	return grave
}

func above(v *float64) bool { return v != nil && *v > 0 }

// Why is what somebody should look at, with the processes that have it.
func (l *Limit) Why() string {
	var why []string
	add := func(what string, urls []string) {
		if len(urls) > 0 {
			why = append(why, what+" in "+shown.Some(urls))
		}
	}
	var down, keys []string
	longest, paused, until := 0.0, 0.0, time.Time{}
	for _, p := range l.Processes {
		url := strings.TrimPrefix(p.URL, "http://")
		if above(p.Down) {
			down, longest = append(down, url), max(longest, *p.Down)
		}
		if above(p.KeysDown) {
			keys = append(keys, url)
		}
		if above(p.Paused) {
			paused = max(paused, *p.Paused) // one key may be paused in each of them
			if p.PausedUntil.After(until) {
				until = p.PausedUntil
			}
		}
	}
	add(fmt.Sprintf("counter down for %.0fs", longest), down)
	add("counter fails for some keys", keys)
	if paused > 0 {
		text := "paused"
		if paused > 1 {
			text = fmt.Sprintf("%.0f keys paused", paused)
		}
		if !until.IsZero() {
			text += " until " + until.Format(time.DateTime) + " UTC"
		}
		why = append(why, text)
	}
	return strings.Join(why, "; ")
}
