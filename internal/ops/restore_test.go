package ops_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
)

// drained drains the queue into an archive, and returns that.
func (x *fixture) drained(d *ops.DLQ) []byte {
	x.Helper()
	path := filepath.Join(x.TempDir(), "archive")
	for tries := 0; tries < 5 && len(x.bodies(x.dlq)) > 0; tries++ { // a receive may find nothing in a small queue
		must.Get(d.Delete(context.Background(), path))(x)
	}
	return must.Get(os.ReadFile(path))(x)
}

// restore restores an archive.
func (x *fixture) restore(d *ops.DLQ, archive []byte, optFns ...func(*ops.RestoreOptions)) ops.Report {
	x.Helper()
	r := must.Get(d.Restore(context.Background(), bytes.NewReader(archive), optFns...))(x)
	for _, res := range r.Results {
		if (res.Err == nil) != (res.Action == ops.ActionRestored || res.Action == ops.ActionPlanned) {
			x.Errorf("%s is %s, %v", res.ID, res.Action, res.Err)
		}
	}
	if r.Count(ops.ActionRestored, ops.ActionPlanned, ops.ActionLeft) != len(r.Results) || r.Total != len(r.Results) {
		x.Errorf("%d results of %d", len(r.Results), r.Total)
	}
	return r
}

// shown is what a listing shows of a message that does not change by way of an archive.
type shown struct {
	Source, Key, Reason, Problem, Group, Trace string
	Class                                      ops.Class
	Cause                                      ops.Cause
	State                                      dedup.RecordState
	Expired                                    bool
	Redriven                                   int
	Attributes                                 map[string]sqsonce.Attribute
}

func shownOf(m *ops.Message) shown {
	s := shown{m.QueueARN, m.RecordKey, m.Reason, "", m.Group, m.TraceHeader, m.Class, m.Cause, m.State, m.Expired, m.Redriven, map[string]sqsonce.Attribute{}}
	for name, a := range m.Attributes {
		if name != sqsonce.AttrDeadLetterSource && name != sqsonce.AttrEventKey { // which a restore may add
			s.Attributes[name] = a
		}
	}
	switch {
	case errors.Is(m.Problem, ops.ErrNoRecord):
		s.Problem = ops.ErrNoRecord.Error()
	case m.Problem != nil:
		s.Problem = strings.ReplaceAll(m.Problem.Error(), m.ID, "ID")
	}
	return s
}

// roundTrip drains and restores the queue, twice. A listing shows each message, by body, as before.
func (x *fixture) roundTrip(optFns ...func(*ops.Options)) {
	x.Helper()
	d := x.openIn(x.newProcess(), optFns...)
	before := x.mustList(d)
	for range 2 {
		archive := x.drained(d)
		time.Sleep(time.Minute)
		if r := x.restore(d, archive); r.Count(ops.ActionRestored) != len(before) {
			for _, res := range r.Results {
				x.Errorf("%s: %v", res.Action, res.Err)
			}
		}
		after := x.mustList(d)
		for body, m := range before {
			if after[body] == nil {
				x.Errorf("%.40s is lost", body)
			} else if diff := cmp.Diff(shownOf(m), shownOf(after[body])); diff != "" {
				x.Errorf("%.40s, listed before and after:\n%s", body, diff)
			}
		}
	}
}

