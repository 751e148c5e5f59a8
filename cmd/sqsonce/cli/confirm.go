package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
	"github.com/sqsonce/sqsonce/internal/ops"
)

// question is what is asked before something is changed.
type question struct {
	verb  string // "free"
	typed string // what must be typed; "": y
	what  string // what that is: "the key"
	these string // of how many: "these 12 messages"; "": of one
}

// confirm asks: y, or what must be typed. Where nobody can be asked --yes is needed; where somebody can, --yes does not stand for
// the name of the one thing that is changed.
func (a *app) confirm(ctx context.Context, q question) error {
	switch typed := q.typed != ""; {
	case a.flags.yes && !(typed && q.these == "" && a.asks):
		return nil
	case !a.asks:
		return fail(exitRefused, "without a terminal %s needs --yes", q.verb)
	case typed:
		fmt.Fprintf(a.err, "Type %s to %s %s: ", q.what, q.verb, cmp.Or(q.these, "it"))
	default:
		fmt.Fprintf(a.err, "Do it? [y/N] ")
	}
	answer, err := a.readLine(ctx)
	if err != nil {
		return err
	}
	if q.typed != "" && answer == q.typed || q.typed == "" && isYes(answer) {
		return nil
	}
	return fail(exitRefused, "nothing was changed: to %s %s, type %s", q.verb, cmp.Or(q.these, "it"), cmp.Or(q.typed, "y"))
}

func isYes(answer string) bool {
	return strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes")
}

// askMore asks about messages that the plan leaves, and that may have had their effect or kill their consumer, whether they are to be
// sent too, and plans again. Where there is no terminal --unknown and --crash-loops are needed.
func (r *redrive) askMore(ctx context.Context, p *queuePlan) (*queuePlan, error) {
	if !r.a.asks || r.a.flags.yes || r.a.flags.dryRun {
		return p, nil
	}
	for _, more := range []struct {
		left      int
		why, risk string
		set       func(*ops.RedriveOptions)
	}{
		{p.unknown, noRecord, "run again", func(o *ops.RedriveOptions) { o.Unknown = true }},
		{p.loops, "they crashed their consumers at least twice", "may crash the next one", func(o *ops.RedriveOptions) { o.CrashLoops = true }},
	} {
		if more.left == 0 {
			continue
		}
		fmt.Fprintf(r.a.err, "%d selected would be left: %s.\nTheir events may have had their effect, and %s. Send these too? [y/N] ", more.left, more.why, more.risk)
		answer, err := r.a.readLine(ctx)
		if err != nil {
			return nil, err
		}
		if isYes(answer) {
			before := r.options
			r.options = func(o *ops.RedriveOptions) { before(o); more.set(o) }
			if p, err = r.plan(ctx); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// ofMany is the question about n messages or records. For up to ten that are alike y is enough, else typed must be typed.
func ofMany(verb string, n int, things, typed string, alike bool) question {
	const mostByYes = 10
	q := question{verb: verb}
	if n > mostByYes || !alike {
		q.typed, q.what, q.these = typed, escaped(typed), fmt.Sprintf("these %d %s", n, things)
	}
	return q
}

// deleteQuestion is asked before a delete, which the queue's name answers.
func (p *queuePlan) deleteQuestion() question {
	return ofMany(p.Operation, p.Count, "messages", p.Queue, p.mixed == "")
}

// expected compares a plan with --expect.
func (a *app) expected(n int) error {
	if a.flags.expect >= 0 && n != a.flags.expect {
		return fail(exitRefused, "--expect is %d, but the plan has %s: nothing was changed", a.flags.expect, shown.Count(n, "message"))
	}
	return nil
}

// readLine returns the answer, or an error when ctx ends first. The read goes on until the process ends.
func (a *app) readLine(ctx context.Context) (string, error) {
	if a.answers == nil { // one for all answers: it may have read more than one
		a.answers = bufio.NewReader(a.in)
	}
	lines := make(chan string, 1)
	go func() {
		line, _ := a.answers.ReadString('\n') // an error is no answer, and so a no
		lines <- strings.TrimSpace(line)
	}()
	select {
	case line := <-lines:
		return line, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
