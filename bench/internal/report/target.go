package report

import (
	"fmt"
	"slices"
)

// target is a figure that a row of sqsonce must reach.
type target struct {
	scenario, contestant string
	what                 string
	// than is the contestant of the same scenario and latency that the figure is compared with. "": none.
	than        string
	figure      func(ours, theirs Row) *float64
	least, most float64 // 0: no such limit
}

var targets = []target{
	{"worker", "sqsonce", "msg/s", "floor+http", ratio(rate), 0.82, 0},
	{"worker", "sqsonce", "CPU us/msg", "floor+http", ratio(cpu), 0, 1.3},
	{"worker", "sqsonce", "allocs/msg", "", own(allocs), 0, 95},
	{"dedup", "sqsonce+ddb", "msg/s", "floor", ratio(rate), 0.45, 0},
	{"dedup", "sqsonce+ddb", "CPU us/msg", "floor", ratio(cpu), 0, 2.6},
	{"dedup", "sqsonce+ddb", "allocs/msg", "", own(allocs), 0, 165},
	{"fifo/0", "sqsonce", "msg/s", "raw16+a", ratio(rate), 0.93, 0},
	{"fifo/0.1", "sqsonce", "msg/s", "raw16+a", ratio(rate), 0.93, 0},
	{"fifo/1", "sqsonce", "msg/s", "raw16+a", ratio(rate), 0.93, 0},
	// What the library adds to an invocation of ten records, and to one record of a thousand.
	{"lambda/10", "sqsonce", "CPU us/invocation", "hand", more(10, cpu), 0, 20},
	{"lambda/1000", "sqsonce", "CPU us/msg", "hand", more(1, cpu), 0, 0.5},
}

func rate(r Row) *float64   { return r.Rate }
func cpu(r Row) *float64    { return r.CPU }
func allocs(r Row) *float64 { return r.Allocs }

func own(f func(Row) *float64) func(ours, theirs Row) *float64 {
	return func(ours, _ Row) *float64 { return f(ours) }
}

func ratio(f func(Row) *float64) func(ours, theirs Row) *float64 {
	return func(ours, theirs Row) *float64 { return quotient(f(ours), f(theirs)) }
}

// more is how much more than theirs n messages take.
func more(n float64, f func(Row) *float64) func(ours, theirs Row) *float64 {
	return func(ours, theirs Row) *float64 {
		a, b := f(ours), f(theirs)
		if a == nil || b == nil {
			return nil
		}
		return Number(n * (*a - *b))
	}
}

func quotient(a, b *float64) *float64 {
	if a == nil || b == nil || *b == 0 {
		return nil
	}
	return Number(*a / *b)
}

// verdict is what a run says about a target at one latency.
type verdict struct {
	figure string   // whose target it is
	at     string   // the latency
	got    *float64 // nil: the row that it is compared with did not run, or a figure is missing
	limit  string
	missed bool
}

func verdicts(rows []Row) (out []verdict) {
	for _, t := range targets {
		for _, ours := range rows {
			if ours.Scenario != t.scenario || ours.Contestant != t.contestant {
				continue
			}
			figure, theirs := t.scenario+", "+t.contestant+": "+t.what, Row{}
			if t.than != "" {
				figure += ", " + t.than
				if i := slices.IndexFunc(rows, Row{Scenario: ours.Scenario, Contestant: t.than, Latency: ours.Latency}.same); i >= 0 {
					theirs = rows[i]
				}
			}
			v := verdict{figure: figure, at: ours.at(), got: t.figure(ours, theirs), limit: fmt.Sprintf("at most %v", t.most)}
			if t.least != 0 {
				v.limit = fmt.Sprintf("at least %v", t.least)
			}
			v.missed = v.got != nil && (t.least != 0 && *v.got < t.least || t.most != 0 && *v.got > t.most)
			out = append(out, v)
		}
	}
	return out
}

// Judge returns a line for each target that a row of sqsonce has missed, and for each that is not known to be missed or met, because
// the row that it is compared with did not run or a figure is missing.
func Judge(rows []Row) (missed, unknown []string) {
	for _, v := range verdicts(rows) {
		switch {
		case v.got == nil:
			unknown = append(unknown, v.figure+v.at)
		case v.missed:
			missed = append(missed, fmt.Sprintf("%s%s: %.2f, target %s", v.figure, v.at, *v.got, v.limit))
		}
	}
	return missed, unknown
}

// same reports whether two rows measure the same.
func (r Row) same(as Row) bool { return r.place() == as.place() }

// place names what the row measures.
func (r Row) place() string { return r.Scenario + ", " + r.Contestant + r.at() }

func (r Row) at() string {
	if r.Latency == nil {
		return ""
	}
	return fmt.Sprintf(" at %v ms", *r.Latency)
}
