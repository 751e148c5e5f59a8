package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/ops"
)

const keyArgument = `KEY is the record's key as dlq ls --messages and record ls show it: the consumer's name, a # and the event's key. With --consumer you
may give only the event's key.`

func (a *app) recordShow() *cobra.Command {
	result := false
	c := a.command("show KEY", "Show the record of an event", "Shows the record of an event, by one consistent read.\n\n"+keyArgument,
		"  sqsonce record show --table dedup 'billing#orders|ord-42'",
		cobra.ExactArgs(1), func(ctx context.Context, args []string) error { return a.showRecord(ctx, args[0], result) })
	c.Flags().BoolVar(&result, "result", false, "also show the result of the event, which dedup.Do stores")
	return a.recordFlags(c)
}

func (a *app) showRecord(ctx context.Context, arg string, result bool) error {
	r, err := a.inspect(ctx, arg)
	if err != nil {
		return err
	}
	shown := ops.NewRecord(r.Record, r.state)
	if a.flags.json {
		if result {
			shown.Data = r.Result.Data
		}
		return a.printJSON(struct {
			V int `json:"v"`
			ops.Record
		}{1, shown})
	}
	pairs := append([]pair{{"key", r.Key}, {"state", string(r.state)}, {"means", r.means()}, {"do", ops.Do(r.state)}}, a.recordPairs(shown)...)
	if result {
		pairs = append(pairs, pair{"result data", string(r.Result.Data)})
	}
	return a.printPairs(pairs)
}

// noRecord says that a key has no record, which is not to say that its event never ran.
const noRecord = "no record under this key: the consumer may use other keys or another store: docs/operating.md#own-commands"

// seen is a record as it was read. Where none was found its state is Unknown, and it has a key only.
type seen struct {
	dedup.Record
	state dedup.RecordState
}

// means says in words what the record says of its event.
func (s seen) means() string {
	if s.state == ops.StateUnknown {
		return noRecord
	}
	return ops.Means(s.state)
}

// inspect reads the record that an argument names.
func (a *app) inspect(ctx context.Context, arg string) (seen, error) {
	store, err := a.openStore(ctx)
	if err != nil {
		return seen{}, err
	}
	key, err := a.recordKey(store, arg)
	if err != nil {
		return seen{}, err
	}
	return read(ctx, store, key)
}

func read(ctx context.Context, store Store, key string) (seen, error) {
	r, err := store.Inspect(ctx, key)
	if errors.Is(err, dedup.ErrNotFound) {
		return seen{dedup.Record{Lease: dedup.Lease{Key: key}}, ops.StateUnknown}, nil
	}
	return seen{r, stateOf(r)}, err
}

func stateOf(r dedup.Record) dedup.RecordState { return ops.StateOf(r, time.Now()) }

// recordPairs are what a record says beside its state.
func (a *app) recordPairs(r ops.Record) (pairs []pair) {
	for _, f := range r.Fields() {
		pairs = append(pairs, pair{f.Label, cmp.Or(a.when(f.Time), f.Text)})
	}
	return pairs
}

type recordLsFlags struct {
	state     states
	process   string
	after     string
	limit     int
	readUnits int
}

func (a *app) recordLs() *cobra.Command {
	f := recordLsFlags{state: states{of: []dedup.RecordState{dedup.StateReleased, dedup.StateRunning, dedup.StateCrashed, dedup.StateCompleted, dedup.StateForeign}}}
	c := a.command("ls", "List the records of events that are not completed", `Lists records. Without --state it lists those that are not completed. On DynamoDB it always scans the whole table: half a read unit for
each 4 KB, at the rate of --read-units. A record may have changed seconds ago.
Crashed events are also listed by the process in which they ran. CRASHES counts since the last free or other outcome.

Lines in a pipe: `+inWords(recordColumns)+".",
		"  sqsonce record ls --table dedup --consumer billing --state crashed",
		cobra.NoArgs, func(ctx context.Context, _ []string) error { return a.listRecords(ctx, f) })
	f.state.add(c, "only records in this state")
	c.Flags().StringVar(&f.process, "process", "", "only records whose event ran last in this process: its `name`, or unknown")
	c.Flags().StringVar(&f.after, "after", "", "go on behind the record with this `key`, the last of an earlier list")
	c.Flags().IntVar(&f.limit, "limit", 1000, "list at most this many `records`. Negative: no limit")
	c.Flags().IntVar(&f.readUnits, "read-units", 100, "consume at most this many read `units` a second on DynamoDB. Negative: no limit")
	return a.recordFlags(c)
}

