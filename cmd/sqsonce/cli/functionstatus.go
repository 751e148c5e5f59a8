package cli

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/mappings"
)

// functionRow is a mapping, and whether it is what is asked for.
type functionRow struct {
	UUID  string `json:"uuid"`
	Queue string `json:"queue"`
	asked
	OK bool `json:"obeys"`
}

// asked is what a mapping is, and what is asked of it.
type asked struct {
	Is     string    `json:"is"`
	State  string    `json:"state,omitempty"` // Lambda's
	Paused bool      `json:"paused"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Until  time.Time `json:"until,omitzero"` // of the pause, or of the schedule that a resume has brought forward
}

func askedOf(m mappings.Mapping) (a asked, ok bool) {
	a.Is, ok = m.Is()
	a.State, a.Paused = m.State, m.Paused()
	if s := m.Schedule; s != nil {
		a.By, a.Reason, a.Until = s.By, s.Reason, s.At
	}
	return a, ok
}

var functionColumns = []column[*functionRow]{
	{"MAPPING", "UUID", "", "", func(r *functionRow) any { return r.UUID }},
	{"QUEUE", "queue", "", "", func(r *functionRow) any { return r.Queue }},
	{"STATE", "state of Lambda", "", "", func(r *functionRow) any { return r.State }},
	{"IS", "what it is", "", "", func(r *functionRow) any { return r.Is }},
}

func (a *app) functionStatus(ctx context.Context, function string) error {
	_, sw, err := a.connectSwitch(ctx)
	if err != nil {
		return err
	}
	all, err := a.mappingsOf(ctx, function, sw.Look)
	if errors.Is(err, mappings.ErrForeign) {
		return fail(exitPart, "%w", err)
	}
	if err != nil {
		return err
	}
	rows := []*functionRow{}
	for _, m := range all {
		is, ok := askedOf(m)
		rows = append(rows, &functionRow{m.UUID, queueOf(m), is, ok})
	}
	if a.flags.json {
		err = a.printJSON(object{{"v", 1}, {"function", function}, {"mappings", rows}})
	} else {
		err = printColumns(a, functionColumns, rows)
	}
	if err == nil && slices.ContainsFunc(rows, func(r *functionRow) bool { return !r.OK }) {
		return fail(exitFound, "not every mapping of %s is as it is asked to be: look again in a minute", function)
	}
	return err
}

// printFunction prints the mappings before and after. Without after it is a dry run.
func (a *app) printFunction(p *functionPlan, function string, after []mappings.Mapping) error {
	before := p.of
	if len(before) == 0 {
		before = after
	}
	rows, list := [][]string{}, []object{}
	for _, m := range before {
		was, _ := askedOf(m)
		is := asked{Is: "unknown"}
		if i := slices.IndexFunc(after, func(b mappings.Mapping) bool { return b.UUID == m.UUID }); i >= 0 {
			is, _ = askedOf(after[i])
		} else if a.flags.dryRun {
			is = asked{Is: p.after, Paused: !p.to.Ended}
		}
		rows = append(rows, []string{m.UUID, queueOf(m), was.Is, is.Is})
		list = append(list, object{{"uuid", m.UUID}, {"queue", queueOf(m)}, {"before", was}, {"after", is}})
	}
	if !a.flags.json {
		return a.printTable(nil, rows)
	}
	o := object{{"v", 1}, {"operation", p.verb}, {"dry_run", a.flags.dryRun}, {"function", function}, {"mappings", list}}
	if a.flags.dryRun && len(p.of) > 0 {
		o = append(o, member{"effect", p.effect}, member{"hash", p.hash(function)})
	}
	return a.printJSON(o)
}
