package fleet

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/statusreport"
)

// said is a process with rules.
func said(url string, rules ...statusreport.Limit) Worker {
	return Worker{URL: "http://" + url, At: time.Unix(5000, 0), Report: &statusreport.Report{Now: time.Unix(1000, 0), Limits: rules}}
}

func rule(name, plan, scope string, stats statusreport.Stats) statusreport.Limit {
	return statusreport.Limit{Component: statusreport.Component{Name: name, Stats: stats}, Plan: plan, Scope: scope}
}

// A rule of several processes is one row: with sums, the first turn of all, and the processes that have something wrong.
func TestLimits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		workers []Worker
		want    []string
	}{
		"none": {workers: []Worker{said("a"), {URL: "http://b", Err: errors.New("no answer")}}},
		"sums": {
			[]Worker{
				said("a", rule("b/pay", "10/s", "fleet", statusreport.Stats{"waiting": 40, "running": 1, "next_timestamp_seconds": 1003})),
				said("b", rule("b/pay", "10/s", "fleet", statusreport.Stats{"waiting": 8, "running": 2, "next_timestamp_seconds": 1000.4})),
			},
			[]string{"b/pay|10/s|2|48|3|0.4|"},
		},
		"no turn is known": {
			[]Worker{said("a", rule("b/pay", "10/s", "fleet", statusreport.Stats{"waiting": 1, "running": 0, "next_timestamp_seconds": 0}))},
			[]string{"b/pay|10/s|1|1|0|?|"},
		},
		"an older version": {
			[]Worker{
				said("a", rule("b/pay", "", "", statusreport.Stats{"started": 5})),
				said("b", rule("b/pay", "10/s", "fleet", statusreport.Stats{"waiting": 8, "running": 2})),
			},
			[]string{"b/pay|10/s|2|?|?|?|"},
		},
		"each for itself, by key, in a rollout": {
			[]Worker{
				said("a", rule("x", "", "process", nil), rule("y", "10/s", "process", nil), rule("z", "", "process", nil)),
				said("b", rule("y", "20/s", "fleet", nil), rule("z", "", "process", nil)),
			},
			[]string{"x|by key|1|?|?|?|", "y|10/s each; 20/s|2|?|?|?|", "z|by key each|2|?|?|?|"},
		},
		"what is wrong comes first": {
			[]Worker{
				said("a", rule("a", "", "fleet", statusreport.Stats{"waiting": 1}), rule("calm", "", "fleet", statusreport.Stats{"waiting": 0}),
					rule("down", "", "fleet", statusreport.Stats{"down_seconds": 12.3}), rule("keys", "", "fleet", statusreport.Stats{"keys_down": 3}),
					rule("paused", "", "fleet", statusreport.Stats{"paused": 2, "paused_until_timestamp_seconds": 1010})),
				said("b", rule("down", "", "fleet", statusreport.Stats{"down_seconds": 0}), rule("paused", "", "fleet", statusreport.Stats{"paused": 1, "paused_until_timestamp_seconds": 1020})),
				said("c", rule("down", "", "fleet", statusreport.Stats{"down_seconds": 20})),
			},
			[]string{
				"down|by key|3|?|?|?|counter down for 20s in a, c", "keys|by key|1|?|?|?|counter fails for some keys in a",
				"paused|by key|2|?|?|?|2 keys paused until 1970-01-01 01:23:40 UTC", "a|by key|1|1|?|?|", "calm|by key|1|0|?|?|",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			figure := func(v *float64) string {
				if v == nil {
					return "?"
				}
				return strings.TrimSuffix(fmt.Sprintf("%.1f", *v), ".0")
			}
			var got []string
			for _, l := range Limits(tt.workers) {
				got = append(got, fmt.Sprintf("%s|%s|%d|%s|%s|%s|%s", l.Name, l.Plan, len(l.Processes), figure(l.Waiting), figure(l.Running), figure(l.Next), l.Why()))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
