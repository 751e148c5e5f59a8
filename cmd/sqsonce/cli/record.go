package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/ops"
)

const keyArgument = `KEY is the record's key, as dlq ls --messages and record ls show it: the consumer's name, a # and the event's key. With --consumer it may
be the event's key alone.`

func (a *app) recordShow() *cobra.Command {
	result := false
	c := a.command("show KEY", "Show the record of an event", "Shows the record of an event, by one consistent read.\n\n"+keyArgument,
		"  sqsonce record show --table dedup 'billing#orders|ord-42'",
		cobra.ExactArgs(1), func(ctx context.Context, args []string) error { return a.showRecord(ctx, args[0], result) })
	c.Flags().BoolVar(&result, "result", false, "also show the result of the event, which dedup.Do stores")
	return a.recordFlags(c)
}

func (a *app) showRecord(ctx context.Context, arg string, result bool) error {
	_, r, err := a.inspect(ctx, arg)
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(struct {
			V int `json:"v"`
			recordJSON
		}{1, newRecordJSON(r.Record, r.state, result)})
	}
	pairs := append([]pair{{"key", r.Key}, {"state", string(r.state)}, {"means", r.means()}, {"do", ops.Do(r.state)}}, a.recordPairs(r.Record)...)
	if result {
		pairs = append(pairs, pair{"result data", string(r.Result.Data)})
	}
	return a.printPairs(pairs)
}

// noRecord says that a key has no record, which is not to say that its event never ran.
const noRecord = "no record under this key: the consumer may use a key function or another store"

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
func (a *app) inspect(ctx context.Context, arg string) (Store, seen, error) {
	store, err := a.openStore(ctx)
	if err != nil {
		return nil, seen{}, err
	}
	key, err := a.recordKey(store, arg)
	if err != nil {
		return nil, seen{}, err
	}
	r, err := read(ctx, store, key)
	return store, r, err
}

func read(ctx context.Context, store Store, key string) (seen, error) {
	r, err := store.Inspect(ctx, key)
	if errors.Is(err, dedup.ErrNotFound) {
		return seen{dedup.Record{Lease: dedup.Lease{Key: key}}, ops.StateUnknown}, nil
	}
	return seen{r, stateOf(r)}, err
}

func stateOf(r dedup.Record) dedup.RecordState { return dedup.RecordState(r.State(time.Now())) }

// recordPairs are what a record says beside its state.
func (a *app) recordPairs(r dedup.Record) []pair {
	pairs := []pair{
		{"last error", r.LastError}, {"owner", r.Owner}, {"lease until", a.when(r.Until)}, {"expires", a.when(r.ExpiresAt)},
		{"validation", r.Validation},
	}
	if r.Fence != 0 {
		pairs = append(pairs, pair{"fence", strconv.FormatInt(r.Fence, 10)})
	}
	if r.ReceiveCount > 0 {
		pairs = append(pairs, pair{"receive count", strconv.Itoa(r.ReceiveCount)})
	}
	if r.Committed {
		pairs = append(pairs, pair{"committed", "with the effect in one transaction: a second run makes it again"})
	}
	if n := len(r.Result.Data); n > 0 {
		pairs = append(pairs, pair{"result", fmt.Sprintf("%d bytes", n)})
	}
	return pairs
}

// recordJSON is a record.
type recordJSON struct {
	Key          string            `json:"key"`
	State        dedup.RecordState `json:"state"`
	Do           string            `json:"do,omitempty"`
	LastError    string            `json:"last_error,omitempty"`
	Owner        string            `json:"owner,omitempty"`
	Fence        int64             `json:"fence,omitempty"`
	ReceiveCount int               `json:"receive_count,omitempty"`
	LeaseUntil   time.Time         `json:"lease_until,omitzero"`
	ExpiresAt    time.Time         `json:"expires_at,omitzero"`
	Committed    bool              `json:"committed,omitempty"`
	Validation   string            `json:"validation,omitempty"`
	ResultBytes  int               `json:"result_bytes,omitempty"`
	Result       []byte            `json:"result,omitempty"` // in base64
}

func newRecordJSON(r dedup.Record, s dedup.RecordState, result bool) recordJSON {
	out := recordJSON{
		Key: r.Key, State: s, Do: ops.Do(s), LastError: r.LastError, Owner: r.Owner, Fence: r.Fence, ReceiveCount: r.ReceiveCount,
		LeaseUntil: r.Until.UTC(), ExpiresAt: r.ExpiresAt.UTC(), Committed: r.Committed, Validation: r.Validation,
		ResultBytes: len(r.Result.Data),
	}
	if result {
		out.Result = r.Result.Data
	}
	return out
}

type recordLsFlags struct {
	state     states
	after     string
	limit     int
	readUnits int
}

func (a *app) recordLs() *cobra.Command {
	f := recordLsFlags{state: states{of: []dedup.RecordState{dedup.StateReleased, dedup.StateRunning, dedup.StateCrashed, dedup.StateCompleted, dedup.StateForeign}}}
	c := a.command("ls", "List the records of events that are not completed", `Lists records, without --state those that are not completed. On DynamoDB that scans the whole table, whatever it lists: half a read
unit for each 4 KB, so many in a second as --read-units says. A record may be as it was seconds before.

Lines in a pipe: `+inWords(recordColumns)+".",
		"  sqsonce record ls --table dedup --consumer billing --state crashed",
		cobra.NoArgs, func(ctx context.Context, _ []string) error { return a.listRecords(ctx, f) })
	f.state.add(c, "only records in this state")
	c.Flags().StringVar(&f.after, "after", "", "go on behind the record with this `key`, the last of an earlier list")
	c.Flags().IntVar(&f.limit, "limit", 1000, "how many `records` are listed at most; negative: no limit")
	c.Flags().IntVar(&f.readUnits, "read-units", 100, "how many read `units` a second are consumed on DynamoDB; negative: as many as it can")
	return a.recordFlags(c)
}

var recordColumns = []shownColumn[recordJSON]{
	{"KEY", "key", func(_ *app, r recordJSON) string { return r.Key }},
	{"STATE", "state", func(_ *app, r recordJSON) string { return string(r.State) }},
	{"LEASE", "when its lease ends", func(a *app, r recordJSON) string { return a.when(r.LeaseUntil) }},
	{"EXPIRES", "when it expires", func(a *app, r recordJSON) string { return a.when(r.ExpiresAt) }},
	{"LAST ERROR", "last error", func(_ *app, r recordJSON) string { return r.LastError }},
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
	records, unreadable := []recordJSON{}, 0
	for r, listErr := range store.List(ctx, func(o *dedup.ListOptions) {
		o.Consumer, o.After, o.Limit, o.ReadUnits = a.flags.consumer, f.after, f.limit, f.readUnits
		for _, s := range f.state.values {
			o.States = append(o.States, dedup.RecordState(s))
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
		records = append(records, newRecordJSON(r, stateOf(r), false))
	}
	if a.flags.json {
		err = errors.Join(err, a.printJSON(struct {
			V       int          `json:"v"`
			Records []recordJSON `json:"records"`
		}{1, records}))
	} else {
		err = errors.Join(err, printColumns(a, recordColumns, records))
	}
	if s, ok := store.(interface{ Stats() dynamostore.Stats }); ok {
		a.note("%d records, for %.1f read units", len(records), s.Stats().ReadUnits)
	}
	if len(records) == f.limit {
		a.note("there may be more: --after '%s'", records[len(records)-1].Key)
	}
	if err == nil && unreadable > 0 {
		return fail(exitPart, "%d records cannot be read", unreadable)
	}
	return err
}