// Messages of several queues come back with what they said of these, and with a source that Options say.
func TestRestoreOfSeveralSources(t *testing.T) {
	t.Parallel()
	const other = arnPrefix + "other"
	bubble(t, setup{}, func(x *fixture) {
		url := x.create("other", x.redrive("jobs-dlq", 3))
		id := map[string]string{"event-id": "1"}
		x.sendWith(url, "moved", map[string]string{"event-id": "1", sqsonce.AttrRejectReason: "of an earlier visit"})
		x.sendWith(url, "message ID, moved", nil)
		x.worker(url, bare(fails(errCard))).stopAfter(time.Hour)
		x.sendWith(x.dlq, "rejected", map[string]string{"event-id": "1", sqsonce.AttrRejectReason: "r 1", sqsonce.AttrDeadLetterSource: other})
		x.sendWith(x.dlq, "no reason", map[string]string{"event-id": "1", sqsonce.AttrDeadLetterSource: other})
		x.sendWith(x.dlq, "no room for the source", map[string]string{"event-id": "1", sqsonce.AttrRejectReason: "r"})
		x.sendWith(x.dlq, "sent", id)
		x.sendWith(x.dlq, "redriven", map[string]string{"event-id": "2", sqsonce.AttrRedriven: "2 R 1790000000000"})
		x.sendWith(x.dlq, "no event ID", map[string]string{"event-id": "1", "event-source": "s"})
		x.roundTrip(func(o *ops.Options) { o.Source = arnPrefix + "jobs" })

		d := x.openIn(x.newProcess()) // without a source
		var without []string
		for body, m := range x.mustList(d) {
			if errors.Is(m.Problem, ops.ErrNoSource) {
				without = append(without, body)
			}
		}
		slices.Sort(without)
		if r := x.restore(d, x.drained(d)); r.Count(ops.ActionLeft) != len(without) || !slices.Equal(without, []string{"no room for the source", "redriven", "sent"}) {
			t.Errorf("%d left, %q have no source", r.Count(ops.ActionLeft), without)
		} else {
			for _, res := range r.Results {
				if res.Action == ops.ActionLeft && !errors.Is(res.Err, ops.ErrNoSource) {
					t.Error(res.Err)
				}
			}
		}
	})
}

// A message that was archived is not younger when it is restored: its record may be gone.
func TestRestoredAge(t *testing.T) {
	t.Parallel()
	full := map[string]string{sqsonce.AttrEventID: "1", sqsonce.AttrEventSource: "orders"}
	for i := range 8 {
		full[fmt.Sprint("a", i)] = "x"
	}
	for name, tt := range map[string]struct {
		attrs     map[string]string
		retention time.Duration
		want      error
	}{
		"with room":                  {map[string]string{sqsonce.AttrEventID: "1", sqsonce.AttrEventSource: "orders"}, 2 * time.Hour, nil},
		"no room":                    {full, 2 * time.Hour, ops.ErrAgeLost},
		"no room, and it is younger": {full, 15*24*time.Hour + 2*time.Hour, nil},
	} {
		bubble(t, setup{}, func(x *fixture) {
			x.sendWith(x.dlq, "a", tt.attrs)
			time.Sleep(90 * time.Minute)
			d := x.redriver(func(o *ops.Options) { o.Retention = tt.retention })
			archive := x.drained(d)
			r := x.restore(d, archive)
			if got := r.Results[0].Err; got != tt.want {
				t.Errorf("%s: %v", name, got)
			}
			if tt.want != nil {
				return
			}
			expired := tt.retention == 2*time.Hour
			if m := x.one(d); m.Expired != expired {
				t.Errorf("%s: expired: %t", name, m.Expired)
			}
			redriven := x.redriveAll(d, func(o *ops.RedriveOptions) { o.Expired = true })
			if redriven.Count(ops.ActionRedriven) != 1 {
				t.Errorf("%s: %+v", name, redriven.Results)
			}
			if a := x.sqs.Messages(x.url)[0].Attributes; expired && !strings.HasSuffix(a[sqsonce.AttrRedriven], fmt.Sprint(" ", firstSent(archive))) {
				t.Errorf("%s: redriven %q", name, a[sqsonce.AttrRedriven])
			}
		})
	}
}

// firstSent returns when the first message of an archive was sent, in ms.
func firstSent(archive []byte) int64 {
	all, _ := readArchive(string(archive))
	return all[0].SentAt.UnixMilli()
}

