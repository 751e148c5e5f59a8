package ops_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/ops"
)

// A completed event runs once more: 65 s after the reopen, in a worker that remembers it. Its message is deleted.
func TestReplay(t *testing.T) {
	t.Parallel()
	eachWay(t, "", func(x *fixture, archived bool) {
		e := x.doneEvent(archived)
		x.send(x.dlq, "a-2", "b-1")
		var left []time.Duration
		start := time.Now()
		retention := func(o *ops.Options) { o.Retention = 60 * 24 * time.Hour }
		res, err := e.replay(x.redriver(retention), e.again(), func(o *ops.ReplayOptions) {
			o.Name = "kim"
			o.Progress = func(w bool, l time.Duration) {
				if w {
					return
				}
				left = append(left, l)
				if r := e.record(); r.State(time.Now()) != dedup.StateReleased || r.Note != note || !strings.HasPrefix(r.Owner, "operator/kim/") ||
					time.Until(r.ExpiresAt) < 59*24*time.Hour {
					t.Errorf("record %+v", r)
				}
				if n := x.hidden(); n > 1 || n == 0 != archived || len(x.bodies(x.url)) != 0 {
					t.Errorf("%d hidden, %d sent", n, len(x.bodies(x.url)))
				}
			}
		})
		if err != nil || res.Action != ops.ActionReplayed || res.After != dedup.StateCompleted || res.RecordKey != recordKey || res.ID != e.m.ID || res.SentID == "" {
			t.Errorf("%+v, %v", res, err)
		}
		if e.runs() != 2 || e.times[1].Sub(start) < forget || e.times[1].Sub(start) > forget+10*time.Second {
			t.Errorf("runs at %v, began at %v", e.times, start)
		}
		for i, l := range left {
			if l != forget-time.Duration(i)*time.Second {
				x.Errorf("%d: %s left", i, l)
			}
		}
		if len(left) != 65 {
			t.Errorf("%d calls of Progress", len(left))
		}
		x.wantBodies(x.dlq, "a-2 b-1")
		e.wantRuns(2)
	})
}

// What is named too vaguely, or may have its effect twice, is refused: nothing is received, and no record changes.
func TestReplayRefuses(t *testing.T) {
	t.Parallel()
	again := func(o *ops.ReplayOptions) { o.Again = 7 }
	record := func(change func(*dedup.Record)) dedup.Record {
		r := dedup.Record{Lease: dedup.Lease{Key: recordKey, Owner: "w1", Fence: 7}, Completed: true}
		change(&r)
		return r
	}
	for name, tt := range map[string]struct {
		record dedup.Record
		err    error // of the store
		set    func(*ops.ReplayOptions)
		want   error
		state  dedup.RecordState
		text   string
		asked  int // reopens
	}{
		"completed":      {record: record(func(*dedup.Record) {}), want: ops.ErrNotAgain, state: dedup.StateCompleted, text: "fence 7"},
		"an earlier run": {record: record(func(r *dedup.Record) { r.Fence = 8 }), set: again, want: ops.ErrRanAgain, state: dedup.StateCompleted, text: "fence 8"},
		"no such run":    {record: record(func(r *dedup.Record) { r.Fence = 6 }), set: again, want: ops.ErrNotAgain, state: dedup.StateCompleted},
		"committed":      {record: record(func(r *dedup.Record) { r.Committed = true }), set: again, want: ops.ErrCommitted, state: dedup.StateCompleted},
		"committed, and meant": {record: record(func(r *dedup.Record) { r.Committed = true }), set: func(o *ops.ReplayOptions) { o.Again, o.Committed = 7, true },
			want: dedup.ErrChanged, state: dedup.StateCompleted, asked: 1},
		"released":        {record: record(func(r *dedup.Record) { r.Completed = false }), set: again, want: ops.ErrState, state: dedup.StateReleased, text: "redrive it"},
		"crashed":         {record: record(func(r *dedup.Record) { r.Completed, r.Until = false, time.Unix(1, 0) }), set: again, want: ops.ErrState, state: dedup.StateCrashed},
		"running":         {record: record(func(r *dedup.Record) { r.Completed, r.Until = false, time.Now().Add(time.Hour*9e5) }), set: again, want: ops.ErrState, state: dedup.StateRunning, text: "wait"},
		"foreign":         {record: record(func(r *dedup.Record) { r.Owner = "" }), set: again, want: ops.ErrState, state: dedup.StateForeign},
		"none":            {err: dedup.ErrNotFound, set: again, want: ops.ErrState, state: ops.StateUnknown, text: "no record under"},
		"the store fails": {err: errCard, set: again, want: errCard, state: ops.StateUnknown},
	} {
		bubble(t, setup{}, func(x *fixture) {
			x.send(x.dlq, "a-1")
			m := x.mustList(x.open())["a-1"]
			s := &reopener{err: dedup.ErrChanged, inspector: func(context.Context, string) (dedup.Record, error) { return tt.record, tt.err }}
			d := x.redriver(func(o *ops.Options) { o.Store = s })
			res, err := d.Replay(context.Background(), m, note, func(o *ops.ReplayOptions) {
				if tt.set != nil {
					tt.set(o)
				}
			})
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) || res.Action != ops.ActionLeft || res.State != tt.state || !errors.Is(res.Err, tt.want) {
				t.Errorf("%s: %+v, %v", name, res, err)
			}
			if n := x.sqs.Messages(x.dlq)[0].ReceiveCount; s.calls != tt.asked || n != 1+tt.asked || errors.Is(err, ops.ErrReopened) || len(x.bodies(x.url)) != 0 {
				t.Errorf("%s: %d reopens, %d receives", name, s.calls, n)
			}
		})
	}
}

