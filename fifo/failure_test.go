package fifo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// enqueue accepts events and does not read their results. It returns those that were not accepted.
func (x *fixture) enqueue(p *fifo.Publisher, es ...fifo.Event) (pending []*fifo.PublishResult, refused []error) {
	for _, e := range es {
		pd, err := p.Enqueue(x.Context(), e)
		if err != nil {
			refused = append(refused, err)
			continue
		}
		pending = append(pending, pd)
	}
	return pending, refused
}

// SQS refuses all; nobody waits for a result.
func TestFailuresThatNobodyReads(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*fifo.Publisher, context.Context) error{
		"Flush": (*fifo.Publisher).Flush, "Close": (*fifo.Publisher).Close,
	} {
		runIn(t, name, orders, func(x *fixture) {
			var lines logBook
			var told []string
			p := x.publisher(func(o *fifo.Options) {
				lines.option(o)
				o.OnFailure = func(e fifo.Event, err *fifo.PublishError) {
					told = append(told, fmt.Sprint(e.Body, " ", err.EventID, " ", reason(err)))
				}
			})
			x.enqueue(p, event("g", 1), event("g", 2), event("h", 1), event("g", 3))
			want := []string{"g/v1 not sent", "g/v2 halted", "h/v1 not sent", "g/v3 halted"}
			x.expect("errors", want, outcomes(end(p, x.Context())))
			if err := end(p, x.Context()); err != nil {
				x.Errorf("again: %v, want each failure once", err)
			}
			synctest.Wait()
			x.expect("OnFailure", []string{"g/v1 g/v1 not sent", "g/v2 g/v2 halted", "g/v3 g/v3 halted", "h/v1 h/v1 not sent"}, told)
			got := lines.String()
			if lines.count("ERROR", "") != 2 || !strings.Contains(got, "event=g/v1") || !strings.Contains(got, "halted=2") ||
				!strings.Contains(got, "event=h/v1") || !strings.Contains(got, "AccessDenied") {
				x.Errorf("log:\n%s", got)
			}
		}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.Error, Code: "AccessDenied"})
	}
}

// outcomes returns the event and the reason of each error that is joined.
func outcomes(err error) (out []string) {
	for _, pe := range split(err) {
		out = append(out, pe.EventID+" "+reason(pe))
	}
	return out
}

// An OnFailure that panics or blocks harms no event and no call.
func TestAReportThatPanicsOrBlocks(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(){
		"panics": func() { panic("OnFailure") },
		"blocks": func() { time.Sleep(time.Hour) },
	} {
		runIn(t, name, orders, func(x *fixture) {
			var lines logBook
			p := x.publisher(func(o *fifo.Options) {
				lines.option(o)
				o.OnFailure = func(fifo.Event, *fifo.PublishError) { do() }
			})
			start := time.Now()
			_, err := p.PublishAll(x.Context(), []fifo.Event{event("g", 1), event("h", 1)})
			x.expect("PublishAll", []string{"g/v1 not sent"}, outcomes(err))
			if took := time.Since(start); took > 100*time.Millisecond {
				x.Errorf("PublishAll took %v", took)
			}
			must.Get(p.PublishAll(x.Context(), []fifo.Event{event("g", 2)}))(x)
			if name == "panics" && !strings.Contains(lines.String(), "OnFailure panicked") {
				x.Errorf("log:\n%s", lines.String())
			}
			time.Sleep(time.Hour)
		}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.FailEntries, Code: "InvalidMessageContents", Entries: []int{0}})
	}
}

// After a failure a group takes nothing until the caller knows of it: an event that came meanwhile would be delivered before
// the failed ones, which the caller publishes again.
func TestGroupIsClosedUntilFailuresAreRead(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(x *fixture, p *fifo.Publisher, pending []*fifo.PublishResult){
		"Wait": func(x *fixture, p *fifo.Publisher, pending []*fifo.PublishResult) {
			for i, want := range []string{"not sent", "halted"} {
				if _, refused := x.enqueue(p, event("g", 9)); len(refused) != 1 || reason(refused[0]) != "halted" {
					x.Errorf("after %d results of 2 were read: %v, want ErrGroupHalted", i, refused)
				}
				if _, err := pending[i].Get(x.Context()); reason(err) != want {
					x.Errorf("Wait: %v, want %s", err, want)
				}
			}
		},
		"Flush": func(x *fixture, p *fifo.Publisher, _ []*fifo.PublishResult) {
			if n := len(split(p.Flush(x.Context()))); n != 2 {
				x.Errorf("Flush: %d errors, want 2", n)
			}
		},
		"Resume": func(_ *fixture, p *fifo.Publisher, _ []*fifo.PublishResult) { p.Resume("g") },
	} {
		runIn(t, name, orders, func(x *fixture) {
			p := x.publisher()
			pending, _ := x.enqueue(p, event("g", 3), event("g", 4))
			time.Sleep(time.Second)
			for _, publish := range []func(fifo.Event) error{
				func(e fifo.Event) error { _, err := p.Enqueue(x.Context(), e); return err },
				func(e fifo.Event) error { _, err := p.Publish(x.Context(), e); return err },
				func(e fifo.Event) error {
					_, err := p.PublishAll(x.Context(), []fifo.Event{e})
					return split(err)[0]
				},
			} {
				if err := publish(event("g", 5)); reason(err) != "halted" || !errors.Is(err, fifo.ErrNotSent) {
					x.Errorf("before the failure is known: %v, want ErrGroupHalted", err)
				}
			}
			if _, refused := x.enqueue(p, event("other", 1)); refused != nil {
				x.Errorf("another group: %v", refused)
			}
			read(x, p, pending)
			if _, refused := x.enqueue(p, event("g", 3), event("g", 4), event("g", 5)); refused != nil {
				x.Errorf("published again: %v", refused)
			}
			if err := p.Flush(x.Context()); err != nil && name != "Resume" {
				x.Errorf("Flush: %v", err)
			}
			x.expect("queue", []string{"g/v3", "g/v4", "g/v5"}, x.queued("g"))
		}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.FailEntries, Code: "InvalidMessageContents"})
	}
}