// A message without room for the key that it needs is left, one without room for its source is sent without.
func TestRestoreWithoutRoom(t *testing.T) {
	t.Parallel()
	attrs := func(n int, more ...string) map[string]string {
		all := map[string]string{}
		for i := range n {
			all[fmt.Sprint("a", i)] = "x"
		}
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	const most = 1 << 20
	for name, tt := range map[string]struct {
		attrs map[string]string
		body  int
		want  error
		cause ops.Cause
		key   bool // it is added
	}{
		"ten attributes, and a key of the source": {attrs(9, "event-id", "1"), 1, ops.ErrNoRoom, "", false},
		"nine, and a key of the source":           {attrs(8, "event-id", "1"), 1, nil, ops.CauseReceivesUsedUp, false},
		"ten attributes":                          {attrs(8, "event-id", "1", "event-source", "s"), 1, nil, ops.CauseSent, false},
		"nine attributes":                         {attrs(7, "event-id", "1", "event-source", "s"), 1, nil, ops.CauseReceivesUsedUp, false},
		"ten attributes, and a needed key":        {attrs(10), 1, ops.ErrNoRoom, "", false},
		"nine attributes, and a needed key":       {attrs(9), 1, nil, ops.CauseSent, true},
		"eight attributes, and a needed key":      {attrs(8), 1, nil, ops.CauseReceivesUsedUp, true},
		"the largest":                             {nil, most, ops.ErrNoRoom, "", false},
		"the largest with its own ID":             {attrs(0, "event-id", "1", "event-source", "s"), most - 38, nil, ops.CauseSent, false},
		"room for the key, not for the source":    {nil, most - 140, nil, ops.CauseSent, true},
	} {
		bubble(t, setup{maxReceives: 1}, func(x *fixture) {
			x.create("other", x.redrive("jobs-dlq", 3)) // so that nothing but the message says which queue it came from
			body := strings.Repeat("b", tt.body)
			x.sendWith(x.url, body, tt.attrs)
			x.receive(x.url)
			time.Sleep(time.Minute)
			x.receive(x.url)
			d := x.redriver()
			before := x.one(d)
			r := x.restore(d, x.drained(d))
			if got := r.Results[0].Err; got != tt.want {
				t.Errorf("%s: %v", name, got)
			}
			if tt.want != nil {
				x.wantBodies(x.dlq, "")
				return
			}
			after := x.one(d)
			_, added := after.Attributes[sqsonce.AttrEventKey]
			if after.RecordKey != before.RecordKey || before.RecordKey == "" || after.Cause != tt.cause || added != tt.key || tt.cause != ops.CauseSent && after.QueueARN != before.QueueARN {
				t.Errorf("%s: key %s of %s, cause %s, event-key %t, from %s", name, after.RecordKey, before.RecordKey, after.Cause, added, after.QueueARN)
			}
		})
	}
}

// The order of the file is that of each group, and what is left holds back those behind it.
func TestRestoreOrder(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		set  func(*ops.RestoreOptions)
		want []string
		left error
	}{
		"all":          {nil, []string{"a-0 a-1 a-2 a-3", "b-0 b-1 b-2 b-3"}, nil},
		"from the 2nd": {func(o *ops.RestoreOptions) { o.Filter = func(m *ops.Message) bool { return m.Body != "a-1" } }, []string{"a-0", "b-0 b-1 b-2 b-3"}, ops.ErrHeldBehind},
		"skip ahead": {func(o *ops.RestoreOptions) {
			o.SkipAhead, o.Filter = true, func(m *ops.Message) bool { return m.Body != "a-1" }
		}, []string{"a-0 a-2 a-3", "b-0 b-1 b-2 b-3"}, ops.ErrNotSelected},
		"dry": {func(o *ops.RestoreOptions) { o.DryRun = true }, []string{"", ""}, nil},
	} {
		bubble(t, setup{fifo: true}, func(x *fixture) {
			for i := range 4 {
				x.send(x.dlq, fmt.Sprint("a-", i), fmt.Sprint("b-", i))
			}
			d := x.redriver()
			var set []func(*ops.RestoreOptions)
			if tt.set != nil {
				set = append(set, tt.set)
			}
			archive := x.drained(d)
			r := x.restore(d, archive, set...)
			if tt.set == nil { // another process sends the same copies
				x.restore(x.redriver(), archive)
			}
			got := []string{"", ""}
			for _, body := range x.bodies(x.dlq) {
				i := int(body[0] - 'a')
				got[i] = strings.TrimSpace(got[i] + " " + body)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s: %q", name, got)
			}
			if last := r.Results[6]; last.Err != nil && !errors.Is(last.Err, tt.left) && !errors.Is(last.Err, ops.ErrNotSelected) {
				t.Errorf("%s: %v", name, last.Err)
			}
		})
	}
}

