package ops_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// Whatever fails, what a restore says of a message is so, and a second one restores the rest.
func TestRestoreFaults(t *testing.T) {
	t.Parallel()
	const n = 25
	for name, rules := range map[string][]fault.Rule{
		"no fault":                 nil,
		"lost replies of sends":    {{Op: "SendMessageBatch", Nth: 1, Times: 2, Do: fault.LoseReply}},
		"no reply of a send":       {{Op: "SendMessageBatch", Prob: 1, Do: fault.LoseReply}},
		"sends that do not arrive": {{Op: "SendMessageBatch", Nth: 2, Times: 3, Do: fault.Reset}},
		"throttled sends":          {{Op: "SendMessageBatch", Prob: 0.5, Do: fault.Error, Code: "RequestThrottled"}},
		"refused":                  {{Op: "SendMessageBatch", Nth: 2, Times: 99, Do: fault.Error, Code: "AccessDeniedException"}},
		"entries that are refused": {{Op: "SendMessageBatch", Nth: 1, Times: 2, Do: fault.FailEntries, Entries: []int{0, 1}, Code: "InvalidMessageContents"}},
		"a send that comes late":   {{Op: "SendMessageBatch", Nth: 1, Times: 3, Do: fault.Replay, Delay: 20 * time.Second}},
	} {
		eachKind(t, name, setup{}, func(x *fixture) {
			x.fillGroups(n, 4)
			d := x.redriver()
			archive := x.drained(d)
			journal := func(o *ops.RestoreOptions) { o.Journal = filepath.Join(x.TempDir(), "journal") }
			x.sqs.Set(fault.Plan{Rules: rules})
			r, err := d.Restore(context.Background(), bytes.NewReader(archive), journal)
			x.sqs.Set(fault.Plan{})
			if failed := r.Count(ops.ActionSendFailed, ops.ActionUnknownOutcome, ops.ActionLeft) > 0; rules == nil && failed || name == "refused" && (err == nil || !strings.Contains(err.Error(), "sqs:SendMessage")) {
				x.Errorf("%v, %+v", err, r)
			}
			if r.Count(ops.ActionRestored, ops.ActionSendFailed, ops.ActionUnknownOutcome, ops.ActionLeft) != len(r.Results) {
				x.Errorf("%+v", r)
			}
			there := x.bodies(x.dlq)
			slices.Sort(there) // on a standard queue a copy may be there twice
			there = slices.Compact(there)
			if certain := r.Count(ops.ActionRestored); len(there) < certain || len(there) > certain+r.Count(ops.ActionUnknownOutcome) {
				x.Errorf("%d restored, %d unknown, %d there", certain, r.Count(ops.ActionUnknownOutcome), len(there))
			}
			again := x.restore(d, archive, journal)
			if again.Count(ops.ActionRestored) != n {
				x.Errorf("%d restored by the second one", again.Count(ops.ActionRestored))
			}
			last, found := map[string]string{}, map[string]bool{}
			for _, body := range x.bodies(x.dlq) {
				if found[body] = true; x.fifo && body < last[body[:2]] {
					x.Errorf("%s is behind %s", body, last[body[:2]])
				}
				last[body[:2]] = body
			}
			if len(found) != n {
				x.Errorf("%d found", len(found))
			}
		})
	}
}

// A restore that is cancelled sends no more, and says what was not sent.
func TestRestoreCancelled(t *testing.T) {
	t.Parallel()
	bubble(t, setup{fifo: true}, func(x *fixture) {
		for i := range 30 {
			x.send(x.dlq, fmt.Sprintf("a-%02d", i))
		}
		d := x.redriver()
		archive := x.drained(d)
		ctx, cancel := context.WithCancelCause(context.Background())
		n := 0
		r, err := d.Restore(ctx, bytes.NewReader(archive), func(o *ops.RestoreOptions) {
			o.Filter = func(*ops.Message) bool {
				if n++; n == 15 {
					cancel(errCard)
				}
				return true
			}
		})
		if !errors.Is(err, errCard) || r.Count(ops.ActionRestored) != 14 || len(x.bodies(x.dlq)) != 14 || len(r.Results) != 20 {
			t.Errorf("%v, %d restored, %d there, %d results", err, r.Count(ops.ActionRestored), len(x.bodies(x.dlq)), len(r.Results))
		}
	})
}