// The end of its caller's context is no failure to be told of: the caller knows.
func TestACallersOwnEndIsNotReported(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		var lines logBook
		p := x.publisher(func(o *fifo.Options) {
			lines.option(o)
			o.OnFailure = func(e fifo.Event, err *fifo.PublishError) { x.Errorf("OnFailure: %v", err) }
		})
		ctx, cancel := context.WithTimeout(x.Context(), time.Second)
		defer cancel()
		if _, err := p.PublishAll(ctx, []fifo.Event{event("g", 1), event("g", 2)}); len(split(err)) != 2 {
			x.Errorf("PublishAll: %v", err)
		}
		if lines.count("ERROR", "") != 0 {
			x.Errorf("log: %s", lines.String())
		}
	}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.LoseReply})
}

// A function's process is frozen after PublishAll.
func TestFailuresAreReportedBeforeTheCallReturns(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		told := 0
		p := x.publisher(func(o *fifo.Options) {
			o.OnFailure = func(fifo.Event, *fifo.PublishError) {
				time.Sleep(10 * time.Millisecond)
				told++
			}
		})
		for n, call := range []func() error{
			func() error { _, err := p.PublishAll(x.Context(), []fifo.Event{event("g", 1)}); return err },
			func() error { x.enqueue(p, event("g", 2)); return p.Flush(x.Context()) },
			func() error { x.enqueue(p, event("g", 3)); return p.Close(x.Context()) },
		} {
			if err := call(); err == nil || told != n+1 {
				x.Errorf("call %d: %v, %d failures reported", n, err, told)
			}
		}
	}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.FailEntries, Code: "InvalidMessageContents"})
}

// What cannot be reported is counted, and its groups accept events again after Flush.
func TestFailuresBeyondTheLimit(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		var lines logBook
		p := x.publisher(func(o *fifo.Options) {
			o.MaxMessages = 2
			lines.option(o)
			o.OnFailure = func(fifo.Event, *fifo.PublishError) { time.Sleep(time.Hour) }
		})
		for n := range 8 {
			x.enqueue(p, event(fmt.Sprint("g", n), 1))
			time.Sleep(time.Second)
		}
		if err := p.Flush(x.Context()); len(split(err)) != 2 || !strings.Contains(err.Error(), "6 more") {
			x.Errorf("Flush: %v, want two failures and the number of the others", err)
		}
		for n := range 8 {
			if _, refused := x.enqueue(p, event(fmt.Sprint("g", n), 1)); refused != nil {
				x.Errorf("group %d after Flush: %v", n, refused)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(24 * time.Hour)
		if !strings.Contains(lines.String(), "it was not called for some events") {
			x.Errorf("log:\n%s", lines.String())
		}
	}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.FailEntries, Code: "InvalidMessageContents"})
}

// Failures that are counted only are not taken for others, whose results were read.
func TestCountedFailuresAfterAFlush(t *testing.T) {
	bubble(t, standard, func(x *fixture) {
		p := x.publisher(func(o *fifo.Options) { o.MaxMessages = 1 })
		must.Do(x, p.Flush(x.Context()))
		var pending []*fifo.PublishResult
		for n := range 2 {
			q := must.Get(p.Enqueue(x.Context(), event("g", n)))(x)
			time.Sleep(time.Second)
			pending = append(pending, q)
		}
		if _, err := pending[0].Get(x.Context()); err == nil {
			x.Error("the first event did not fail")
		}
		if err := p.Flush(x.Context()); err == nil || !strings.Contains(err.Error(), "1 more events failed") {
			x.Errorf("Flush: %v, want the second failure, which was counted", err)
		}
	}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.Error, Code: "AccessDenied"})
}

// A caller that has stopped to wait for a result does not have it.
func TestFailureAfterItsCallerHasLeft(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		p := x.publisher(func(o *fifo.Options) { o.Linger = time.Hour })
		pending := must.Get(p.Enqueue(x.Context(), event("g", 1)))(x)
		ctx, cancel := context.WithCancel(x.Context())
		cancel()
		if _, err := pending.Get(ctx); !errors.Is(err, context.Canceled) {
			x.Errorf("Wait: %v, want its context's error", err)
		}
		if err := p.Flush(x.Context()); reason(err) != "not sent" {
			x.Errorf("Flush: %v, want the failure", err)
		}
	}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.Error, Code: "AccessDenied"})
}
