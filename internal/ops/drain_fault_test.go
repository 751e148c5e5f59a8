package ops_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// onDisk is a client that deletes only what is on the disk.
func (x *fixture) onDisk(c ops.Client, d *disk) ops.Client {
	var mu sync.Mutex
	ids := map[string]string{} // by receipt handle
	return spy{c, func(in any, call call) (any, error) {
		if in, ok := in.(*sqs.DeleteMessageBatchInput); ok {
			mu.Lock()
			for _, e := range in.Entries {
				if id := ids[*e.ReceiptHandle]; !d.has(`"id":"` + id + `"`) {
					x.Errorf("%s is deleted before its line is on the disk", id)
				}
			}
			mu.Unlock()
		}
		out, err := call()
		mu.Lock()
		defer mu.Unlock()
		for _, m := range received(out, err) {
			ids[*m.ReceiptHandle] = *m.MessageId
		}
		return out, err
	}}
}

// Whatever fails, nothing is deleted without its line on the disk, and the next drain to the same file has the rest.
func TestDrainFaults(t *testing.T) {
	t.Parallel()
	const n = 35
	type faults struct {
		rules, records []fault.Rule // of SQS, and of DynamoDB
		full, bad      int
		cancel         int // before this receive
		err            error
	}
	for name, tt := range map[string]faults{
		"no fault":                 {},
		"a full disk":              {full: 3, err: errDisk},
		"a disk that cannot sync":  {bad: 2, err: errDisk},
		"cancelled":                {cancel: 3, err: context.Canceled},
		"throttled receives":       {rules: []fault.Rule{{Op: "ReceiveMessage", Prob: 0.5, Do: fault.Error, Code: "RequestThrottled"}}},
		"throttled deletes":        {rules: []fault.Rule{{Op: "DeleteMessageBatch", Prob: 0.5, Do: fault.Error, Code: "RequestThrottled"}}},
		"throttled records":        {records: []fault.Rule{{Op: "GetItem", Prob: 0.5, Do: fault.Error, Code: "ThrottlingException"}}},
		"all deletes are refused":  {rules: []fault.Rule{{Op: "DeleteMessageBatch", Prob: 1, Do: fault.Error, Code: "AccessDeniedException"}}},
		"lost replies of deletes":  {rules: []fault.Rule{{Op: "DeleteMessageBatch", Prob: 0.5, Do: fault.LoseReply}}},
		"deletes that fail":        {rules: []fault.Rule{{Op: "DeleteMessageBatch", Nth: 1, Times: 4, Do: fault.FailEntries, Entries: []int{1}}}},
		"deletes without answer":   {rules: []fault.Rule{{Op: "DeleteMessageBatch", Nth: 1, Times: 4, Do: fault.DropEntries, Entries: []int{0}}}},
		"always visible early":     {rules: []fault.Rule{{Op: "ReceiveMessage", Prob: 1, Do: fault.ExpireEarly}}},
		"duplicates":               {rules: []fault.Rule{{Op: "ReceiveMessage", Prob: 0.4, Do: fault.Duplicate, Entries: []int{0, 3}}}},
		"lost replies of receives": {rules: []fault.Rule{{Op: "ReceiveMessage", Nth: 2, Do: fault.LoseReply}}},
		"slow records":             {records: []fault.Rule{{Op: "GetItem", Nth: 1, Times: 20, Do: fault.Delay, Delay: 100 * time.Second}}},
	} {
		eachKind(t, name, setup{}, func(x *fixture) {
			x.fillGroups(n, 4)
			ids := x.ids()
			path := filepath.Join(x.TempDir(), "archive")
			file := &disk{failWrite: tt.full, failSync: tt.bad, half: true}
			ctx, cancel := context.WithCancel(context.Background())
			p := x.newProcess()
			client := x.onDisk(hooked(p.sqs, func(n int) {
				if n == tt.cancel {
					cancel()
				}
			}), file)
			d := must.Get(ops.Open(ctx, client, x.dlq, func(o *ops.Options) { o.Key, o.Store = x.once(p).Key, x.store(p) }))(x)
			drain := func() (ops.Report, error) {
				d.Wrap(func(f ops.Appender) ops.Appender { file.Appender = f; return file })
				return d.Delete(ctx, path)
			}
			x.sqs.Set(fault.Plan{Rules: tt.rules})
			x.ddb.Set(fault.Plan{Rules: tt.records})
			r, err := drain()
			x.sqs.Set(fault.Plan{})
			x.ddb.Set(fault.Plan{})
			if tt.err != nil && !errors.Is(err, tt.err) || tt.err == nil && tt.rules == nil && tt.records == nil && err != nil {
				x.Errorf("the drain ended with %v", err)
			}
			if got := r.Count(ops.ActionDeleted); tt.cancel > 0 && (got != 20 || r.Count(ops.ActionLeft) != 10) {
				x.Errorf("%d deleted, %d left", got, r.Count(ops.ActionLeft))
			}
			if got := r.Count(ops.ActionDeleted, ops.ActionUndeleted, ops.ActionLeft); got != len(r.Results) {
				x.Errorf("%d results, %d with an action", len(r.Results), got)
			}
			x.nothingLost(path, ids)
			there := x.ids()
			for _, res := range r.Results {
				if name != "duplicates" && res.Action == ops.ActionDeleted && there[res.ID] || res.Action == ops.ActionLeft && !there[res.ID] || (res.Err == nil) != (res.Action == ops.ActionDeleted) {
					x.Errorf("%s is %s, %v; in the queue: %t", res.ID, res.Action, res.Err, there[res.ID])
				}
			}
			ctx = context.Background()
			file.mend()
			time.Sleep(3 * time.Minute) // what could not be given back is visible
			if r, err = drain(); err != nil || len(x.bodies(x.dlq)) != 0 {
				x.Errorf("the second drain: %v, %d left", err, len(x.bodies(x.dlq)))
			}
			if torn := tt.full > 0; torn != (r.Torn > 0) {
				x.Errorf("torn: %d", r.Torn)
			}
			x.nothingLost(path, ids)
		})
	}
}

// nothingLost: each message is in the queue, or whole in the archive.
func (x *fixture) nothingLost(path string, ids map[string]bool) {
	x.Helper()
	found := x.ids()
	for _, a := range x.archived(path) {
		found[a.ID] = true
	}
	if diff := cmp.Diff(ids, found); diff != "" {
		x.Errorf("in the queue or in the archive:\n%s", diff)
	}
}
