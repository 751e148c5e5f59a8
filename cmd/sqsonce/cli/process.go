package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/ops"
)

const unknownName = "unknown"

// noteLedger prints the commands that complete or free all released and crashed events at once, by a list of those whose effects happened.
// Those that crashed in one process have a command of their own. Of a list that is not whole it leaves crashed ones out.
func (a *app) noteLedger(found []*ops.Message, died []ops.Process, whole bool, classes []string) {
	counts := map[dedup.RecordState]int{}
	key := ""
	for _, m := range found {
		if m.State == dedup.StateReleased || m.State == dedup.StateCrashed && whole {
			counts[m.State]++
			key = m.RecordKey
		}
	}
	if len(counts) == 0 || counts[dedup.StateReleased] == 0 && len(died) < 2 {
		return
	}
	var of, states []string
	for _, s := range []dedup.RecordState{dedup.StateReleased, dedup.StateCrashed} {
		if counts[s] > 0 {
			of, states = append(of, fmt.Sprintf("%d %s", counts[s], s)), append(states, string(s))
		}
	}
	next := ""
	if counts[dedup.StateCrashed] > 0 {
		next = ". The redrive that it prints ends at an event that kills its process"
		a.note("make sure that the processes of crashed events are dead, by their exit status or their hosts: a paused one goes on")
	}
	list := []string{"dlq", "ls", "--messages", "--state", strings.Join(states, ",")}
	for _, class := range classes {
		list = append(list, "--class", class)
	}
	a.note("%s: did effects happen? Write the keys of those events into the file happened, one a line, in the form of %s", strings.Join(of, ", "), key)
	a.note("This command completes those events, and the others are free, whatever their states. Read its plan, then set --yes in place of --dry-run%s:\n  %s | cut -f5 | %s",
		next, a.hint("", list...), a.hint("", "record", "free", "-", "--done", "happened", "--note", "by the ledger", "--dry-run"))
}

// noteProcesses says which events ran where processes died, and how to go on. Of a list that is not whole it says only the words of the
// command that lists all: the event that killed the process may be missing.
func (a *app) noteProcesses(died []ops.Process, whole bool, all ...string) {
	processes, earlier := ops.Newest(died)
	if earlier > 0 {
		a.note("%d more processes died before: --json has all", earlier)
	}
	for _, p := range processes {
		a.note("process %s: %d crashed, in the order of their starts. What to do: docs/runbook.md#takeovers", cmp.Or(p.Name, unknownName), p.Crashed)
		if p.Earlier > 0 {
			a.note("%d started before these: --json has all", p.Earlier)
		}
		rows := make([][]string, len(p.Events))
		for i, e := range p.Events {
			started := ""
			if !e.Started.IsZero() {
				started = e.Started.UTC().Format("2006-01-02 15:04:05.000")
			}
			rows[i] = []string{started, string(e.Part), string(e.State), strconv.Itoa(e.Crashes), e.Key}
		}
		_ = writeTable(a.err, cmp.Or(a.width, 120), []string{"STARTED (UTC)", "PART", "STATE", "CRASHES", "KEY"}, rows) // a note, too
		a.adviseProcess(p, whole, all)
	}
}

// adviseProcess says how to free the neighbours of a suspect, or how to find the killer among several.
func (a *app) adviseProcess(p ops.ShownProcess, whole bool, all []string) {
	free := func(flags ...string) string {
		return a.hint(p.Suspect, slices.Concat([]string{"record", "free", "--process", p.Name}, flags, []string{"--done", "happened", "--note", "by the ledger"})...)
	}
	const first = "Before that write the keys whose effects happened into the file happened. If none happened, or with an inbox, --none-happened stands in place of --done happened"
	if whole && p.Name != "" {
		a.note("make sure that the process is dead, by its exit status or its host: a paused one goes on")
	}
	switch {
	case p.Name == "":
		a.note("their records do not say in which process they ran: an earlier version wrote them")
	case !whole:
		a.note("this list is not whole, and may lack the event that started last. Before you free any of these, list all: %s", a.hint(p.Suspect, slices.Concat(all, []string{"--limit", "-1"})...))
	case p.Only:
		a.note("%s is the only one of this process that is left. Others may have been freed or completed", p.Suspect)
		a.note("%s. %s: %s", ops.CrashedWith(p.Suspect), first, free())
	case p.Suspects == 1:
		a.note("%s started last. If it kills its process, free its neighbours only. %s: %s", p.Suspect, first, free("--except", p.Suspect))
	default:
		a.note("%d suspects started within a second. If you know the one that kills, free its neighbours with --except KEY. Else the redrive runs them one by one. %s: %s", p.Suspects, first, free())
	}
}

// neighbours are the crashed events of a process whose messages are in the dead-letter queue.
type neighbours struct {
	keys    []string          // of their records, in the order of their starts
	classes map[string]string // of their messages, by these
	kept    []string          // the keys of --except
}

// neighboursOf lists the dead-letter queue. A key of except that did not run in the process refuses all: a mistyped one would free the killer.
func (a *app) neighboursOf(ctx context.Context, process string, except []string) (n neighbours, err error) {
	store, err := a.openStore(ctx)
	if err != nil {
		return n, err
	}
	if n.kept, err = a.keysOf(store, except); err != nil {
		return n, err
	}
	listing, url, err := a.look(ctx)
	if err == nil {
		a.summary(listing, url)
		err = unread(listing.Messages)
	}
	if err != nil {
		return n, err
	}
	n.classes = map[string]string{}
	for _, m := range listing.Messages {
		n.classes[m.RecordKey] = m.Class.ID
	}
	for _, p := range ops.Processes(ops.RecordsOf(listing.Messages)) {
		for _, e := range p.Events {
			if cmp.Or(p.Name, unknownName) == process && e.State == dedup.StateCrashed {
				n.keys = append(n.keys, e.Key)
			}
		}
	}
	if len(n.keys) == 0 {
		return n, fail(exitRefused, "no message here is of an event that crashed in process %s: nothing was changed. The processes: %s", process, a.hint("", "dlq", "ls"))
	}
	for _, key := range n.kept {
		if slices.Contains(n.keys, key) {
			continue
		}
		r, err := read(ctx, store, key) // it may be running yet, or have no message here
		if err != nil {
			return n, err
		}
		if name, _ := r.LastRun(); name != process {
			return n, fail(exitRefused, "%s is none of the events that ran in process %s: nothing was changed", key, process)
		}
	}
	n.keys = slices.DeleteFunc(n.keys, func(key string) bool { return slices.Contains(n.kept, key) })
	if len(n.keys) == 0 {
		return n, fail(exitRefused, "--except names all events that crashed in process %s: nothing was changed", process)
	}
	return n, nil
}

// processesIn is the member of a listing in JSON.
func processesIn(died []ops.Process) member {
	if len(died) == 0 {
		died = nil
	}
	return member{"processes,omitzero", died}
}
