package fifo_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/fifokit"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// watched notes the events that hooks see, each by the number that Accept put into its context.
type watched struct {
	slow time.Duration // how long Answered takes

	mu       sync.Mutex
	accepted []string
	answered []string // the event and what became of it
	problems []string
	answers  map[int]fifo.Answer
}

type eventNumber struct{}

func (w *watched) option(o *fifo.Options) {
	o.Hooks = append(o.Hooks, fifo.Hooks{Accept: w.accept, Answered: w.answer})
}

func (w *watched) accept(ctx context.Context, a fifo.Acceptance) (context.Context, fifo.Carry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.accepted = append(w.accepted, a.Event.ID)
	return context.WithValue(ctx, eventNumber{}, len(w.accepted)), fifo.Carry{}
}

func (w *watched) answer(ctx context.Context, a fifo.Answer) {
	time.Sleep(w.slow)
	w.mu.Lock()
	defer w.mu.Unlock()
	n, _ := ctx.Value(eventNumber{}).(int)
	if n < 1 || w.accepted[n-1] != a.Event.ID {
		w.problems = append(w.problems, "answered with the context of another event: "+a.Event.ID)
	}
	if _, again := w.answers[n]; again {
		w.problems = append(w.problems, "answered twice: "+a.Event.ID)
	}
	if w.answers == nil {
		w.answers = map[int]fifo.Answer{}
	}
	w.answers[n] = a
	became := reason(a.Err)
	if pe, ok := errors.AsType[*fifo.PublishError](a.Err); a.Err != nil && (!ok || pe.EventID != a.Event.ID) {
		w.problems = append(w.problems, fmt.Sprintf("error %T, want the event's *PublishError", a.Err))
	} else if a.Err == nil && a.Receipt.MessageID == "" {
		became = "nothing"
	}
	w.answered = append(w.answered, strings.TrimSpace(a.Event.ID+" "+became))
}

func (w *watched) got() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(slices.Values(w.answered))
}

