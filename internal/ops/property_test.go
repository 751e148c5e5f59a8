package ops_test

import (
	std "cmp"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// The number of draws, unless a flag says so: flags are parsed after this.
func init() {
	if err := flag.Set("rapid.checks", "500"); err != nil {
		panic(err)
	}
}

// redrivePlan is drawn before the bubble begins: rapid must neither draw nor fail inside it.
type redrivePlan struct {
	FIFO      bool
	Strict    bool // memsqs.Options.StrictHandles
	Function  bool // the consumer has a key function, which the redriver lacks
	Memory    bool // the records are in memstore
	Messages  []plannedMessage
	SQS       []fault.Rule
	Store     []fault.Rule
	Away      plannedTime   // the store
	Reopens   []plannedTime // by an operator, of the event of message Of
	Copies    []plannedTime // a producer sends the event of message Of once more
	Rejects   []int         // the next run of the event of such a message is rejected
	LateStart time.Duration // of the consumer
	Take      time.Duration // of its handler
	Runs      []plannedRun  // and one more, without faults
	Unknown   bool          // of that one
}

type plannedTime struct {
	Of      int
	At, For time.Duration // from the start of the first run
}

type plannedMessage struct {
	Body  string // group and number
	Event string // "": the message ID is its key
	State dedup.RecordState
	Cause ops.Cause
}

func (m plannedMessage) event() string { return std.Or(m.Event, m.Body) }

type plannedRun struct {
	KillAt    int64 // see killer; 0: never
	Journal   bool  // the journal of the run before is there
	SkipAhead bool
	Unknown   bool
	Canary    int
	Hold      time.Duration
	Pause     time.Duration // after it
}

func drawRedrive(rt *rapid.T) redrivePlan {
	seconds := func(most int, label string) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(rt, label)) * time.Second
	}
	p := redrivePlan{FIFO: rapid.Bool().Draw(rt, "fifo"), Strict: rapid.Bool().Draw(rt, "strict handles"), Memory: rapid.Bool().Draw(rt, "memory")}
	p.Function = rapid.IntRange(0, 2).Draw(rt, "function") == 0
	known := rapid.IntRange(0, 2).Draw(rt, "known") == 0 // no run sends unknown events
	p.Unknown = !known && rapid.Bool().Draw(rt, "unknown at last")
	groups := rapid.IntRange(1, 8).Draw(rt, "groups")
	most := rapid.SampledFrom([]int{6, 15, 15, 60}).Draw(rt, "most") // many messages cost much, and seldom find more
	for i := range rapid.IntRange(1, most).Draw(rt, "messages") {
		m := plannedMessage{Body: fmt.Sprintf("g%d-%02d", rapid.IntRange(1, groups).Draw(rt, "group"), i), Event: fmt.Sprint("e", i)}
		m.State = rapid.SampledFrom([]dedup.RecordState{noRecord, noRecord, dedup.StateReleased, dedup.StateReleased, dedup.StateCompleted, dedup.StateCrashed}).Draw(rt, "state")
		m.Cause = rapid.SampledFrom([]ops.Cause{ops.CauseSent, ops.CauseRejected, ops.CauseRejected, ops.CauseReceivesUsedUp}).Draw(rt, "cause")
		switch rapid.IntRange(0, 9).Draw(rt, "kind") {
		case 0: // the message ID is known when it is sent
			m.Event, m.State = "", noRecord
		case 1: // a second message of one event
			if i > 0 {
				m.Event, m.State = p.Messages[i-1].Event, p.Messages[i-1].State
			}
		}
		p.Messages = append(p.Messages, m)
	}
	p.SQS = drawFaults(rt, 6, []string{"InternalError", "RequestThrottled"}, "ReceiveMessage", "SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch")
	p.Store = drawFaults(rt, 4, []string{"InternalServerError", "ProvisionedThroughputExceededException"}, "GetItem", "GetItem", "UpdateItem", "BatchExecuteStatement")
	if rapid.IntRange(0, 3).Draw(rt, "away") == 0 {
		p.Away = plannedTime{At: seconds(10*60, "away at"), For: seconds(15*60, "away for")}
	}
	drawTimes := func(most int, label string) (all []plannedTime) {
		for range rapid.IntRange(0, most).Draw(rt, label) {
			all = append(all, plannedTime{Of: rapid.IntRange(0, len(p.Messages)-1).Draw(rt, label+" of"), At: seconds(3*60, label+" at")})
		}
		return all
	}
	p.Reopens = drawTimes(5, "reopens")
	if !p.FIFO { // there it would come before its group
		p.Copies = drawTimes(3, "copies")
	}
	if rapid.IntRange(0, 2).Draw(rt, "reject") == 0 {
		p.Rejects = rapid.SliceOfN(rapid.IntRange(0, len(p.Messages)-1), 1, 4).Draw(rt, "rejects")
	}
	if rapid.IntRange(0, 3).Draw(rt, "late") == 0 {
		p.LateStart = seconds(10*60, "late by")
	}
	p.Take = seconds(2, "take")
	skips := rapid.IntRange(0, 3).Draw(rt, "skips") == 0
	for range rapid.IntRange(0, 5).Draw(rt, "runs") {
		p.Runs = append(p.Runs, plannedRun{
			KillAt:    max(0, rapid.Int64Range(-10, 40).Draw(rt, "kill")),
			Journal:   rapid.Bool().Draw(rt, "journal"),
			SkipAhead: skips && rapid.Bool().Draw(rt, "skip ahead"),
			Unknown:   !known && rapid.Bool().Draw(rt, "unknown"),
			Canary:    rapid.SampledFrom([]int{-1, 1}).Draw(rt, "canary"),
			Hold:      rapid.SampledFrom([]time.Duration{10 * time.Second, time.Minute}).Draw(rt, "hold"),
			Pause:     seconds(20*60, "pause"),
		})
	}
	return p
}