// What cannot be restored is said, and is not sent.
func TestRestoreRefusals(t *testing.T) {
	t.Parallel()
	line := strings.ReplaceAll(archiveLine, ".fifo", "")
	other := strings.ReplaceAll(line, "jobs-dlq", "other-dlq")
	otherQueue := func(o *ops.RestoreOptions) { o.OtherQueue = true }
	id := func(line, id string) string { return strings.Replace(line, "7f3c", id, 1) }
	for name, tt := range map[string]struct {
		text string
		set  func(*ops.RestoreOptions)
		err  error // of the call
		left error
		sent int
		torn int
	}{
		"fine":                        {text: archiveHead + line, sent: 1},
		"a line twice":                {text: archiveHead + line + line, sent: 1},
		"of another run":              {text: archiveHead + line + strings.Replace(line, `"R"`, `"S"`, 1), sent: 1},
		"of another queue":            {text: archiveHead + other, left: ops.ErrOtherQueue},
		"of another queue, and meant": {text: archiveHead + other, set: otherQueue, sent: 1},
		"of the other kind":           {text: archiveHead + archiveLine, left: ops.ErrOtherQueue},
		"of the other kind, meant":    {text: archiveHead + archiveLine, set: otherQueue, left: ops.ErrOtherKind},
		"both":                        {text: archiveHead + other + id(line, "2"), left: ops.ErrOtherQueue, sent: 1},
		"a torn line":                 {text: archiveHead + line + line[:50], sent: 1, torn: 3},
		"a bad line":                  {text: archiveHead + line + "x\n" + id(line, "3"), err: ops.ErrArchive, sent: 1},
		"no archive":                  {text: line, err: ops.ErrArchive},
		"another state":               {text: archiveHead + line, set: func(o *ops.RestoreOptions) { o.States = []dedup.RecordState{dedup.StateCompleted} }, left: ops.ErrNotSelected},
		"its state":                   {text: archiveHead + line, set: func(o *ops.RestoreOptions) { o.States = []dedup.RecordState{dedup.StateReleased} }, sent: 1},
	} {
		bubble(t, setup{}, func(x *fixture) {
			p := x.newProcess()
			set := func(*ops.RestoreOptions) {}
			if tt.set != nil {
				set = tt.set
			}
			r, err := x.openIn(p).Restore(context.Background(), strings.NewReader(tt.text), set)
			if !errors.Is(err, tt.err) {
				t.Errorf("%s: %v", name, err)
			}
			if len(x.bodies(x.dlq)) != tt.sent || r.Count(ops.ActionRestored) != tt.sent || r.Torn != tt.torn {
				t.Errorf("%s: %d in the queue, %+v", name, len(x.bodies(x.dlq)), r)
			}
			for _, res := range r.Results {
				if res.Action == ops.ActionLeft && !errors.Is(res.Err, tt.left) || res.Action == ops.ActionLeft && tt.left == nil {
					t.Errorf("%s: %v", name, res.Err)
				}
			}
			for _, op := range p.ops {
				if op != "SendMessageBatch" && !slices.Contains(looks, op) || op == "ReceiveMessage" {
					t.Errorf("%s: %s was called", name, op)
				}
			}
		})
	}
	bubble(t, setup{}, func(x *fixture) {
		x.fill(3)
		d := x.redriver()
		journal := filepath.Join(t.TempDir(), "journal")
		x.redriveAll(d, func(o *ops.RedriveOptions) { o.Journal = journal })
		if _, err := d.Restore(context.Background(), strings.NewReader(archiveHead), func(o *ops.RestoreOptions) { o.Journal = journal }); !errors.Is(err, ops.ErrJournal) {
			t.Errorf("the journal of a redrive: %v", err)
		}
		unlock := must.Get(ops.Lock(arnPrefix+"jobs-dlq", filepath.Dir(journal)))(t)
		if _, err := d.Restore(context.Background(), strings.NewReader(archiveHead), func(o *ops.RestoreOptions) { o.Journal = journal + "2" }); !errors.Is(err, ops.ErrTwoAtOnce) {
			t.Errorf("beside a redrive: %v", err)
		}
		unlock()
	})
}