// Every event that is given to a publisher is answered once, however it fares, before whoever waits for that goes on.
func TestAnswered(t *testing.T) {
	t.Parallel()
	short := func(x *fixture) context.Context {
		ctx, cancel := context.WithTimeoutCause(x.Context(), time.Minute, errCancelled)
		x.Cleanup(cancel)
		return ctx
	}
	ended := func(x *fixture) context.Context {
		ctx, cancel := context.WithCancelCause(x.Context())
		cancel(errCancelled)
		return ctx
	}
	refusing := fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.Error, Code: "AccessDenied"}
	losing := fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.LoseReply}
	throttling := fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: fault.Error, Code: "ThrottlingException"}
	hanging := fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.Delay, Delay: time.Hour}
	lingering := func(o *fifo.Options) { o.Linger = time.Hour }
	small := func(o *fifo.Options) { o.Linger, o.MaxMessages = time.Hour, 1 }
	for _, tt := range []struct {
		name   string
		option func(*fifo.Options)
		do     func(x *fixture, p *fifo.Publisher)
		want   []string // when do has returned
		late   []string // besides, when Close has returned
		fault  fault.Rule
	}{
		{"Publish", nil, func(x *fixture, p *fifo.Publisher) { _, _ = p.Publish(x.Context(), event("g", 1)) }, []string{"g/v1"}, nil, fault.Rule{}},
		{"Enqueue", nil, func(x *fixture, p *fifo.Publisher) {
			pd, _ := p.Enqueue(x.Context(), event("g", 1))
			_, _ = pd.Get(x.Context())
		}, []string{"g/v1"}, nil, fault.Rule{}},
		{"Flush", lingering, func(x *fixture, p *fifo.Publisher) {
			x.enqueue(p, event("g", 1), event("g", 2))
			_ = p.Flush(x.Context())
		}, []string{"g/v1", "g/v2"}, nil, fault.Rule{}},
		{"PublishAll", nil, func(x *fixture, p *fifo.Publisher) {
			_, _ = p.PublishAll(x.Context(), []fifo.Event{event("g", 1), event("g", 2), event("h", 1)})
		}, []string{"g/v1", "g/v2", "h/v1"}, nil, fault.Rule{}},
		{"sent again", nil, func(x *fixture, p *fifo.Publisher) { _, _ = p.Publish(x.Context(), event("g", 1)) }, []string{"g/v1"}, nil,
			fault.Rule{Op: "SendMessageBatch", Nth: 1, Times: 3, Do: fault.LoseReply}},
		{"refused by SQS, halted", nil, func(x *fixture, p *fifo.Publisher) {
			x.enqueue(p, event("g", 1), event("g", 2))
			_ = p.Flush(x.Context())
		}, []string{"g/v1 not sent", "g/v2 halted"}, nil, refusing},
		{"halted before it is accepted", nil, func(x *fixture, p *fifo.Publisher) {
			_, _ = fifokit.PublishAll(p, x.Context(), []fifo.Event{event("g", 1), event("g", 2)}, []error{errCancelled, nil})
		}, []string{"g/v1 not sent", "g/v2 halted"}, nil, fault.Rule{}},
		{"window over", nil, func(x *fixture, p *fifo.Publisher) { _, _ = p.Publish(x.Context(), event("g", 1)) }, []string{"g/v1 unknown"}, nil, losing},
		{"bad event", nil, func(x *fixture, p *fifo.Publisher) { _, _ = p.Publish(x.Context(), fifo.Event{ID: "bad"}) }, []string{"bad not sent"}, nil, fault.Rule{}},
		{"too large", nil, func(x *fixture, p *fifo.Publisher) { _, _ = p.Publish(x.Context(), sized("g", mebibyte+1)) }, []string{"g/v1 not sent"}, nil, fault.Rule{}},
		{"conflict", nil, func(x *fixture, p *fifo.Publisher) {
			_, _ = p.Publish(x.Context(), event("g", 1))
			other := event("g", 1)
			other.Body = "other"
			_, _ = p.Publish(x.Context(), other)
		}, []string{"g/v1", "g/v1 conflict"}, nil, fault.Rule{}},
		{"closed", nil, func(x *fixture, p *fifo.Publisher) {
			_ = p.Close(x.Context())
			_, _ = p.Publish(x.Context(), event("g", 1))
		}, []string{"g/v1 not sent"}, nil, fault.Rule{}},
		{"buffer full", small, func(x *fixture, p *fifo.Publisher) {
			x.enqueue(p, event("g", 1))
			_, _ = p.Enqueue(short(x), event("h", 1))
		}, []string{"h/v1 full"}, []string{"g/v1"}, fault.Rule{}},
		{"cancelled before", nil, func(x *fixture, p *fifo.Publisher) { _, _ = p.Publish(ended(x), event("g", 1)) }, []string{"g/v1 not sent"}, nil, fault.Rule{}},
		{"PublishAll cancelled before", nil, func(x *fixture, p *fifo.Publisher) {
			_, _ = p.PublishAll(ended(x), []fifo.Event{event("g", 1), event("h", 1)})
		}, []string{"g/v1 not sent", "h/v1 not sent"}, nil, fault.Rule{}},
		{"cancelled while it lingers", lingering, func(x *fixture, p *fifo.Publisher) { _, _ = p.Publish(short(x), event("g", 1)) },
			[]string{"g/v1 not sent"}, nil, fault.Rule{}},
		{"cancelled in flight", func(o *fifo.Options) { fifo.SetAttemptTimeout(o, time.Minute) }, func(x *fixture, p *fifo.Publisher) {
			ctx, cancel := context.WithTimeout(x.Context(), time.Second)
			defer cancel()
			_, _ = p.Publish(ctx, event("g", 1))
		}, nil, []string{"g/v1"}, hanging},
		{"PublishAll cancelled in flight", func(o *fifo.Options) { fifo.SetAttemptTimeout(o, time.Minute) }, func(x *fixture, p *fifo.Publisher) {
			ctx, cancel := context.WithTimeout(x.Context(), time.Second)
			defer cancel()
			_, _ = p.PublishAll(ctx, []fifo.Event{event("g", 1), event("g", 2)})
		}, []string{"g/v1 unknown", "g/v2 not sent"}, nil, hanging},
		{"a lane that is closed in flight", func(o *fifo.Options) { fifo.SetAttemptTimeout(o, time.Minute) }, func(x *fixture, p *fifo.Publisher) {
			l, closeLane := fifokit.OpenLane(p, x.Context())
			x.enqueueTo(l, event("g", 1), event("g", 2))
			time.Sleep(time.Second)
			closeLane()
		}, []string{"g/v1 unknown", "g/v2 not sent"}, nil, hanging},
		{"a lane that is closed after its context", func(o *fifo.Options) { fifo.SetAttemptTimeout(o, time.Minute) }, func(x *fixture, p *fifo.Publisher) {
			ctx, cancel := context.WithTimeout(x.Context(), time.Second)
			defer cancel()
			l, closeLane := fifokit.OpenLane(p, ctx)
			x.enqueueTo(l, event("g", 1), event("g", 2))
			time.Sleep(time.Second)
			closeLane()
		}, []string{"g/v1 unknown", "g/v2 not sent"}, nil, hanging},
		{"a lane that is closed before it has results", nil, func(x *fixture, p *fifo.Publisher) {
			l, closeLane := fifokit.OpenLane(p, x.Context())
			x.enqueueTo(l, event("g", 1))
			time.Sleep(10 * time.Millisecond)
			synctest.Wait() // the hook is called
			closeLane()
		}, []string{"g/v1"}, nil, fault.Rule{Op: "SendMessageBatch", Nth: 99, Do: fault.Reset}},
		{"PublishAll cancelled between attempts", nil, func(x *fixture, p *fifo.Publisher) {
			_, _ = p.PublishAll(short(x), []fifo.Event{event("g", 1), event("g", 2)})
		}, []string{"g/v1 not sent", "g/v2 not sent"}, nil, throttling},
		{"PublishAll cancelled between attempts, unknown", nil, func(x *fixture, p *fifo.Publisher) {
			_, _ = p.PublishAll(short(x), []fifo.Event{event("g", 1), event("g", 2)})
		}, []string{"g/v1 unknown", "g/v2 not sent"}, nil, losing},
		{"Close whose context ends between attempts", nil, func(x *fixture, p *fifo.Publisher) {
			x.enqueue(p, event("g", 1))
			time.Sleep(time.Minute)
			_ = p.Close(ended(x))
		}, []string{"g/v1 not sent"}, nil, throttling},
		{"Close whose context ends", nil, func(x *fixture, p *fifo.Publisher) {
			x.enqueue(p, event("g", 1), event("g", 2))
			synctest.Wait()
			time.Sleep(time.Second)
			_ = p.Close(ended(x))
		}, []string{"g/v1 unknown", "g/v2 not sent"}, nil, hanging},
	} {
		for _, slow := range []time.Duration{0, time.Millisecond} {
			runIn(t, fmt.Sprint(tt.name, " ", slow), orders, func(x *fixture) {
				w := &watched{slow: slow}
				option := tt.option
				if option == nil {
					option = func(*fifo.Options) {}
				}
				p := x.publisher(option, w.option)
				x.sent.forget()
				tt.do(x, p)
				x.expect("answered when the call returns", tt.want, w.got())
				if err := p.Close(context.Background()); err != nil && len(tt.want) == 0 {
					x.Errorf("Close: %v", err)
				}
				x.expect("answered after Close", slices.Sorted(slices.Values(slices.Concat(tt.want, tt.late))), w.got())
				if len(w.answers) != len(w.accepted) || len(w.problems) > 0 {
					x.Errorf("%d events accepted, %d answered, %v", len(w.accepted), len(w.answers), w.problems)
				}
				time.Sleep(2 * time.Hour) // until no request hangs
				x.expectIdle(p)
			}, tt.fault)
		}
	}
}

