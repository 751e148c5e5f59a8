package ops_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/ops"
)

// A replay that was killed at any request, and was started again, has run the event once more, and once only; a third time it
// does nothing. SQS's deduplication does not help: not on standard queues, and not after six minutes.
func TestReplayIsKilled(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pause    time.Duration
		consumer bool // runs meanwhile; else it comes when all is sent
	}{
		"at once":              {0, true},
		"later, no consumer":   {6 * time.Minute, false},
		"at once, no consumer": {0, false},
	} {
		for at := 2; at < 30; at++ {
			eachWay(t, fmt.Sprintf("%s/at=%d/", name, at), func(x *fixture, archived bool) {
				requests := map[bool]int{false: 12, true: 6}[archived] // up to the wait for the end
				if at >= 2*(requests+1) {
					return
				}
				e := x.doneEvent(archived)
				again := e.again()
				if !tt.consumer {
					e.worker.stop()
				}
				var ended sync.WaitGroup
				if e.replayAndDie(at, again, &ended) {
					time.Sleep(tt.pause)
					e.replayOn(again)
				} else {
					x.Error("it was not killed")
				}
				if !tt.consumer {
					if n := len(x.bodies(x.url)); n != 1 && (x.fifo && tt.pause == 0 || n != 2) {
						x.Errorf("%d copies", n)
					}
					e.worker = e.newWorker()
				}
				time.Sleep(2 * time.Minute)
				if _, err := e.replay(e.redriver(), again); !errors.Is(err, ops.ErrRanAgain) {
					x.Errorf("once more: %v", err)
				}
				ended.Wait()
				for _, m := range x.mustList(x.open()) {
					if m.State != dedup.StateCompleted {
						x.Errorf("%s is left, %s", m.Body, m.State)
					}
				}
				e.wantRuns(2)
			})
		}
	}
}

// thenStore does something right after a reopen.
type thenStore struct {
	dedup.Reopener
	then func()
}

func (s thenStore) Reopen(ctx context.Context, seen dedup.Record, note string, optFns ...func(*dedup.ReopenOptions)) error {
	err := s.Reopener.Reopen(ctx, seen, note, optFns...)
	s.then()
	return err
}

// A record that does not stay as the reopen left it ends the replay: at once where it is seen at once, and before the send.
func TestReplayOfAChangedRecord(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(e *done)
		want   error
	}{
		"a duplicate runs": {func(e *done) { e.send(e.url, "a-1"); time.Sleep(time.Second) }, ops.ErrRanAgain},
		"a duplicate fails": {func(e *done) {
			e.mu.Lock()
			e.fails = errCard
			e.mu.Unlock()
			e.send(e.url, "a-1")
			time.Sleep(time.Second)
		}, dedup.ErrChanged},
		"deleted": {func(e *done) { _ = e.store(e.admin).Delete(context.Background(), recordKey) }, dedup.ErrChanged},
		"another operator": {func(e *done) {
			if err := e.store(e.admin).Reopen(context.Background(), e.record(), "me too"); err != nil {
				e.Error(err)
			}
		}, dedup.ErrChanged},
	} {
		for _, late := range []bool{false, true} { // in the wait
			if name == "another operator" && !late {
				continue // which is as if it had reopened it alone
			}
			bubble(t, setup{maxReceives: 100}, func(x *fixture) {
				e := x.doneEvent(false)
				e.worker.stop()
				e.worker = e.newWorker()
				changed := false
				change := func(now bool) {
					if now && !changed {
						changed = true
						tt.change(e)
					}
				}
				d := x.redriver(func(o *ops.Options) { o.Store = thenStore{x.store(x.admin), func() { change(!late) }} })
				start := time.Now()
				res, err := e.replay(d, e.again(), func(o *ops.ReplayOptions) {
					o.Progress = func(_ bool, left time.Duration) { change(left < 30*time.Second) }
				})
				took := time.Since(start)
				if !errors.Is(err, tt.want) || errors.Is(err, ops.ErrReopened) || res.Action != ops.ActionLeft || !late && took > 5*time.Second || x.hidden() != 0 {
					t.Errorf("%s, late %t: %+v, %v after %s", name, late, res, err, took)
				}
				x.wantBodies(x.dlq, "a-1")
				e.worker.stop()
			})
		}
	}
}

// Of two operators at once one runs the event, whatever they name, and whenever the second one begins.
func TestReplayByTwo(t *testing.T) {
	t.Parallel()
	for _, fifo := range []bool{false, true} {
		for archived := range 3 { // so many of the two have it from an archive
			for _, after := range []time.Duration{0, 100 * time.Millisecond, 2 * time.Second, 30 * time.Second, 64 * time.Second, forget, 67 * time.Second, 71 * time.Second} {
				run(t, fmt.Sprintf("fifo=%t/archived=%d/after=%s", fifo, archived, after), setup{fifo: fifo, maxReceives: 100}, func(x *fixture) {
					e := x.doneEvent(false)
					again := e.again()
					named := [2]ops.Message{*e.m, *e.m}
					for i := range archived {
						named[i].ReceiptHandle = ""
					}
					var errs [2]error
					var both sync.WaitGroup
					for i := range named {
						both.Go(func() {
							d := x.redriver()
							time.Sleep(time.Duration(i) * after)
							_, errs[i] = d.Replay(context.Background(), &named[i], note, again)
						})
					}
					both.Wait()
					for i, err := range errs {
						if err != nil && !errors.Is(err, dedup.ErrChanged) && !errors.Is(err, ops.ErrNotShown) && !errors.Is(err, ops.ErrRanAgain) && !errors.Is(err, ops.ErrState) {
							x.Errorf("operator %d: %v", i, err)
						}
					}
					if errs[0] != nil && errs[1] != nil {
						x.Errorf("%v, and %v", errs[0], errs[1])
					}
					e.wantRuns(2)
				})
			}
		}
	}
}