// recordColumns are those of a table: [ops.Record] is the list for the rest.
var recordColumns = []column[ops.Record]{
	{"KEY", "key", "", "", func(r ops.Record) any { return r.Key }},
	{"STATE", "state", "", "", func(r ops.Record) any { return r.State }},
	{"LEASE", "when its lease ends", "", "", func(r ops.Record) any { return r.LeaseUntil }},
	{"EXPIRES", "when it expires", "", "", func(r ops.Record) any { return r.ExpiresAt }},
	{"LAST ERROR", "last error", "", "", func(r ops.Record) any { return r.LastError }},
	{"", "process", "", "", func(r ops.Record) any { return r.Process }},
	{"", "when its last run started", "", "", func(r ops.Record) any { return r.Started }},
}

func (a *app) listRecords(ctx context.Context, f recordLsFlags) error {
	if f.limit == 0 {
		return fail(exitUsage, "--limit is 0")
	}
	store, err := a.openStore(ctx)
	if err != nil {
		return err
	}
	if f.state.values == nil {
		f.state.values = []dedup.RecordState{dedup.StateReleased, dedup.StateRunning, dedup.StateCrashed, dedup.StateForeign}
	}
	records, unreadable, last := []ops.Record{}, 0, ""
	for r, listErr := range store.List(ctx, func(o *dedup.ListOptions) {
		o.Consumer, o.After, o.ReadUnits, o.States = a.flags.consumer, f.after, f.readUnits, f.state.values
		if slices.Contains(o.States, dedup.StateCrashed) { // some of these were released, see ops.StateOf
			o.States = append(slices.Clone(o.States), dedup.StateReleased)
		}
	}) {
		if listErr != nil && r.Key != "" {
			unreadable++
			a.note("%s: %v", r.Key, listErr)
			continue
		}
		if err = listErr; err != nil {
			break
		}
		if of := ops.NewRecord(r, stateOf(r)); slices.Contains(f.state.values, of.State) && (f.process == "" || f.process == cmp.Or(of.Process, unknownName)) {
			records, last = append(records, of), r.Key
		}
		if len(records) == f.limit {
			break
		}
	}
	if a.flags.json {
		err = errors.Join(err, a.printJSON(object{{"v", 1}, {"records", records}, processesIn(ops.Processes(records))}))
	} else {
		err = errors.Join(err, printColumns(a, recordColumns, records), a.flush())
		lists := func(s dedup.RecordState) bool { return slices.Contains(f.state.values, s) }
		whole := err == nil && unreadable == 0 && f.after == "" && len(records) != f.limit && lists(dedup.StateCrashed) && lists(dedup.StateRunning)
		in := listed{[]string{"record", "ls"}, "the records of all consumers", whole}
		if a.flags.consumer != "" {
			in.of = "the records of consumer " + a.flags.consumer
		}
		a.noteProcesses(ops.Processes(records), in)
	}
	text := shown.Count(len(records), "record")
	if s, ok := store.(interface{ Stats() dynamostore.Stats }); ok {
		text += fmt.Sprintf(", for %.1f read units", s.Stats().ReadUnits)
	}
	if err == nil || len(records) > 0 { // a list that has failed is no 0
		a.note("%s", text)
	}
	if len(records) == f.limit {
		a.note("there may be more: %s", a.again(withoutFlag(a.args, "--after"), "--after", last))
	}
	if err == nil && unreadable > 0 {
		return fail(exitPart, "%s cannot be read", shown.Count(unreadable, "record"))
	}
	return err
}
