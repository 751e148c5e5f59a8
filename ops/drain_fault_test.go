package ops_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/ops"
)

var errDiskFull = errors.New("no space left on device")

// disk is the file of an archive, and knows what would be there after a power cut.
type disk struct {
	ops.Appender
	mu              sync.Mutex
	written, synced bytes.Buffer
	writes, syncs   int
	full, bad       int // the write, and the sync, that fails, as all do after it; 0: none
}

func (d *disk) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.writes++; d.full > 0 && d.writes >= d.full {
		n, _ := d.Appender.Write(p[:len(p)/2-7]) // not at the end of a line
		return n, errDiskFull
	}
	d.written.Write(p)
	return d.Appender.Write(p)
}

func (d *disk) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.syncs++; d.bad > 0 && d.syncs >= d.bad {
		return errDiskFull
	}
	_, _ = d.written.WriteTo(&d.synced)
	return d.Appender.Sync()
}

func (d *disk) has(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return bytes.Contains(d.synced.Bytes(), []byte(`"id":"`+id+`"`))
}

// onDisk is a client that deletes only what is on the disk.
func (x *fixture) onDisk(c ops.Client, d *disk) ops.Client {
	var mu sync.Mutex
	ids := map[string]string{} // by receipt handle
	return spy{c, func(in any, call call) (any, error) {
		if in, ok := in.(*sqs.DeleteMessageBatchInput); ok {
			mu.Lock()
			for _, e := range in.Entries {
				if id := ids[*e.ReceiptHandle]; !d.has(id) {
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
		"a full disk":              {full: 3, err: errDiskFull},
		"a disk that cannot sync":  {bad: 2, err: errDiskFull},
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
		for _, fifo := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/fifo=%t", name, fifo), func(t *testing.T) {
				t.Parallel()
				bubble(t, setup{fifo: fifo}, func(x *fixture) {
					ids := map[string]bool{}
					for i := range n {
						x.send(x.dlq, fmt.Sprintf("g%d-%02d", i%4, i))
					}
					for _, m := range x.sqs.Messages(x.dlq) {
						ids[m.ID] = true
					}
					path := filepath.Join(t.TempDir(), "archive")
					file := &disk{full: tt.full, bad: tt.bad}
					ctx, cancel := context.WithCancel(context.Background())
					p := x.newProcess()
					client := x.onDisk(hooked(p.sqs, func(n int) {
						if n == tt.cancel {
							cancel()
						}
					}), file)
					d, err := ops.Open(ctx, client, x.dlq, func(o *ops.Options) { o.Key, o.Store = x.once(p).Key, x.store(p) })
					if err != nil {
						t.Fatal(err)
					}
					drain := func() (ops.Report, error) {
						d.Wrap(func(f ops.Appender) ops.Appender { file.Appender = f; return file })
						return d.Delete(ctx, path, drainAll)
					}
					x.sqs.Set(fault.Plan{Rules: tt.rules})
					x.ddb.Set(fault.Plan{Rules: tt.records})
					r, err := drain()
					x.sqs.Set(fault.Plan{})
					x.ddb.Set(fault.Plan{})
					if tt.err != nil && !errors.Is(err, tt.err) || tt.err == nil && tt.rules == nil && tt.records == nil && err != nil {
						t.Errorf("the drain ended with %v", err)
					}
					if got := r.Count(ops.ActionDeleted); tt.cancel > 0 && (got != 20 || r.Count(ops.ActionLeft) != 10) {
						t.Errorf("%d deleted, %d left", got, r.Count(ops.ActionLeft))
					}
					if got := r.Count(ops.ActionDeleted, ops.ActionUndeleted, ops.ActionLeft); got != len(r.Results) {
						t.Errorf("%d results, %d with an action", len(r.Results), got)
					}
					x.nothingLost(path, ids)
					there := map[string]bool{}
					for _, m := range x.sqs.Messages(x.dlq) {
						there[m.ID] = true
					}
					for _, res := range r.Results {
						if name != "duplicates" && res.Action == ops.ActionDeleted && there[res.ID] || res.Action == ops.ActionLeft && !there[res.ID] || (res.Err == nil) != (res.Action == ops.ActionDeleted) {
							t.Errorf("%s is %s, %v; in the queue: %t", res.ID, res.Action, res.Err, there[res.ID])
						}
					}
					ctx, file.full, file.bad = context.Background(), 0, 0
					time.Sleep(3 * time.Minute) // what could not be given back is visible
					if r, err = drain(); err != nil || len(x.bodies(x.dlq)) != 0 {
						t.Errorf("the second drain: %v, %d left", err, len(x.bodies(x.dlq)))
					}
					if torn := tt.full > 0; torn != (r.Torn > 0) {
						t.Errorf("torn: %d", r.Torn)
					}
					x.nothingLost(path, ids)
				})
			})
		}
	}
}

// nothingLost: each message is in the queue, or whole in the archive.
func (x *fixture) nothingLost(path string, ids map[string]bool) {
	x.Helper()
	found := map[string]bool{}
	for _, m := range x.sqs.Messages(x.dlq) {
		found[m.ID] = true
	}
	for _, a := range x.archived(path) {
		found[a.ID] = true
	}
	if diff := cmp.Diff(ids, found); diff != "" {
		x.Errorf("in the queue or in the archive:\n%s", diff)
	}
}

// A drain that is killed, at any call, has deleted nothing that is not in the archive, and the next one goes on.
func TestDrainKilled(t *testing.T) {
	t.Parallel()
	for _, fifo := range []bool{false, true} {
		for at := int64(2); at < 16; at++ {
			t.Run(fmt.Sprintf("fifo=%t/at=%d", fifo, at), func(t *testing.T) {
				t.Parallel()
				bubble(t, setup{fifo: fifo}, func(x *fixture) {
					ids := map[string]bool{}
					for i := range 25 {
						x.send(x.dlq, fmt.Sprintf("g%d-%02d", i%3, i))
					}
					for _, m := range x.sqs.Messages(x.dlq) {
						ids[m.ID] = true
					}
					p := x.newProcess()
					k := newKiller(p.sqs, p, filepath.Join(t.TempDir(), "archive"), at)
					d, err := ops.Open(context.Background(), k, x.dlq)
					if err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithCancel(context.Background())
					time.AfterFunc(time.Minute, cancel)
					_, _ = d.Delete(ctx, k.path, drainAll)
					k.kill()
					path := filepath.Join(t.TempDir(), "archive")
					if err := os.WriteFile(path, append(k.journal, archiveLine[:100]...), 0o600); err != nil {
						t.Fatal(err)
					}
					x.nothingLost(path, ids)
					time.Sleep(2 * time.Minute)
					r, err := x.redriver().Delete(context.Background(), path, drainAll)
					if err != nil || r.Torn == 0 || len(x.bodies(x.dlq)) != 0 {
						t.Errorf("%v, torn %d, %d left", err, r.Torn, len(x.bodies(x.dlq)))
					}
					x.nothingLost(path, ids)
				})
			})
		}
	}
}