// reopener is a store that counts reopens, and lets none be done.
type reopener struct {
	inspector
	calls int
	err   error
}

func (r *reopener) Reopen(context.Context, dedup.Record, string, ...func(*dedup.ReopenOptions)) error {
	r.calls++
	return r.err
}

// A message of an archive is not in the queue: that receives may move messages out of it is no matter.
func TestReplayOfAChainedQueue(t *testing.T) {
	t.Parallel()
	for _, archived := range []bool{false, true} {
		bubble(t, setup{}, func(x *fixture) {
			e := x.doneEvent(archived)
			x.create("last", nil)
			x.set(x.dlq, x.redrive("last", 99))
			set := spend
			if archived {
				set = func(*ops.Options) {}
			}
			if res, err := e.replay(x.redriver(set), e.again()); err != nil {
				t.Errorf("archived %t: %+v, %v", archived, res, err)
			}
			e.wantRuns(2)
		})
	}
}

// What cannot be sent as the same event is refused before its record is reopened.
func TestReplayRefusesMessages(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		set  func(*ops.Options)
		m    func(*ops.Message)
		want error
	}{
		"key":         {m: func(m *ops.Message) { m.RecordKey = "shipping#orders|a-1" }, want: ops.ErrOtherKey},
		"destination": {m: func(m *ops.Message) { m.QueueARN = arnPrefix + "other" }, want: ops.ErrNoDestination},
		"room":        {m: func(m *ops.Message) { m.Body = strings.Repeat("x", 1<<20) }, want: ops.ErrNoRoom},
		"key changes": {set: func(o *ops.Options) {
			o.Key = func(m *sqsonce.Message) (string, error) {
				return map[bool]string{true: recordKey, false: "x"}[m.ID != "redriven"], nil
			}
		}, want: ops.ErrKeyChanges},
	} {
		bubble(t, setup{}, func(x *fixture) {
			e := x.doneEvent(true)
			if tt.m != nil {
				tt.m(e.m)
			}
			res, err := e.replay(x.redriver(func(o *ops.Options) {
				if tt.set != nil {
					tt.set(o)
				}
			}), e.again())
			if !errors.Is(err, tt.want) || errors.Is(err, ops.ErrReopened) || res.Action != ops.ActionLeft || !e.record().Completed {
				t.Errorf("%s: %+v, %v", name, res, err)
			}
			e.wantRuns(1)
		})
	}
}

// The 65 s after a reopen are those of this process's clock, whatever the store's says.
func TestReplayWithAnotherClock(t *testing.T) {
	t.Parallel()
	for _, behind := range []time.Duration{-40 * time.Second, 40 * time.Second} {
		bubble(t, setup{behind: behind, maxReceives: 100}, func(x *fixture) {
			e := x.doneEvent(false)
			start := time.Now()
			res, err := e.replay(x.redriver(), e.again())
			if took := time.Since(start); err != nil || took < forget || took > forget+10*time.Second {
				t.Errorf("%s behind: %+v, %v after %s", behind, res, err, took)
			}
			e.wantRuns(2)
		})
	}
}

// A message is found behind others, which are visible again while it is replayed.
func TestReplayFindsItsMessage(t *testing.T) {
	t.Parallel()
	eachKind(t, "", setup{maxReceives: 100}, func(x *fixture) {
		e := x.doneEvent(false)
		x.purge()
		for i := range 35 {
			x.send(x.dlq, fmt.Sprintf("g%d-%d", i/5, i))
		}
		x.send(x.dlq, "a-1")
		e.m.ID = x.sqs.Messages(x.dlq)[35].ID
		res, err := e.replay(x.redriver(), e.again(), func(o *ops.ReplayOptions) {
			o.Progress = func(w bool, _ time.Duration) {
				if n := x.hidden(); !w && n != 1 {
					x.Errorf("%d are hidden", n)
				}
			}
		})
		if err != nil || len(x.bodies(x.dlq)) != 35 {
			x.Errorf("%+v, %v, %d left", res, err, len(x.bodies(x.dlq)))
		}
		e.wantRuns(2)
	})
}
