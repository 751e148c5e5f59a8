package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/opserr"
	"github.com/sqsonce/sqsonce/ops"
)

// resultJSON is what became of a message.
type resultJSON struct {
	V           int               `json:"v"`
	Event       string            `json:"event"` // "result"
	ID          string            `json:"id"`
	Action      ops.Action        `json:"action"`
	Why         string            `json:"why,omitempty"`
	Error       string            `json:"error,omitempty"`
	State       dedup.RecordState `json:"state,omitempty"`
	Class       string            `json:"class,omitempty"`
	Key         string            `json:"key,omitempty"`
	Group       string            `json:"group,omitempty"`
	Destination string            `json:"destination,omitempty"`
	SentID      string            `json:"sent_id,omitempty"`
	After       dedup.RecordState `json:"after,omitempty"`
	CameBack    bool              `json:"came_back,omitempty"` // this run has sent it before
}

func newResultJSON(res *ops.Result) resultJSON {
	out := resultJSON{
		V: 1, Event: "result", ID: res.ID, Action: res.Action, Why: why(res), State: res.State, Class: res.Class.ID, Key: res.RecordKey, Group: res.Group,
		Destination: host.QueueName(res.Destination), SentID: res.SentID, After: res.After, CameBack: errors.Is(res.Err, opserr.ErrCameBack),
	}
	if res.Err != nil {
		out.Error = res.Err.Error()
	}
	return out
}

// count is how many messages had the same end.
type count struct {
	Action ops.Action `json:"action"`
	Count  int        `json:"count"`
	Why    string     `json:"why,omitempty"`
}

func countsOf(r ops.Report) []count {
	counts := []count{} // [] in JSON
	for _, res := range r.Results {
		i := slices.IndexFunc(counts, func(c count) bool { return c.Action == res.Action && c.Why == why(res) })
		if i < 0 {
			i = len(counts)
			counts = append(counts, count{Action: res.Action, Why: why(res)})
		}
		counts[i].Count++
	}
	slices.SortStableFunc(counts, func(a, b count) int {
		return cmp.Or(-cmp.Compare(a.Action, b.Action), b.Count-a.Count, cmp.Compare(a.Why, b.Why))
	})
	return counts
}

// printEvent prints a line of --json at once.
func (a *app) printEvent(v any) error {
	if err := a.printJSON(v); err != nil {
		return err
	}
	return a.flush()
}

func (a *app) flush() error {
	if out, ok := a.out.(interface{ Flush() error }); ok {
		if err := out.Flush(); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
	}
	return nil
}
