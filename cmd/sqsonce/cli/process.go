package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/ops"
)

const unknownName = "unknown"

// listed says what a list of events is of.
type listed struct {
	command []string // "dlq", "ls"
	of      string   // "the messages read": an event without one is missing
	whole   bool     // it has all of these: else the event that killed the process may be missing
}

// listedIn is what a listing of a dead-letter queue is of.
func listedIn(l ops.Listing, read bool) listed {
	return listed{[]string{"dlq", "ls"}, "the " + shown.Count(len(l.Messages), "message") + " read", l.Complete && read}
}

func (l listed) records() bool { return l.command[0] == "record" }

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
		a.note("make sure that the processes of crashed events are dead, by their exit status or their hosts: a frozen one goes on")
	}
	list := []string{"dlq", "ls", "--messages", "--state", strings.Join(states, ",")}
	for _, class := range classes {
		list = append(list, "--class", class)
	}
	a.note("%s: did effects happen? Write the keys of those events into the file happened, one a line, in the form of %s", strings.Join(of, ", "), key)
	a.note("This command completes those events, and the others are free, whatever their states. Read its plan, then set --yes in place of --dry-run%s:\n  %s | cut -f5 | %s",
		next, a.hint("", list...), a.hint("", "record", "free", "-", "--done", "happened", "--note", "by the ledger", "--dry-run"))
}

// noteProcesses says which events ran where processes died, and how to go on.
func (a *app) noteProcesses(died []ops.Process, in listed) {
	processes, earlier := ops.Newest(died)
	if earlier > 0 {
		a.note("%d more processes died before: --json has all", earlier)
	}
	for _, p := range processes {
		a.note("process %s: %d crashed of %s, in the order of their starts. What to do: docs/runbook.md#takeovers", cmp.Or(p.Name, unknownName), p.Crashed, in.of)
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
		a.adviseProcess(p, in)
	}
}

// adviseProcess says how to free the neighbours of a suspect, or how to find the killer among several.
func (a *app) adviseProcess(p ops.ShownProcess, in listed) {
	switch {
	case p.Name == "":
		a.note("their records do not say in which process they ran: an earlier version wrote them")
		return
	case !in.whole:
		a.note("this list is not whole, and may lack the event that started last. Before you free any of these, list all: %s", a.hint(p.Suspect, slices.Concat(in.command, []string{"--limit", "-1"})...))
		return
	case !in.records():
		a.note("an event of this process whose message is still in its source queue is not in this list, and may have started last. To read all records: %s", a.hint(p.Suspect, "record", "ls", "--process", p.Name))
	}
	a.note("make sure that the process is dead, by its exit status or its host: a frozen one goes on")
	without := ""
	switch {
	case p.Only:
		a.note("%s is the only one of this process that is left. Others may have been freed or completed", p.Suspect)
		a.note("%s", ops.CrashedWith(p.Suspect))
	case p.Suspects == 1:
		a.note("%s started last. If it kills its process, free its neighbours only", p.Suspect)
		without = p.Suspect
	case in.records():
		a.note("%d suspects started within a second. If you know the one that kills, leave out its KEY. Else wait until their messages are in the dead-letter queue, because the redrive runs them one by one. A message in its source queue runs as soon as you free its event", p.Suspects)
	default:
		a.note("%d suspects started within a second. If you know the one that kills, add --except KEY. Else the redrive runs them one by one", p.Suspects)
	}
	a.note("write the keys whose effects happened into the file happened. If none happened, or with an inbox, use --none-happened instead of --done happened. Then: %s", a.freeProcess(p, in, without))
}

// freeProcess is the command that frees the crashed events of a process, without one. A record names neither its queue nor who made its
// key, so a list of records names the keys.
func (a *app) freeProcess(p ops.ShownProcess, in listed, without string) string {
	command := []string{"record", "free"}
	flags := []string{"--process", p.Name, "--done", "happened", "--note", "by the ledger"}
	if in.records() && p.Earlier == 0 {
		for _, e := range p.Events {
			if e.State == dedup.StateCrashed && e.Key != without {
				command = append(command, e.Key)
			}
		}
		return a.hint("", append(command, flags...)...) // of several consumers
	}
	if in.records() {
		a.note("QUEUE in the next command is the source queue of these events, which their records do not name. Under a key function run it by your own program: docs/operating.md#own-commands")
		flags = append(flags, "--queue", "QUEUE")
	}
	if without != "" {
		flags = append(flags, "--except", without)
	}
	return a.hint(p.Suspect, append(command, flags...)...)
}

// neighboursOf lists the dead-letter queue, and returns the keys of the events that crashed in the process, in the order of their starts,
// without those of except. A key of except that did not run in the process refuses all: a mistyped one would free the killer.
func (a *app) neighboursOf(ctx context.Context, process string, except []string) (keys, kept []string, err error) {
	store, err := a.openStore(ctx)
	if err != nil {
		return nil, nil, err
	}
	if kept, err = a.keysOf(store, except); err != nil {
		return nil, nil, err
	}
	listing, url, err := a.look(ctx)
	if err == nil {
		a.summary(listing, url)
		err = unread(listing.Messages)
	}
	if err != nil {
		return nil, nil, err
	}
	for _, p := range ops.Processes(ops.RecordsOf(listing.Messages)) {
		for _, e := range p.Events {
			if cmp.Or(p.Name, unknownName) == process && e.State == dedup.StateCrashed {
				keys = append(keys, e.Key)
			}
		}
	}
	if len(keys) == 0 {
		return nil, nil, fail(exitRefused, "no message here is of an event that crashed in process %s: nothing was changed. The processes: %s", process, a.hint("", "dlq", "ls"))
	}
	for _, key := range kept {
		if slices.Contains(keys, key) {
			continue
		}
		r, err := read(ctx, store, key) // it may be running yet, or have no message here
		if err != nil {
			return nil, nil, err
		}
		if name, _ := r.LastRun(); name != process {
			return nil, nil, fail(exitRefused, "%s is none of the events that ran in process %s: nothing was changed", key, process)
		}
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { return slices.Contains(kept, key) })
	if len(keys) == 0 {
		return nil, nil, fail(exitRefused, "--except names all events that crashed in process %s: nothing was changed", process)
	}
	return keys, kept, nil
}

// processesIn is the member of a listing in JSON.
func processesIn(died []ops.Process) member {
	if len(died) == 0 {
		died = nil
	}
	return member{"processes,omitzero", died}
}
