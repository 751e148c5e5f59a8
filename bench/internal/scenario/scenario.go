// Package scenario holds what is measured, one scenario per file, and the process that measures: it starts an endpoint
// and a contestant for each row, asks both, and ends them.
package scenario

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/bench/internal/report"
)

// Scenario is work that several contestants do.
type Scenario struct {
	// Name is in the rows. What stands before a slash names the scenario with its variants: "bodies/1KB".
	Name string
	// Contestants and how many messages a second they are expected to do, which decides how many they get: each works
	// for about the same time.
	Contestants []Contestant
	// Latencies of the endpoint. The first is the one of a quick run.
	Latencies []time.Duration
	// Rounds is the most that are run. 0: as many as asked for.
	Rounds int
	// Together runs the contestants at the same time: they mostly wait.
	Together bool
	// measure runs one contestant once.
	measure func(context.Context, *Bench, run) (report.Row, error)
}

// Contestant is one that takes part.
type Contestant struct {
	Name string
	Rate int
}

// All are the scenarios in the order of the report.
var All = slices.Concat(
	[]Scenario{worker, dedup}, lambda, fifo, []Scenario{slow}, stop, []Scenario{idle, duplicates}, bodies, []Scenario{memory},
)

// family is the name without the variant.
func (s Scenario) family() string {
	name, _, _ := strings.Cut(s.Name, "/")
	return name
}

// Names are what Find knows, without variants.
func Names() []string {
	var out []string
	for _, s := range All {
		out = append(out, s.family())
	}
	return slices.Compact(out)
}

// Find returns the scenario of that name with its variants, or the one variant.
func Find(name string) []Scenario {
	var out []Scenario
	for _, s := range All {
		if name == s.Name || name == s.family() {
			out = append(out, s)
		}
	}
	return out
}

// run is one measurement.
type run struct {
	scenario   Scenario
	contestant Contestant
	latency    time.Duration
}

const (
	near = 5 * time.Millisecond
	far  = 15 * time.Millisecond
)

// The limits that every contestant has which knows such limits.
const (
	slots    = 100
	inFlight = 2000
)
