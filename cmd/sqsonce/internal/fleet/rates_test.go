package fleet

import (
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/statusreport"
)

func TestRates(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	// at is what a process said after so many seconds, and one of its workers for each number of done messages.
	at := func(seconds int, done ...float64) Worker {
		now := start.Add(time.Duration(seconds) * time.Second)
		r := &statusreport.Report{Name: "a", Started: start, Now: now}
		for _, n := range done {
			r.Workers = append(r.Workers, statusreport.Worker{URL: "https://q/1/orders", Stats: statusreport.Stats{Received: n + 1, Done: n, Failed: n}})
		}
		return Worker{URL: "http://a", Report: r, At: now}
	}
	change := func(w Worker, f func(w *Worker)) Worker { f(&w); return w }
	for name, test := range map[string]struct {
		before, after Worker
		want          map[Of]Rate
	}{
		"rate":            {at(0, 10), at(2, 13), map[Of]Rate{{"http://a", 0}: {1.5, 1.5, 1.5}}},
		"two of a queue":  {at(0, 10, 20), at(2, 10, 26), map[Of]Rate{{"http://a", 0}: {}, {"http://a", 1}: {3, 3, 3}}},
		"other address":   {change(at(0, 10), func(w *Worker) { w.URL = "http://b" }), at(2, 12), map[Of]Rate{{"http://a", 0}: {1, 1, 1}}},
		"restarted":       {at(0, 10), change(at(2, 12), func(w *Worker) { w.Report.Started = start.Add(time.Second) }), nil},
		"other name":      {at(0, 10), change(at(2, 12), func(w *Worker) { w.Report.Name = "b" }), nil},
		"went back":       {at(0, 10), at(2, 9), nil},
		"the same moment": {at(2, 10), at(2, 12), nil},
		"clock went back": {at(2, 10), change(at(4, 12), func(w *Worker) { w.Report.Now = start }), nil},
		"clock stepped":   {at(0, 10), change(at(2, 12), func(w *Worker) { w.Report.Now = start.Add(time.Hour) }), nil},
		"was away":        {Worker{URL: "http://a"}, at(2, 12), nil},
		"is away":         {at(0, 10), Worker{URL: "http://a"}, nil},
		"no counter":      {at(0, 10), change(at(2, 12), func(w *Worker) { delete(w.Report.Workers[0].Stats, Failed) }), nil},
		"new worker":      {at(0), at(2, 12), nil},
	} {
		got := Rates([]Worker{test.before}, []Worker{test.after})
		if len(got) != len(test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
		for of, want := range test.want {
			if r, ok := got[of]; !ok || r != want {
				t.Errorf("%s: %v, want %v", name, got, test.want)
			}
		}
	}
}
