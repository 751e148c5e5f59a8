package ops_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// archived returns the messages of an archive, of which a last line may be torn.
func (x *fixture) archived(path string) []*ops.Message {
	x.Helper()
	return must.Get(readArchive(string(must.Get(os.ReadFile(path))(x))))(x)
}

// An export makes a listing's calls, and what it writes is what a listing shows.
func TestExport(t *testing.T) {
	t.Parallel()
	eachKind(t, "", setup{}, func(x *fixture) {
		for i := range 25 {
			x.send(x.dlq, fmt.Sprintf("a-%02d", i))
		}
		x.fill(13)
		d, path := x.open(), filepath.Join(x.TempDir(), "archive")
		must.Do(x, os.WriteFile(path, nil, 0o644)) // readable by all
		l := must.Get(x.list(d))(x)
		stopWatching := x.watch()
		r, err := d.Export(context.Background(), path)
		stopWatching()
		want, most := 38, 2 // receives
		if x.fifo {
			want, most = 23, 4 // ten of the group, which a receive may cut off
		}
		if err != nil || r.Total != 38 || len(l.Messages) != want || r.Count(ops.ActionExported) != want || len(r.Results) != want || x.hidden() != 0 {
			x.Errorf("x.fifo %t: %+v, %v; a listing of %d, %d behind", x.fifo, r, err, len(l.Messages), l.Behind)
		}
		var listed, got []ops.Message
		for _, m := range l.Messages {
			listed = append(listed, *m)
		}
		for _, a := range x.archived(path) {
			got = append(got, *a)
		}
		byID := cmpopts.SortSlices(func(a, b ops.Message) bool { return a.ID < b.ID })
		if diff := cmp.Diff(listed, got, cmpopts.IgnoreFields(ops.Message{}, "ReceiptHandle", "ReceiveCount", "Record", "LostAt", "Problem"), byID); diff != "" {
			x.Errorf("x.fifo %t: listed, and archived:\n%s", x.fifo, diff)
		}
		for _, m := range got {
			if m.ReceiveCount < 2 || m.ReceiveCount > most {
				x.Errorf("receive count %d", m.ReceiveCount)
			}
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
			x.Errorf("%v, %v", info.Mode(), err)
		}
	})
}

// deletes are the calls of something that deletes. PurgeQueue is none of them.
var deletes = append(slices.Clone(looks), "DeleteMessageBatch")

// Only what is selected is deleted, however deep it lies, and what is left keeps its order.
func TestDelete(t *testing.T) {
	t.Parallel()
	eachKind(t, "", setup{}, func(x *fixture) {
		var left []string
		for i := range 60 {
			state := dedup.StateCompleted
			if i%20 == 0 {
				state = dedup.StateReleased
			}
			if body := fmt.Sprintf("%s-%02d", state, i); i%20 == 0 {
				x.sendTo("g", body)
				left = append(left, body)
			} else {
				x.sendTo("g", body)
			}
		}
		p := x.newProcess()
		d, path := x.openIn(p, stateStore), filepath.Join(x.TempDir(), "archive")
		completed := func(o *ops.ExportOptions) { o.States = []dedup.RecordState{dedup.StateCompleted} }
		planned, err := d.Delete(context.Background(), "", completed, func(o *ops.ExportOptions) { o.DryRun = true })
		if n := planned.Count(ops.ActionPlanned); err != nil || n == 0 || n+planned.Count(ops.ActionLeft) != len(planned.Results) || len(x.bodies(x.dlq)) != 60 {
			x.Errorf("x.fifo %t, dry: %d planned, %v", x.fifo, n, err)
		}
		r, err := d.Delete(context.Background(), path, completed)
		if err != nil || r.Count(ops.ActionDeleted) != 57 || r.Count(ops.ActionLeft) != 3 || x.hidden() != 0 {
			x.Errorf("x.fifo %t: %d deleted, %d left, %v", x.fifo, r.Count(ops.ActionDeleted), r.Count(ops.ActionLeft), err)
		}
		x.wantBodies(x.dlq, strings.Join(left, " "))
		for _, a := range x.archived(path) {
			if a.State != dedup.StateCompleted {
				x.Errorf("%s is archived", a.Body)
			}
		}
		if n := len(x.archived(path)); n != 57 {
			x.Errorf("%d archived", n)
		}
		for _, op := range p.ops {
			if !slices.Contains(deletes, op) {
				x.Errorf("%s was called", op)
			}
		}
	})
}

