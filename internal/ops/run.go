package ops

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/host"
)

// run is a redrive, or an export. One goroutine receives, and deletes; others send, a group each.
type run struct {
	d       *DLQ
	o       RedriveOptions
	handle  func(context.Context, []*Message) error                 // of messages that are new; process: a redrive's
	attempt func(context.Context, *Message) (Action, string, error) // to send one; try: a redrive's
	done    Action                                                  // of a message that was handled and deleted
	report  Report
	held    *held
	journal *journal            // nil: none
	results map[string]*Result  // by message ID
	told    map[*Result]Result  // what OnResult was called with last
	left    map[string][]string // by FIFO group: the IDs of messages that were not redriven
	looks   map[string]int      // by FIFO group: see mostLooks
	allowed time.Time           // when Rate allows the next receive

	canaries    map[string]int // sent, by class
	canaryTexts map[canaryText]int
	sent        int // messages, without canaries
	watched     []watched
	looked      time.Time // at these
	failures    int       // of these

	mu         sync.Mutex
	stopped    map[string]error // by FIFO group: what its further messages are left for
	publishers map[string]*fifo.Publisher
	failed     error // ends the run
}

func newRun(d *DLQ, o RedriveOptions, report Report) *run {
	r := &run{d: d, o: o, done: ActionRedriven, report: report, held: newHeld(d, cmp.Or(d.opts.Hold, defaultHold)), results: map[string]*Result{}, told: map[*Result]Result{}, left: map[string][]string{}, looks: map[string]int{}, canaries: map[string]int{}, canaryTexts: map[canaryText]int{},
		stopped: map[string]error{}, publishers: map[string]*fifo.Publisher{}}
	r.handle, r.attempt = r.process, r.try
	return r
}

// newReport is that of an operation which begins, where no move task does.
func (d *DLQ) newReport(ctx context.Context, operation string) (Report, error) {
	if err := d.checkMoveTasks(ctx, operation); err != nil {
		return Report{}, err
	}
	if err := d.prove(ctx); err != nil {
		return Report{}, err
	}
	visible, hidden, err := d.count(ctx)
	return Report{Run: rand.Text(), Total: visible + hidden}, err
}

// redrive ends with everything that was not deleted given back.
func (r *run) redrive(ctx context.Context) (err error) {
	stopExtending := r.held.keep(ctx)
	defer func() {
		r.closePublishers()
		stopExtending()
		err = errors.Join(err, r.held.giveBack(ctx))
	}()
	for {
		more, err := r.next(ctx)
		if !more || err != nil {
			return err
		}
	}
}

// next receives, and redrives what is new to the run. It reports whether there may be more.
func (r *run) next(ctx context.Context) (more bool, err error) {
	host.Wait(ctx, time.Until(r.allowed))
	if r.lookAtWatched(ctx); r.failed != nil {
		return false, r.failed
	}
	for empty := 0; empty < emptyReceives; {
		if len(r.results) >= max(r.report.Total, 1) || ctx.Err() != nil { // a count of 0 may be that of a minute ago
			return false, nil
		}
		received, batch, err := r.receive(ctx)
		if err != nil {
			return false, err
		}
		if err := r.deleteAgain(ctx, received); err != nil {
			r.fail(err) // for which the batch is left
		}
		if err := r.handle(ctx, batch); err != nil {
			return false, err
		}
		uncovered, err := r.uncover(ctx, received, batch)
		if len(batch) > 0 || err != nil {
			return err == nil, err
		}
		if !uncovered {
			empty++
		}
	}
	return false, nil
}

// receive holds what it receives, and returns with it the messages that are new to the run.
func (r *run) receive(ctx context.Context) (received []sqstypes.Message, batch []*Message, err error) {
	sent := time.Now()
	if received, err = r.d.receive(ctx, host.MaxBatch, r.held.hold); err != nil {
		return nil, nil, err
	}
	for _, in := range r.held.add(received, sent) {
		batch = append(batch, r.d.newMessage(in))
	}
	return received, batch, nil
}

// process decides about new messages, sends and deletes them.
func (r *run) process(ctx context.Context, batch []*Message) error {
	start, first := time.Now(), len(r.report.Results)
	r.d.join(ctx, batch)
	for _, m := range batch {
		res := &Result{ID: m.ID, Group: m.Group}
		if copyID, sent := r.journal.sentBefore(m.ID); sent {
			res.Action, res.SentID = ActionUndeleted, copyID
		} else if len(r.results) >= r.report.Total {
			res.Action, res.Err = ActionLeft, ErrArrivedLater
			if selected, err := r.o.selects(m); err == nil && !selected && historyOf(m.Attributes).run != r.report.Run {
				res.Err = ErrNotSelected
			}
		}
		r.results[m.ID] = res
		r.report.Results = append(r.report.Results, res)
	}
	others, waiting := r.sendCanaries(ctx, batch)
	r.sendInLines(ctx, waiting)
	sent, tried := r.sentOf(batch)
	if r.o.Rate > 0 {
		r.allowed = start.Add(time.Duration(tried) * time.Second / time.Duration(r.o.Rate))
	}
	r.watch(append(others, waiting...))
	err := r.delete(ctx, sent)
	r.tell(r.report.Results[first:])
	return errors.Join(r.failed, err)
}

// tell calls OnResult with the results that it has not been called with as they are now.
func (r *run) tell(results []*Result) {
	for _, res := range results {
		if last, told := r.told[res]; r.o.OnResult == nil || told && last.Action == res.Action && last.After == res.After {
			continue
		}
		r.told[res] = *res
		if err := host.Contain(func() error { r.o.OnResult(res); return nil }); err != nil {
			r.o.OnResult = nil
			r.fail(fmt.Errorf("RedriveOptions.OnResult: %w", err))
		}
	}
}

// sendInLines decides about messages, and sends them.
func (r *run) sendInLines(ctx context.Context, messages []*Message) {
	lines := r.inLine(messages)
	host.InParallel(len(lines), len(lines), func(i int) {
		for _, m := range lines[i] {
			r.one(ctx, m, r.results[m.ID])
		}
	})
}

// inLine returns what has to be sent one after the other: on FIFO the messages of a group.
func (r *run) inLine(batch []*Message) (lines [][]*Message) {
	index := map[string]int{}
	for _, m := range batch {
		i, found := index[m.Group]
		if !found || !r.d.fifo {
			i = len(lines)
			index[m.Group] = i
			lines = append(lines, nil)
		}
		lines[i] = append(lines[i], m)
	}
	return lines
}

// one decides about a message, and sends it.
func (r *run) one(ctx context.Context, m *Message, res *Result) {
	res.RecordKey, res.State, res.Class, res.Destination = m.RecordKey, m.State, m.Class, r.d.destination(m)
	if res.Action == "" {
		res.Action, res.SentID, res.Err = r.attempt(ctx, m)
	}
	if !r.d.fifo || res.Action == ActionUndeleted || res.Action == ActionRestored || res.Action == ActionPlanned {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left[m.Group] = append(r.left[m.Group], m.ID)
	done := r.done == ActionRedriven && res.Action == ActionLeft && res.State == dedup.StateCompleted // its effect has its place before what is sent now
	if r.stopped[m.Group] == nil && !done && (!r.o.SkipAhead || res.Action == ActionUnknownOutcome) {
		r.stopped[m.Group] = fmt.Errorf("%w: message %s", ErrHeldBehind, m.ID)
	}
}

func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = err
	}
}