type requestNumber struct{}

// Each request has its hook, with the contexts of its events, and is made with the context that the hook returns.
func TestSendHook(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		w := &watched{}
		var lines []string
		n := 0
		p := x.publisher(w.option, func(o *fifo.Options) {
			o.Hooks = append(o.Hooks, fifo.Hooks{Send: func(ctx context.Context, s fifo.Send) (context.Context, func(fifo.SendResult)) {
				n++
				mine := n
				var events []any
				for _, e := range s.Events {
					events = append(events, e.Value(eventNumber{}))
				}
				lines = append(lines, fmt.Sprint(mine, " sends ", events, " of ", s.Bytes, " bytes"))
				return context.WithValue(ctx, requestNumber{}, mine), func(r fifo.SendResult) {
					lines = append(lines, fmt.Sprint(mine, " sent ", r.Sent, " failed ", r.Failed, " ", r.Err != nil, " after ", r.Elapsed))
				}
			}})
		})
		x.sent.onSend = func(ctx context.Context) {
			lines = append(lines, fmt.Sprint(ctx.Value(requestNumber{}), " in the client"))
			time.Sleep(time.Second)
		}
		_, size, err := fifokit.Check(p, event("g", 1))
		if err != nil {
			x.Fatal(err)
		}
		must.Get(p.PublishAll(x.Context(), []fifo.Event{event("g", 1), event("h", 2)}))(x)
		want := []string{
			fmt.Sprint("1 sends [1 2] of ", 2*size, " bytes"), "1 in the client", "1 sent 1 failed 1 false after 1s",
			fmt.Sprint("2 sends [2] of ", size, " bytes"), "2 in the client", "2 sent 0 failed 1 true after 1s",
			fmt.Sprint("3 sends [2] of ", size, " bytes"), "3 in the client", "3 sent 1 failed 0 false after 1s",
		}
		x.expect("hooks and client", want, lines)
	}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.FailEntries, Entries: []int{1}},
		fault.Rule{Op: "SendMessageBatch", Nth: 2, Do: fault.LoseReply})
}