// sendTo sends a message of a group to the dead-letter queue.
func (x *fixture) sendTo(group, body string) {
	x.Helper()
	in := &sqs.SendMessageInput{QueueUrl: &x.dlq, MessageBody: &body, MessageAttributes: attributes(map[string]sqsonce.Attribute{
		sqsonce.AttrEventID: {Type: "String", String: body}, sqsonce.AttrEventSource: {Type: "String", String: "orders"},
	})}
	if x.fifo {
		in.MessageGroupId, in.MessageDeduplicationId = &group, &body
	}
	must.Get(x.admin.sqs.SendMessage(context.Background(), in))(x)
}

// What has arrived since the start was not looked at by whoever chose, and stays.
func TestDrainEnds(t *testing.T) {
	t.Parallel()
	bubble(t, setup{fifo: true}, func(x *fixture) {
		x.fill(5)
		d := x.openHooked(x.newProcess(), func(n int) {
			for i := range 4 {
				x.send(x.dlq, fmt.Sprintf("late%d-%d", n, i))
			}
		})
		path := filepath.Join(t.TempDir(), "archive")
		r, err := d.Delete(context.Background(), path)
		if err != nil || r.Count(ops.ActionDeleted) != 5 || r.Count(ops.ActionLeft) != 4 || !errors.Is(r.Results[8].Err, ops.ErrArrivedLater) || len(x.archived(path)) != 5 || len(x.bodies(x.dlq)) != 4 {
			t.Errorf("%v, %d deleted, %d left, %d archived, %d there", err, r.Count(ops.ActionDeleted), r.Count(ops.ActionLeft), len(x.archived(path)), len(x.bodies(x.dlq)))
		}
	})
}

// A copy of a message that comes again is deleted by a drain, and only by a drain.
func TestExportOfDuplicates(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind   fault.Kind
		strict bool
	}{{kind: fault.Duplicate}, {kind: fault.ExpireEarly}, {fault.ExpireEarly, true}} {
		bubble(t, setup{strict: tt.strict}, func(x *fixture) {
			x.fill(25)
			x.sqs.Set(fault.Plan{Rules: []fault.Rule{{Op: "ReceiveMessage", Prob: 1, Do: tt.kind, Entries: []int{0, 3}}}})
			r, err := x.open().Export(context.Background(), filepath.Join(t.TempDir(), "archive"))
			if err != nil || r.Count(ops.ActionExported) == 0 || r.Count(ops.ActionExported) != len(r.Results) || len(x.bodies(x.dlq)) < 25 {
				t.Errorf("%v, %d exported of %d, %d there", err, r.Count(ops.ActionExported), len(r.Results), len(x.bodies(x.dlq)))
			}
		})
	}
}

// An archive is open once, and free again when it is closed.
func TestArchiveInUse(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "archive")
	for range 2 {
		closeArchive := must.Get(ops.OpenArchive(path))(t)
		if _, err := ops.OpenArchive(path); !errors.Is(err, ops.ErrInUse) {
			t.Error(err)
		}
		if err := closeArchive(); err != nil {
			t.Error(err)
		}
	}
}

// A message that its line does not give back as it is, is left.
func TestNotArchived(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		x.fill(2)
		d, err := ops.Open(context.Background(), spy{x.newProcess().sqs, func(_ any, call call) (any, error) {
			out, err := call()
			for _, m := range received(out, err) {
				*m.Body = "\xff" + *m.Body // no UTF-8
			}
			return out, err
		}}, x.dlq)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "archive")
		r, err := d.Delete(context.Background(), path)
		if err != nil || r.Count(ops.ActionLeft) != 2 || !errors.Is(r.Results[0].Err, ops.ErrNotArchived) || len(x.bodies(x.dlq)) != 2 || len(x.archived(path)) != 0 {
			t.Errorf("%v, %+v", err, r.Results)
		}
	})
}
