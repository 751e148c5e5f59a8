package cli

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/queues"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shell"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/ops"
)

// mostNamed is how many messages are named of which something has failed. --json names all.
const mostNamed = 20

const notSeen = "hidden, by another consumer or a killed redrive, or behind others of their group"

// work is an operation on many messages that is under way.
type work struct {
	a         *app
	operation string     // "redrive"
	done      ops.Action // what becomes of a message
	url       string
	total     int          // messages that are planned; 0: not known
	journal   string       // "": a new one, or none
	given     bool         // the journal is the user's
	archive   string       // "": none
	unplanned atomic.Int64 // messages that were left because they came after the plan
}

// start is the first line of --json.
func (r *work) start() any {
	return object{
		{"v", 1}, {"event", "start"}, {"operation", r.operation}, {"queue", host.QueueName(r.url)}, {"journal,omitzero", r.journal}, {"archive,omitzero", r.archive},
	}
}

// events prints what has become of each message, where that is known only now.
func (r *work) events(report ops.Report, err error) (ops.Report, error) {
	if !r.a.flags.json {
		return report, err
	}
	events := []any{r.start()}
	for _, res := range report.Results {
		if r.done == ops.ActionRestored {
			res.Destination = r.url
		}
		events = append(events, resultOf(res))
	}
	for _, event := range events {
		if printErr := r.a.printEvent(event); printErr != nil {
			return report, errors.Join(err, printErr)
		}
	}
	return report, err
}

// withJournal runs do with a journal, under a lock.
func (r *work) withJournal(ctx context.Context, do func(context.Context) (ops.Report, error)) (err error) {
	folder, err := r.a.stateFolder()
	if err != nil {
		return err
	}
	lock, killed, err := lockQueue(folder, r.url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.end()) }()
	if r.given = r.journal != ""; !r.given {
		r.journal = newJournal(folder, r.operation, host.QueueName(r.url))
	}
	if r.journal, err = filepath.Abs(r.journal); err != nil {
		return err
	}
	if killed != "" && killed != r.journal {
		r.a.note("a redrive or restore of this queue was killed: --journal %s continues it", shell.Word(killed))
	}
	if err := lock.set(r.journal); err != nil {
		return err
	}
	return r.audited(ctx, "journal "+r.journal, do)
}

// audited runs do with two lines in the audit, and prints what it did.
func (r *work) audited(ctx context.Context, note string, do func(context.Context) (ops.Report, error)) error {
	change, err := r.a.audit(ctx, auditLine{What: "dlq " + r.operation, Queue: r.url, Note: note})
	if err != nil {
		return err
	}
	report, err := do(ctx)
	counts := countsOf(report, err)
	return errors.Join(err, r.print(ctx, report, counts, err), change.end(counts, err))
}

// print prints the result, and says with which command an end before the end goes on.
func (r *work) print(ctx context.Context, report ops.Report, counts []count, failed error) error {
	a, left := r.a, 0
	for _, c := range counts {
		if c.Action != r.done && c.Why != notSelected {
			left += c.Count
		}
	}
	completed := r.completedIn(report)
	left -= completed
	var err error
	if a.flags.json {
		err = a.printEvent(object{
			{"v", 1}, {"event", "end"}, {"run,omitzero", report.Run}, {"total", report.Total}, {"counts", counts}, {"journal,omitzero", r.journal},
			{"archive,omitzero", r.archive}, {"torn,omitzero", report.Torn}, {"error", failed},
		})
	} else {
		var rows [][]string
		for _, c := range counts {
			rows = append(rows, []string{string(c.Action), strconv.Itoa(c.Count), c.Why})
		}
		err = a.printTable([]string{"ACTION", "COUNT", "WHY"}, rows)
		r.nameFailed(report)
	}
	if r.journal != "" {
		a.note("journal %s", r.journal)
	}
	if r.archive != "" {
		a.note("archive %s", r.archive)
	}
	if completed > 0 && !a.flags.json {
		a.note("%d completed, not sent: %s", completed, a.hint("", "dlq", "delete", "--completed", "--archive", "completed.jsonl"))
	}
	if failed == nil && !a.flags.json && (r.done == ops.ActionRedriven || r.done == ops.ActionDeleted) {
		r.noteLeft(ctx, max(report.Total, len(report.Results))-report.Count(r.done))
		if r.done == ops.ActionRedriven && a.flags.consumer != "" && slices.ContainsFunc(report.Results, func(res *ops.Result) bool { return res.Class.Crashed() }) {
			a.note("crashed events may still come, when their receives are used up: %s", a.hint("", "record", "ls", "--state", string(dedup.StateCrashed)))
		}
	}
	if report.Torn > 0 {
		a.note("line %d of the archive is incomplete and ignored: its message was not deleted", report.Torn)
	}
	unseen := max(report.Total-len(report.Results), 0)
	switch {
	case failed != nil:
	case deniedOf(report) != nil:
		err = errors.Join(err, fail(exitDenied, "%s not %s: %w", ofSelection(left), r.done, deniedOf(report)))
	case unseen > 0:
		err = errors.Join(err, fail(exitPart, "%s not %s, and %d not seen: %s", ofSelection(left), r.done, unseen, notSeen))
	case r.unplanned.Load() > 0:
		err = errors.Join(err, fail(exitPart, "%s not %s, and %d that the plan has not seen: the same again", ofSelection(left), r.done, r.unplanned.Load()))
	case left > 0:
		err = errors.Join(err, fail(exitPart, "%s not %s", ofSelection(left), r.done))
	}
	if failed != nil && report.Run != "" && !stopped(failed) {
		a.note("to go on: %s", r.resume(report.Count(r.done)))
	}
	return err
}

