package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/fleet"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
	"github.com/sqsonce/sqsonce/control"
	"github.com/sqsonce/sqsonce/internal/statusreport"
)

func (a *app) status() *cobra.Command {
	var workers []string
	var function functionName
	c := a.command("status", "Show whether a consumer is paused, and whether its workers obey", `Shows what operators ask of a consumer, and with --worker whether its workers do it. A worker shows it that has its control in
status.Options.Controls. Name workers as for sqsonce top. --queue leaves out the workers of other queues in the same processes.

With --function it shows whether sqsonce has switched its mappings off, and until when.

Lines of workers in a pipe: `+inWords(obeyColumns)+`. Lines of mappings: `+inWords(functionColumns)+`.

Exit codes: 0 every worker or mapping does what is asked. 3 one doesn't, or not yet. 4 one did not answer, or the state can't be read.`,
		"  sqsonce status --table dedup --consumer billing --worker http://billing:8080\n  sqsonce status --function billing",
		cobra.NoArgs, func(ctx context.Context, _ []string) error {
			if function != "" {
				return a.functionStatus(ctx, string(function))
			}
			return a.showStatus(ctx, workers)
		})
	c.Flags().StringSliceVar(&workers, "worker", nil, "`URL`s of workers' status handlers, or dns:HOST:PORT, with commas between")
	c.Flags().StringVar(&a.flags.queue, "queue", "", "only workers or mappings of this `queue`, by name, URL or ARN")
	return a.functionFlag(a.recordFlags(c), &function)
}

// obeyRow is a worker, and whether it does what is asked.
type obeyRow struct {
	URL     string    `json:"url"`
	Queue   string    `json:"queue,omitempty"`
	Obeys   *bool     `json:"obeys,omitempty"` // nil: it did not answer
	Is      string    `json:"is"`
	Running *float64  `json:"running,omitempty"`
	Held    *float64  `json:"held,omitempty"`
	Read    time.Time `json:"read,omitzero"`
	Why     string    `json:"why,omitempty"`
}

var obeyColumns = []column[*obeyRow]{
	{"WORKER", "URL", "", "", func(r *obeyRow) any { return r.URL }},
	{"QUEUE", "queue", "", "", func(r *obeyRow) any { return r.Queue }},
	{"IS", "what it is", "", "", func(r *obeyRow) any { return r.Is }},
	{"RUNNING", "running", "", "", func(r *obeyRow) any { return whole(r.Running) }},
	{"HELD", "held", "", "", func(r *obeyRow) any { return whole(r.Held) }},
	{"READ", "when it last read the state", "", "", func(r *obeyRow) any { return r.Read }},
	{"WHY", "why", "", "", func(r *obeyRow) any { return r.Why }},
}

func (a *app) showStatus(ctx context.Context, workers []string) error {
	store, err := a.openKeeper(ctx)
	if err != nil {
		return err
	}
	f := &fleet.Fleet{Client: a.http, Targets: workers}
	if err := f.Check(); err != nil {
		return err
	}
	state, unusable := control.Read(ctx, store, a.flags.consumer)
	if unusable != nil && !errors.Is(unusable, control.ErrState) {
		return unusable
	}
	rows := []*obeyRow{} // [] in JSON
	if len(workers) > 0 {
		rows = obeyRows(f.Stats(ctx), a.flags.consumer, a.flags.queue, state.State)
	}
	if a.flags.json {
		err = a.printJSON(object{{"v", 1}, {"consumer", a.flags.consumer}, {"state", stateObject(state.State)}, {"error", unusable}, {"workers", rows}})
	} else {
		text := state.State.String()
		if !state.Open() {
			text += " (" + shown.Brief(time.Until(state.Until), true) + " left)"
		}
		err = errors.Join(a.printTable(nil, [][]string{{a.flags.consumer, text}}), printColumns(a, obeyColumns, rows))
	}
	silent := slices.ContainsFunc(rows, func(r *obeyRow) bool { return r.Obeys == nil })
	disobeys := slices.ContainsFunc(rows, func(r *obeyRow) bool { return r.Obeys != nil && !*r.Obeys })
	switch {
	case err != nil:
		return err
	case unusable != nil:
		return fail(exitPart, "workers ignore the record of %s: %w", a.flags.consumer, unusable)
	case disobeys:
		return fail(exitFound, "not every worker does what is asked of %s: look again in 6 s", a.flags.consumer)
	case silent:
		return fail(exitPart, "not every worker has answered")
	}
	return nil
}

func obeyRows(workers []fleet.Worker, consumer, queue string, asked control.State) (rows []*obeyRow) {
	queue = queue[strings.LastIndexAny(queue, "/:")+1:]
	for _, w := range workers {
		if w.Err != nil {
			rows = append(rows, &obeyRow{URL: w.URL, Is: "unknown", Why: w.Err.Error()})
			continue
		}
		i := slices.IndexFunc(w.Report.Controls, func(c statusreport.Control) bool { return c.Consumer == consumer })
		found := false
		for _, of := range w.Report.Workers {
			if queue != "" && of.Queue != queue {
				continue
			}
			row := &obeyRow{URL: w.URL, Queue: of.Queue, Running: statOf(of, fleet.RunningNow), Held: statOf(of, fleet.Held)}
			if i < 0 {
				row.unwatched(asked)
			} else {
				row.watched(w.Report.Controls[i], of, asked)
			}
			rows, found = append(rows, row), true
		}
		if !found {
			rows = append(rows, &obeyRow{URL: w.URL, Is: "unknown", Why: "it has no such worker"})
		}
	}
	return rows
}

func statOf(w statusreport.Worker, name string) *float64 {
	if v, ok := w.Stats[name]; ok {
		return &v
	}
	return nil
}

// unwatched is for a worker that shows no control.
func (r *obeyRow) unwatched(asked control.State) {
	r.Obeys, r.Is, r.Why = new(asked.Open()), "open", "it does not watch"
	if !asked.Open() {
		r.Is = "not " + short(asked.Paused, asked.Concurrency)
	}
}

// watched compares what a worker was told, and what it does, with what is asked.
func (r *obeyRow) watched(c statusreport.Control, w statusreport.Worker, asked control.State) {
	obeys := c.Paused == asked.Paused && c.Concurrency == asked.Concurrency
	r.Is, r.Read, r.Why = short(c.Paused, c.Concurrency), c.Read, c.Error
	switch slots := statOf(w, fleet.Concurrency); {
	case w.State != "running":
		obeys, r.Is = true, w.State // it receives nothing
	case !obeys:
		r.Is = "not " + short(asked.Paused, asked.Concurrency)
	case asked.Paused && w.Intake != "paused":
		obeys, r.Is, r.Why = false, "not paused", "it lacks the hooks of its control. If it is of another consumer, set --queue"
	case asked.Concurrency > 0 && (slots == nil || *slots > float64(asked.Concurrency)):
		obeys, r.Is, r.Why = false, "not "+short(false, asked.Concurrency), "it lacks the hooks of its control. If it is of another consumer, set --queue"
	}
	r.Obeys = &obeys
}

// short is a state in a word.
func short(paused bool, concurrency int) string {
	switch {
	case paused:
		return "paused"
	case concurrency > 0:
		return "limited"
	}
	return "open"
}
