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

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/ops"
)

// drained drains the queue into an archive, and returns that.
func (x *fixture) drained(d *ops.DLQ) []byte {
	x.Helper()
	path := filepath.Join(x.TempDir(), "archive")
	for { // SQS shows a part of a FIFO queue at a time
		if _, err := d.Export(context.Background(), x.archive(path), drainAll); err != nil {
			x.Fatal(err)
		}
		if len(x.bodies(x.dlq)) == 0 {
			break
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		x.Fatal(err)
	}
	return text
}

// restore restores an archive.
func (x *fixture) restore(d *ops.DLQ, archive []byte, optFns ...func(*ops.RestoreOptions)) ops.Report {
	x.Helper()
	r, err := d.Restore(context.Background(), bytes.NewReader(archive), optFns...)
	if err != nil {
		x.Fatal(err)
	}
	for _, res := range r.Results {
		if (res.Err == nil) != (res.Action == ops.Restored || res.Action == ops.Planned) {
			x.Errorf("%s is %s, %v", res.ID, res.Action, res.Err)
		}
	}
	if r.Count(ops.Restored, ops.Planned, ops.Left) != len(r.Results) || r.Total != len(r.Results) {
		x.Errorf("%d results of %d", len(r.Results), r.Total)
	}
	return r
}

// shown is what a listing shows of a message that does not change by way of an archive.
type shown struct {
	Source, Key, Reason, Problem, Group, Trace string
	Class                                      ops.Class
	Cause                                      ops.Cause
	State                                      ops.State
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
	if m.Problem != nil {
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
		if r := x.restore(d, archive); r.Count(ops.Restored) != len(before) {
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
		h := x.worker(url, bare(fails(errCard)))
		time.Sleep(time.Hour)
		h.stop()
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
			if m.Problem != nil {
				without = append(without, body)
			}
		}
		slices.Sort(without)
		if r := x.restore(d, x.drained(d)); r.Count(ops.Left) != len(without) || !slices.Equal(without, []string{"no room for the source", "redriven", "sent"}) {
			t.Errorf("%d left, %q have no source", r.Count(ops.Left), without)
		} else {
			for _, res := range r.Results {
				if res.Action == ops.Left && !errors.Is(res.Err, ops.ErrNoSource) {
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
			if redriven.Count(ops.Redriven) != 1 {
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
		"nine, and a key of the source":           {attrs(8, "event-id", "1"), 1, nil, ops.ReceivesUsedUp, false},
		"ten attributes":                          {attrs(8, "event-id", "1", "event-source", "s"), 1, nil, ops.Sent, false},
		"nine attributes":                         {attrs(7, "event-id", "1", "event-source", "s"), 1, nil, ops.ReceivesUsedUp, false},
		"ten attributes, and a needed key":        {attrs(10), 1, ops.ErrNoRoom, "", false},
		"nine attributes, and a needed key":       {attrs(9), 1, nil, ops.Sent, true},
		"eight attributes, and a needed key":      {attrs(8), 1, nil, ops.ReceivesUsedUp, true},
		"the largest":                             {nil, most, ops.ErrNoRoom, "", false},
		"the largest with its own ID":             {attrs(0, "event-id", "1", "event-source", "s"), most - 38, nil, ops.Sent, false},
		"room for the key, not for the source":    {nil, most - 140, nil, ops.Sent, true},
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
			if after.RecordKey != before.RecordKey || before.RecordKey == "" || after.Cause != tt.cause || added != tt.key || tt.cause != ops.Sent && after.QueueARN != before.QueueARN {
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
		"by group": {func(o *ops.RestoreOptions) { o.Groups = []string{"b"} }, []string{"", "b-0 b-1 b-2 b-3"}, ops.ErrHeldBehind},
		"dry":      {func(o *ops.RestoreOptions) { o.DryRun = true }, []string{"", ""}, nil},
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
			r := x.restore(d, x.drained(d), set...)
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
		"a journal in a dry run":      {text: archiveHead, set: func(o *ops.RestoreOptions) { o.DryRun, o.Journal = true, "x" }, err: &sqsonce.FieldError{}},
		"no state":                    {text: archiveHead, set: func(o *ops.RestoreOptions) { o.States = []ops.State{"x"} }, err: &sqsonce.FieldError{}},
		"another state":               {text: archiveHead + line, set: func(o *ops.RestoreOptions) { o.States = []ops.State{ops.Completed} }, left: ops.ErrNotSelected},
		"its state":                   {text: archiveHead + line, set: func(o *ops.RestoreOptions) { o.States = []ops.State{ops.Released} }, sent: 1},
	} {
		bubble(t, setup{}, func(x *fixture) {
			p := x.newProcess()
			set := func(*ops.RestoreOptions) {}
			if tt.set != nil {
				set = tt.set
			}
			r, err := x.openIn(p).Restore(context.Background(), strings.NewReader(tt.text), set)
			_, isField := errors.AsType[*sqsonce.FieldError](err)
			if _, wantField := tt.err.(*sqsonce.FieldError); !wantField && !errors.Is(err, tt.err) || wantField != isField {
				t.Errorf("%s: %v", name, err)
			}
			if len(x.bodies(x.dlq)) != tt.sent || r.Count(ops.Restored) != tt.sent || r.Torn != tt.torn {
				t.Errorf("%s: %d in the queue, %+v", name, len(x.bodies(x.dlq)), r)
			}
			for _, res := range r.Results {
				if res.Action == ops.Left && !errors.Is(res.Err, tt.left) || res.Action == ops.Left && tt.left == nil {
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
		if _, err := d.Restore(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "archive") {
			t.Error(err)
		}
		journal := filepath.Join(t.TempDir(), "journal")
		x.redriveAll(d, func(o *ops.RedriveOptions) { o.Journal = journal })
		if _, err := d.Restore(context.Background(), strings.NewReader(archiveHead), func(o *ops.RestoreOptions) { o.Journal = journal }); !errors.Is(err, ops.ErrJournal) {
			t.Errorf("the journal of a redrive: %v", err)
		}
		x.fill(3)
		if _, err := x.admin.sqs.StartMessageMoveTask(context.Background(), &sqs.StartMessageMoveTaskInput{
			SourceArn: aws.String(arnPrefix + "jobs-dlq"), DestinationArn: aws.String(arnPrefix + "jobs"), MaxNumberOfMessagesPerSecond: aws.Int32(1),
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Restore(context.Background(), strings.NewReader(archiveHead)); !errors.Is(err, ops.ErrMoveTask) {
			t.Error(err)
		}
		time.Sleep(time.Minute)
	})
}

// A restore that was killed goes on with its journal: nothing is lost, and only what was under way is sent a second time.
func TestRestoreKilled(t *testing.T) {
	t.Parallel()
	for _, fifo := range []bool{false, true} {
		for at := int64(2); at < 14; at++ {
			t.Run(fmt.Sprintf("fifo=%t/at=%d", fifo, at), func(t *testing.T) {
				t.Parallel()
				bubble(t, setup{fifo: fifo}, func(x *fixture) {
					const n = 25
					for i := range n {
						x.send(x.dlq, fmt.Sprintf("g%d-%02d", i%3, i))
					}
					archive := x.drained(x.redriver())
					p := x.newProcess()
					k := &killer{Client: p.sqs, p: p, at: at, path: filepath.Join(t.TempDir(), "journal"), killed: make(chan struct{})}
					d, err := ops.Open(context.Background(), k, x.dlq)
					if err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithCancel(context.Background())
					time.AfterFunc(time.Minute, cancel)
					_, _ = d.Restore(ctx, bytes.NewReader(archive), func(o *ops.RestoreOptions) { o.Journal = k.path })
					k.kill()
					time.Sleep(6 * time.Minute) // SQS's deduplication does not help
					path := filepath.Join(t.TempDir(), "resumed")
					if err := os.WriteFile(path, append(k.journal, `{"sent":"torn`...), 0o600); err != nil {
						t.Fatal(err)
					}
					for range 2 { // the second one has nothing to do
						r := x.restore(x.redriver(), archive, func(o *ops.RestoreOptions) { o.Journal = path })
						if r.Count(ops.Restored) != n {
							t.Errorf("%d restored", r.Count(ops.Restored))
						}
					}
					underWay := strings.Count(string(k.journal), `"send"`) - strings.Count(string(k.journal), `"sent"`)
					last, copies := map[string]string{}, map[string]int{}
					for _, body := range x.bodies(x.dlq) {
						if copies[body]++; fifo && body < last[body[:2]] {
							t.Errorf("%s is behind %s", body, last[body[:2]])
						}
						last[body[:2]] = body
					}
					if twice := len(x.bodies(x.dlq)) - len(copies); len(copies) != n || twice > underWay {
						t.Errorf("%d messages, %d of them twice, %d were under way", len(copies), twice, underWay)
					}
				})
			})
		}
	}
}

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
		for _, fifo := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/fifo=%t", name, fifo), func(t *testing.T) {
				t.Parallel()
				bubble(t, setup{fifo: fifo}, func(x *fixture) {
					for i := range n {
						x.send(x.dlq, fmt.Sprintf("g%d-%02d", i%4, i))
					}
					d := x.redriver()
					archive := x.drained(d)
					journal := func(o *ops.RestoreOptions) { o.Journal = filepath.Join(t.TempDir(), "journal") }
					x.sqs.Set(fault.Plan{Rules: rules})
					r, err := d.Restore(context.Background(), bytes.NewReader(archive), journal)
					x.sqs.Set(fault.Plan{})
					if failed := r.Count(ops.SendFailed, ops.UnknownOutcome, ops.Left) > 0; rules == nil && failed || name == "refused" && (err == nil || !strings.Contains(err.Error(), "sqs:SendMessage")) {
						t.Errorf("%v, %+v", err, r)
					}
					if r.Count(ops.Restored, ops.SendFailed, ops.UnknownOutcome, ops.Left) != len(r.Results) {
						t.Errorf("%+v", r)
					}
					there := x.bodies(x.dlq)
					slices.Sort(there) // on a standard queue a copy may be there twice
					there = slices.Compact(there)
					if certain := r.Count(ops.Restored); len(there) < certain || len(there) > certain+r.Count(ops.UnknownOutcome) {
						t.Errorf("%d restored, %d unknown, %d there", certain, r.Count(ops.UnknownOutcome), len(there))
					}
					again := x.restore(d, archive, journal)
					if again.Count(ops.Restored) != n {
						t.Errorf("%d restored by the second one", again.Count(ops.Restored))
					}
					last, found := map[string]string{}, map[string]bool{}
					for _, body := range x.bodies(x.dlq) {
						if found[body] = true; fifo && body < last[body[:2]] {
							t.Errorf("%s is behind %s", body, last[body[:2]])
						}
						last[body[:2]] = body
					}
					if len(found) != n {
						t.Errorf("%d found", len(found))
					}
				})
			})
		}
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
		if !errors.Is(err, errCard) || r.Count(ops.Restored) != 14 || len(x.bodies(x.dlq)) != 14 || len(r.Results) != 20 {
			t.Errorf("%v, %d restored, %d there, %d results", err, r.Count(ops.Restored), len(x.bodies(x.dlq)), len(r.Results))
		}
	})
}

// A message ID that two lines of different runs have is restored with the ID of the first, on FIFO by any process.
func TestRestoreTwiceOnFIFO(t *testing.T) {
	t.Parallel()
	bubble(t, setup{fifo: true}, func(x *fixture) {
		x.send(x.dlq, "a-1", "a-2")
		archive := x.drained(x.redriver())
		x.restore(x.redriver(), archive)
		x.restore(x.redriver(), archive)
		x.wantBodies(x.dlq, "a-1 a-2")
		for _, m := range x.sqs.Messages(x.dlq) {
			if !strings.HasPrefix(m.DedupID, "restore|") {
				t.Error(m.DedupID)
			}
		}
	})
}