// completedIn is how many selected messages a redrive has left because their events are completed, which is what it is for.
func (r *work) completedIn(report ops.Report) (n int) {
	for _, res := range report.Results {
		if r.done == ops.ActionRedriven && completedAlready(res) {
			n++
		}
	}
	return n
}

func completedAlready(res *ops.Result) bool {
	return res.Action == ops.ActionLeft && res.State == dedup.StateCompleted && errors.Is(res.Err, ops.ErrState)
}

// ofSelection begins a sentence about so many selected messages.
func ofSelection(n int) string {
	if n == 1 {
		return "1 selected message was"
	}
	return strconv.Itoa(n) + " selected messages were"
}

// noteLeft says how many messages the queue has now. n of those that it had at the start were left, and others may have come since.
func (r *work) noteLeft(ctx context.Context, n int) {
	a, name := r.a, host.QueueName(r.url)
	ctx, cancel := context.WithTimeout(ctx, queueTimeout)
	defer cancel()
	var counts queues.Counts
	s, err := a.connect(ctx)
	if err == nil {
		counts, _, err = queues.Read(ctx, s.sqs, r.url)
	}
	if left := max(n, counts.Total()); left == 0 && err != nil {
		a.note("unknown how many are left in %s: %s", name, reason(err))
	} else {
		a.note("about %d left in %s, by SQS's approximate count: %s", left, name, a.hint("", "dlq", "ls"))
	}
}

// deniedOf returns an error by which AWS has denied what was needed for a message.
func deniedOf(report ops.Report) error {
	for _, res := range report.Results {
		if denied(res.Err) {
			return res.Err
		}
	}
	return nil
}

// nameFailed names messages of which somebody should know.
func (r *work) nameFailed(report ops.Report) {
	n := 0
	for _, res := range report.Results {
		if res.Action == r.done || res.Action == ops.ActionLeft {
			continue
		}
		if n++; n <= mostNamed {
			r.a.note("message %s: %s: %v", res.ID, res.Action, res.Err)
		}
	}
	if n > mostNamed {
		r.a.note("and %d more", n-mostNamed)
	}
}

// stopped says of an error that the redrive did not fail: the same again is of no use, or is another run.
func stopped(err error) bool {
	_, refused := errors.AsType[*ops.RefusedError](err)
	return refused || errors.Is(err, errNoneSelected) || errors.Is(err, ops.ErrStopped) || errors.Is(err, ops.ErrJournal)
}

// resume is the command line with the journal. So many messages are done, and no longer expected, or planned.
func (r *work) resume(done int) string {
	args := r.a.args
	if r.a.flags.plan != "" {
		args = withoutFlag(args, "--plan")
	}
	args = slices.Clone(args)
	if r.a.flags.expect >= 0 {
		left := strconv.Itoa(max(r.a.flags.expect-done, 0))
		for i, arg := range args {
			if arg == "--expect" && i+1 < len(args) {
				args[i+1] = left
			} else if strings.HasPrefix(arg, "--expect=") {
				args[i] = "--expect=" + left
			}
		}
	}
	if r.journal != "" && !r.given {
		return r.a.again(args, "--journal", r.journal)
	}
	return r.a.again(args)
}