// Attach gets the publisher that NewPublisher returns, and is undone by the first Close, when nothing is left.
func TestAttach(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		var attached *fifo.Publisher
		detached, pending := 0, int64(-1)
		p := x.publisher(func(o *fifo.Options) {
			o.Hooks = []fifo.Hooks{{Attach: func(*fifo.Publisher) func() { return nil }}, {Attach: func(p *fifo.Publisher) func() {
				attached = p
				return func() { detached, pending = detached+1, p.Stats().Pending }
			}}}
		})
		if attached != p || p.Stats().Pending != 0 {
			x.Error("Attach got another publisher")
		}
		x.enqueue(p, event("g", 1))
		for range 2 {
			must.Do(x, p.Close(x.Context()))
		}
		if detached != 1 || pending != 0 {
			x.Errorf("detached %d times with %d events pending, want once with none", detached, pending)
		}
	})
}

// No hook is called under the lock, and one that panics changes nothing, is logged once and not called again.
func TestHooksThatMisbehave(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		var book logBook
		w := &watched{}
		calls := map[string]int{}
		var p *fifo.Publisher
		bad := func(name string) {
			calls[name]++
			if p != nil {
				_ = p.Stats()
				p.Resume("g")
			}
			panic(name)
		}
		p = x.publisher(book.option, w.option, func(o *fifo.Options) {
			o.Hooks = append(o.Hooks, fifo.Hooks{
				Accept: func(context.Context, fifo.Acceptance) (context.Context, fifo.Carry) {
					bad("Accept")
					return nil, fifo.Carry{}
				},
				Answered: func(context.Context, fifo.Answer) { bad("Answered") },
				Send: func(context.Context, fifo.Send) (context.Context, func(fifo.SendResult)) {
					bad("Send")
					return nil, nil
				},
				Attach: func(*fifo.Publisher) func() { bad("Attach"); return nil },
			}, fifo.Hooks{
				Send: func(ctx context.Context, _ fifo.Send) (context.Context, func(fifo.SendResult)) {
					return ctx, func(fifo.SendResult) { bad("done") }
				},
			}, fifo.Hooks{Attach: func(*fifo.Publisher) func() { return func() { bad("detach") } }})
		})
		for n := range 3 {
			if _, err := p.Publish(x.Context(), event("g", n)); err != nil {
				x.Errorf("event %d: %v", n, err)
			}
		}
		must.Do(x, p.Close(x.Context()))
		if diff := cmp.Diff([]string{"g/v0", "g/v1", "g/v2"}, w.got()); diff != "" || len(w.problems) > 0 {
			x.Errorf("hooks beside them (-want +got):\n%s%v", diff, w.problems)
		}
		names := []string{"Accept", "Answered", "Send", "Attach", "done", "detach"}
		for _, name := range names {
			if calls[name] != 1 {
				x.Errorf("%s was called %d times, want once", name, calls[name])
			}
		}
		if n := book.count("ERROR", "it is not called again"); n != len(names) {
			x.Errorf("%d lines, want %d:\n%s", n, len(names), book.String())
		}
	})
}

// Sets of hooks run in their order, and those that end something in reverse.
func TestHooksOrder(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		var order []string
		p := x.publisher(func(o *fifo.Options) {
			for i := range 2 {
				note := func(name string) { order = append(order, fmt.Sprint(name, i)) }
				o.Hooks = append(o.Hooks, fifo.Hooks{
					Accept: func(ctx context.Context, _ fifo.Acceptance) (context.Context, fifo.Carry) {
						note("accept")
						return ctx, fifo.Carry{}
					},
					Answered: func(context.Context, fifo.Answer) { note("answered") },
					Send: func(ctx context.Context, _ fifo.Send) (context.Context, func(fifo.SendResult)) {
						note("send")
						return ctx, func(fifo.SendResult) { note("done") }
					},
					Attach: func(*fifo.Publisher) func() { note("attach"); return func() { note("detach") } },
				}, fifo.Hooks{})
			}
		})
		must.Get(p.Publish(x.Context(), event("g", 1)))(x)
		_ = p.Close(x.Context())
		want := []string{"attach0", "attach1", "accept0", "accept1", "send0", "send1", "done1", "done0", "answered1", "answered0", "detach1", "detach0"}
		x.expect("order", want, order)
	})
}
