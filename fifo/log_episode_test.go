package fifo_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// Trouble that meets many events has one line, and a further one when it comes back after a quiet minute.
func TestWarnsOncePerEpisode(t *testing.T) {
	t.Parallel()
	for text, rule := range map[string]fault.Rule{
		"fifo: unknown outcome of an attempt": {Do: fault.LoseReply},
		"fifo: SQS throttles the queue":       {Do: fault.Error, Code: "ThrottlingException"},
	} {
		bubble(t, orders, func(x *fixture) {
			var book logBook
			p := x.publisher(book.option)
			rule.Op, rule.Prob = "SendMessageBatch", 1
			trouble := func(round, lines int) {
				x.Helper()
				x.srv.Set(fault.Plan{Rules: []fault.Rule{rule}})
				time.AfterFunc(100*time.Second, func() { x.srv.Set(fault.Plan{}) })
				var all []fifo.Event
				for i := range 50 {
					all = append(all, event(fmt.Sprint("g", i), round))
				}
				if _, err := p.PublishAll(x.Context(), all); err != nil {
					x.Fatal(err)
				}
				if n := book.count("WARN", text); n != lines || book.count("DEBUG", "attempt failed") < 100*round {
					x.Errorf("%d lines %q in round %d, want %d:\n%.3000s", n, text, round, lines, book.String())
				}
			}
			trouble(1, 1)
			time.Sleep(30 * time.Second)
			trouble(2, 1)
			time.Sleep(2 * time.Minute)
			trouble(3, 2)
			for line := range strings.Lines(book.String()) {
				if strings.Contains(line, text) && !strings.Contains(line, " queue="+x.url) {
					x.Errorf("no queue in %s", line)
				}
			}
		})
	}
}

// A group that accepts no events says so once, until somebody reads the failure or resumes it.
func TestWarnsOfAHaltedGroup(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		var book logBook
		p := x.publisher(book.option)
		for round := 1; round <= 2; round++ {
			x.enqueue(p, event("g", 10*round))
			time.Sleep(time.Second)
			if n := book.count("WARN", "group halted"); n != round-1 {
				x.Errorf("%d lines before an event came, want %d", n, round-1)
			}
			for i := range 5 {
				if _, err := p.Enqueue(x.Context(), event("g", 10*round+i+1)); err == nil {
					x.Error("accepted behind a failure")
				}
			}
			x.enqueue(p, event("h", round))
			time.Sleep(time.Second)
			if n := book.count("WARN", "group halted"); n != round {
				x.Errorf("%d lines, want %d:\n%s", n, round, book.String())
			}
			p.Resume("g")
			p.Resume("h")
		}
		if !strings.Contains(book.String(), "event=g/v11 group=g queue="+x.url+" error=") {
			x.Errorf("want event, group, queue and error:\n%s", book.String())
		}
	}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.Error, Code: "AccessDenied"})
}

// contextHandler keeps what the contexts of lines have, by the lines' texts.
type contextHandler struct {
	slog.Handler
	got map[string]any
}

func (h contextHandler) Handle(ctx context.Context, r slog.Record) error {
	if v := ctx.Value(eventKey{}); h.got[r.Message] == nil {
		h.got[r.Message] = v
	}
	return nil
}

type eventKey struct{}

// A line about an event has the context that the Accept hook made for it: a handler of the log finds the event's trace there.
func TestLinesHaveTheEventsContext(t *testing.T) {
	t.Parallel()
	bubble(t, orders, func(x *fixture) {
		h := contextHandler{slog.NewTextHandler(&logBook{}, &slog.HandlerOptions{Level: slog.LevelDebug}), map[string]any{}}
		p := x.publisher(func(o *fifo.Options) {
			o.Logger = slog.New(h)
			o.OnFailure = func(fifo.Event, *fifo.PublishError) { panic("oops") }
			o.Hooks = []fifo.Hooks{{Accept: func(ctx context.Context, a fifo.Acceptance) (context.Context, fifo.Carry) {
				return context.WithValue(ctx, eventKey{}, a.Event.ID), fifo.Carry{}
			}}}
		})
		x.enqueue(p, event("g", 1))
		time.Sleep(90 * time.Second)
		x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: "SendMessageBatch", Prob: 1, Do: fault.LoseReply}}})
		x.enqueue(p, event("h", 1))
		time.Sleep(time.Second)
		x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: "SendMessageBatch", Prob: 1, Do: fault.FailEntries, Code: "InvalidMessageContents"}}})
		time.Sleep(10 * time.Minute)
		_, _ = p.Enqueue(x.Context(), event("g", 2))
		time.Sleep(time.Second)
		synctest.Wait() // the race detector does not see a sleep
		for text, v := range h.got {
			if v == nil {
				x.Errorf("%s: no context", text)
			}
		}
		if len(h.got) != 6 {
			x.Errorf("%v, want six kinds of lines", h.got)
		}
	}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.Reset})
}
