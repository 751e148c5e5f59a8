package cli

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
	"github.com/sqsonce/sqsonce/internal/opserr"
	"github.com/sqsonce/sqsonce/ops"
)

const progressEvery = 10 * time.Second

// progress shows on standard error how far a redrive is: on a terminal as a bar, where the plan says of how many, else as a line
// every ten seconds.
type progress struct {
	a             *app
	canaries      int // that are still to come
	canaryTimeout time.Duration

	actions  map[string]ops.Action // by message ID
	counts   map[ops.Action]int
	cameBack atomic.Int64
	sent     time.Time // when the canary was sent that is awaited
	shown    time.Time // when the last line was
	bars     *mpb.Progress
	bar      *mpb.Bar // nil: lines
}

func (a *app) newProgress(total int) *progress {
	p := &progress{a: a, actions: map[string]ops.Action{}, counts: map[ops.Action]int{}, shown: time.Now()}
	if a.bars && total > 0 {
		p.bars = mpb.New(mpb.WithOutput(a.err), mpb.WithWidth(40), mpb.WithAutoRefresh())
		p.bar = p.bars.AddBar(int64(total),
			mpb.PrependDecorators(decor.CountersNoUnit("%d / %d redriven ")),
			mpb.AppendDecorators(decor.Elapsed(decor.ET_STYLE_MMSS), decor.Any(func(decor.Statistics) string {
				return fmt.Sprintf(" %d came back", p.cameBack.Load())
			})))
	}
	return p
}

// result takes the result of a message, or what has become of it since.
func (p *progress) result(res *ops.Result) {
	last, seen := p.actions[res.ID]
	if seen {
		p.counts[last]--
	}
	p.actions[res.ID] = res.Action
	p.counts[res.Action]++
	if errors.Is(res.Err, opserr.ErrCameBack) && !seen {
		p.cameBack.Add(1)
	}
	p.showCanary(res, seen)
	if p.bar != nil {
		p.bar.SetCurrent(int64(p.counts[ops.ActionRedriven]))
	} else if time.Since(p.shown) >= progressEvery {
		p.shown = time.Now()
		p.line("%d redriven, %d left, %d came back", p.counts[ops.ActionRedriven], p.counts[ops.ActionLeft], p.cameBack.Load())
	}
}

// showCanary says what is waited for.
func (p *progress) showCanary(res *ops.Result, seen bool) {
	switch {
	case p.canaries == 0 || res.Action != ops.ActionRedriven:
	case res.After == "" && !seen:
		p.sent = time.Now()
		p.line("canary %s sent, %s: waiting for its end, %s at most", res.ID, res.RecordKey, shown.Brief(p.canaryTimeout, true))
	case res.After != "":
		p.canaries--
		p.line("canary %s is %s, after %.1f s", res.ID, res.After, time.Since(p.sent).Seconds())
	}
}

// line prints a line, above the bar.
func (p *progress) line(format string, args ...any) {
	if p.bar == nil {
		p.a.note(format, args...)
		return
	}
	fmt.Fprintln(p.bars, escapedLines(fmt.Sprintf(format, args...)))
}

func (p *progress) stop() {
	if p.bar != nil {
		p.bar.Abort(false) // Wait would wait for a bar that is not full
		p.bars.Wait()
	}
}
