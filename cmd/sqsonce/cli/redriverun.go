package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sqsonce/sqsonce/ops"
)

// mostNamed is how many messages are named whose redrive has failed. --json names all.
const mostNamed = 20

const notSeen = "hidden, by another consumer or a killed redrive, or behind others of their group"

// redrive is a redrive that is under way.
type redrive struct {
	a       *app
	d       *ops.DLQ
	url     string
	options func(*ops.RedriveOptions)
	total   int    // messages that would be redriven; 0: not known
	journal string // "": a new one
	given   bool   // the journal is the user's
}

// run redrives with a journal, under a lock, and with two lines in the audit.
func (r *redrive) run(ctx context.Context) (err error) {
	a := r.a
	folder, err := a.stateFolder()
	if err != nil {
		return err
	}
	lock, killed, err := lockQueue(folder, r.url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.end()) }()
	if r.given = r.journal != ""; !r.given {
		r.journal = newJournal(folder, queueName(r.url))
	}
	if r.journal, err = filepath.Abs(r.journal); err != nil {
		return err
	}
	if killed != "" && killed != r.journal {
		a.note("a redrive from this queue was killed before: --journal %s goes on with it, and sends nothing twice", quoted(killed))
	}
	if err := lock.set(r.journal); err != nil {
		return err
	}
	change, err := a.audit(ctx, auditLine{What: "dlq redrive", Queue: r.url, Note: "journal " + r.journal})
	if err != nil {
		return err
	}
	report, err := r.redrive(ctx)
	counts := countsOf(report)
	return errors.Join(err, r.print(report, counts, err), change.end(counts, err))
}

func (r *redrive) redrive(ctx context.Context) (ops.Report, error) {
	a := r.a
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := a.newProgress(r.total)
	defer p.stop()
	event := func(v any) {
		if !a.flags.json {
			return
		}
		if err := a.printEvent(v); err != nil {
			cancel(err)
		}
	}
	event(struct {
		V       int    `json:"v"`
		Event   string `json:"event"`
		Queue   string `json:"queue"`
		Journal string `json:"journal"`
	}{1, "start", queueName(r.url), r.journal})
	return r.d.Redrive(ctx, r.options, func(o *ops.RedriveOptions) {
		o.Journal = r.journal
		p.canaries, p.canaryTimeout = max(o.Canary, 0), o.CanaryTimeout
		o.OnResult = func(res *ops.Result) {
			p.result(res)
			event(newResultJSON(res))
		}
	})
}

// resultJSON is what became of a message.
type resultJSON struct {
	V           int        `json:"v"`
	Event       string     `json:"event"` // "result"
	ID          string     `json:"id"`
	Action      ops.Action `json:"action"`
	Why         string     `json:"why,omitempty"`
	Error       string     `json:"error,omitempty"`
	State       ops.State  `json:"state,omitempty"`
	Class       string     `json:"class,omitempty"`
	Key         string     `json:"key,omitempty"`
	Group       string     `json:"group,omitempty"`
	Destination string     `json:"destination,omitempty"`
	SentID      string     `json:"sent_id,omitempty"`
	After       ops.State  `json:"after,omitempty"`
}

func newResultJSON(res *ops.Result) resultJSON {
	out := resultJSON{
		V: 1, Event: "result", ID: res.ID, Action: res.Action, Why: why(res), State: res.State, Class: res.Class.ID, Key: res.RecordKey, Group: res.Group,
		Destination: queueName(res.Destination), SentID: res.SentID, After: res.After,
	}
	if res.Err != nil {
		out.Error = res.Err.Error()
	}
	return out
}

// count is how many messages had the same end.
type count struct {
	Action ops.Action `json:"action"`
	Count  int        `json:"count"`
	Why    string     `json:"why,omitempty"`
}

func countsOf(r ops.Report) []count {
	counts := []count{} // [] in JSON
	for _, res := range r.Results {
		i := slices.IndexFunc(counts, func(c count) bool { return c.Action == res.Action && c.Why == why(res) })
		if i < 0 {
			i = len(counts)
			counts = append(counts, count{Action: res.Action, Why: why(res)})
		}
		counts[i].Count++
	}
	slices.SortStableFunc(counts, func(a, b count) int {
		return cmp.Or(-cmp.Compare(a.Action, b.Action), b.Count-a.Count, cmp.Compare(a.Why, b.Why))
	})
	return counts
}

// print prints the result, and says with which command an end before the end goes on.
func (r *redrive) print(report ops.Report, counts []count, failed error) error {
	a, left := r.a, 0
	for _, c := range counts {
		if c.Action != ops.Redriven && c.Why != whys[0].why {
			left += c.Count
		}
	}
	var err error
	if a.flags.json {
		out := struct {
			V       int     `json:"v"`
			Event   string  `json:"event"`
			Run     string  `json:"run,omitempty"`
			Total   int     `json:"total"`
			Counts  []count `json:"counts"`
			Journal string  `json:"journal"`
			Error   string  `json:"error,omitempty"`
		}{1, "end", report.Run, report.Total, counts, r.journal, ""}
		if failed != nil {
			out.Error = failed.Error()
		}
		err = a.printEvent(out)
	} else {
		var rows [][]string
		for _, c := range counts {
			rows = append(rows, []string{string(c.Action), strconv.Itoa(c.Count), c.Why})
		}
		err = a.printTable([]string{"ACTION", "COUNT", "WHY"}, rows)
		r.nameFailed(report)
	}
	a.note("journal %s", r.journal)
	unseen := max(report.Total-len(report.Results), 0)
	switch {
	case failed != nil:
	case deniedOf(report) != nil:
		err = errors.Join(err, fail(exitDenied, "%d selected messages were not redriven: %w", left, deniedOf(report)))
	case unseen > 0:
		err = errors.Join(err, fail(exitPart, "%d selected messages were not redriven, and %d not seen: %s", left, unseen, notSeen))
	case left > 0:
		err = errors.Join(err, fail(exitPart, "%d selected messages were not redriven", left))
	}
	if failed != nil && report.Run != "" && !stopped(failed) {
		a.note("to go on: %s", r.resume())
	}
	return err
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
func (r *redrive) nameFailed(report ops.Report) {
	n := 0
	for _, res := range report.Results {
		if res.Action == ops.Redriven || res.Action == ops.Left {
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
	return refused || errors.Is(err, ops.ErrCanary) || errors.Is(err, ops.ErrFailsYet) || errors.Is(err, ops.ErrJournal)
}

// resume is the command line with the journal.
func (r *redrive) resume() string {
	words := []string{"sqsonce"}
	for _, arg := range r.a.args {
		words = append(words, quoted(arg))
	}
	if !r.given {
		words = append(words, "--journal", quoted(r.journal))
	}
	return strings.Join(words, " ")
}

// quoted is a word as a shell takes it.
func quoted(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@%+,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// printEvent prints a line of --json at once.
func (a *app) printEvent(v any) error {
	if err := a.printJSON(v); err != nil {
		return err
	}
	if out, ok := a.out.(interface{ Flush() error }); ok {
		if err := out.Flush(); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
	}
	return nil
}