func drawFaults(rt *rapid.T, most int, codes []string, operations ...string) (rules []fault.Rule) {
	for range rapid.IntRange(0, most).Draw(rt, "faults") {
		r := fault.Rule{
			Op:    rapid.SampledFrom(operations).Draw(rt, "op"),
			Nth:   rapid.IntRange(1, 12).Draw(rt, "nth"),
			Times: rapid.IntRange(1, 3).Draw(rt, "times"),
		}
		kinds := []fault.Kind{fault.Error, fault.LoseReply, fault.Reset}
		switch {
		case r.Op == "ReceiveMessage":
			kinds = append(kinds, fault.ExpireEarly, fault.Duplicate)
		case strings.HasSuffix(r.Op, "Batch"):
			kinds = append(kinds, fault.FailEntries, fault.DropEntries)
		}
		if r.Do = rapid.SampledFrom(kinds).Draw(rt, "do"); r.Do == fault.Error || r.Do == fault.FailEntries {
			r.Code = rapid.SampledFrom(codes).Draw(rt, "code")
		}
		rules = append(rules, r)
	}
	return rules
}

// TestRedriveProperties: whatever fails, whoever else acts, and whenever a redrive is killed, no event is lost, none has its
// effect twice, none that was done runs unless its record is reopened, and the effects of a FIFO group come in the order of the
// queue. Without Unknown nothing is sent whose record the redriver does not find, also where the consumer's keys are others.
func TestRedriveProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := drawRedrive(rt)
		defer func() {
			if t.Failed() {
				t.Logf("plan: %+v", p)
			}
		}()
		bubble(t, setup{fifo: p.FIFO, maxReceives: 100, strict: p.Strict}, func(x *fixture) { (&redrivePlay{fixture: x, redrivePlan: p}).play() })
		if t.Failed() {
			rt.Fatal("see above")
		}
	})
}
