package ecsprotect_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
	"github.com/sqsonce/sqsonce/sqsworker"
	"github.com/sqsonce/sqsonce/sqsworker/ecsprotect"
)

// agent is that of ECS.
type agent struct {
	mu    sync.Mutex
	begun time.Time
	calls []call
	until time.Time // of the protection
	takes time.Duration
	// answer, if set, answers in the agent's place. The request has had its effect if act is true.
	answer func(r *http.Request) (_ *http.Response, act bool, _ error)
}

type call struct {
	at      time.Duration // rounded down to 2 s, the Guard's interval
	on      bool
	minutes int
}

func (a *agent) RoundTrip(r *http.Request) (*http.Response, error) {
	var in struct {
		ProtectionEnabled bool
		ExpiresInMinutes  int
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.Method != http.MethodPut || r.URL.String() != "http://169.254.170.2/api/id/task-protection/v1/state" {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL, err)
	}
	a.mu.Lock()
	a.calls = append(a.calls, call{time.Since(a.begun).Truncate(2 * time.Second), in.ProtectionEnabled, in.ExpiresInMinutes})
	answer, takes := a.answer, a.takes
	a.mu.Unlock()
	defer time.Sleep(takes) // the request has had its effect
	var resp *http.Response
	var err error
	if answer != nil {
		var act bool
		if resp, act, err = answer(r); !act {
			return resp, err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.until = time.Time{}
	if in.ProtectionEnabled {
		a.until = time.Now().Add(time.Duration(in.ExpiresInMinutes) * time.Minute)
	}
	if answer != nil {
		return resp, err
	}
	return body(http.StatusOK, `{"protection":{"ProtectionEnabled":%t,"TaskArn":"arn:aws:ecs:x"}}`, in.ProtectionEnabled), nil
}

func (a *agent) list() []call {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls
}

// fails has the agent answer so. Nil: as it does.
func (a *agent) fails(answer func(*http.Request) (*http.Response, bool, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = answer
}

// slow has each answer take so long.
func (a *agent) slow(takes time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.takes = takes
}

// protectedUntil is when the protection ends, or has ended.
func (a *agent) protectedUntil() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.until
}

func (a *agent) protects() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Now().Before(a.until)
}

func body(status int, format string, args ...any) *http.Response {
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(fmt.Sprintf(format, args...))),
	}
}

// task is a task with a Guard, in a bubble.
type task struct {
	*testing.T
	*agent
	guard *ecsprotect.Guard
	sqs   *sqs.Client
	mu    sync.Mutex
	cut   int // handlers whose context ended
	done  int

	stop func() error // of the worker of bubble
}

// newTask returns a task without a worker.
func newTask(t *testing.T, optFns ...func(*ecsprotect.Options)) *task {
	srv := memsqs.New()
	t.Cleanup(srv.Close)
	x := &task{T: t, agent: &agent{begun: time.Now()}, sqs: testaws.SQS(srv)}
	own := func(o *ecsprotect.Options) {
		o.SetAgent("http://169.254.170.2/api/id", &http.Client{Transport: x.agent})
		o.Logger = quiet
	}
	x.guard = must.Get(ecsprotect.New(append([]func(*ecsprotect.Options){own}, optFns...)...))(t)
	return x
}

var quiet = slog.New(slog.DiscardHandler)

func (x *task) send(url string, n int) {
	for i := range n {
		must.Get(x.sqs.SendMessage(x.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String(fmt.Sprint(i))}))(x)
	}
}

// work starts a worker.
func (x *task) work(url string, stopTimeout time.Duration, h sqsonce.Handler, optFns ...func(*sqsworker.Options)) (_ *sqsworker.Worker, stop func() error) {
	own := func(o *sqsworker.Options) {
		o.StopTimeout, o.Logger = stopTimeout, quiet
		o.Hooks = append(o.Hooks, x.guard.Hooks())
	}
	w := must.Get(sqsworker.New(x.sqs, url, h, append([]func(*sqsworker.Options){own}, optFns...)...))(x)
	ctx, cancel := context.WithCancel(x.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return w, sync.OnceValue(func() error { cancel(); return <-ended })
}

// bubble has a worker work on a queue of n messages.
func bubble(t *testing.T, n int, takes func(i int) time.Duration, answer func(*http.Request) (*http.Response, bool, error), f func(*task)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		x := newTask(t)
		x.fails(answer)
		url := testaws.Queue(t, x.sqs, "jobs", nil)
		x.send(url, n)
		started := 0
		_, x.stop = x.work(url, 110*time.Second, func(ctx context.Context, _ *sqsonce.Message) error {
			x.mu.Lock()
			i := started
			started++
			x.mu.Unlock()
			var err error
			select {
			case <-time.After(takes(i)):
			case <-ctx.Done():
				err = ctx.Err()
			}
			x.mu.Lock()
			defer x.mu.Unlock()
			if x.done++; err != nil {
				x.done--
				x.cut++
			}
			return err
		})
		f(x)
		must.Do(t, x.stop())
		if answer == nil && x.protects() {
			t.Error("the task is protected after Run has returned")
		}
	})
}

func (x *task) handled() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.done
}

func (x *task) cutOff() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.cut
}

func always(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

// TestLongHandler: a handler is protected from StopTimeout less 10 s until its end.
func TestLongHandler(t *testing.T) {
	t.Parallel()
	bubble(t, 1, always(18*time.Minute-time.Second), nil, func(x *task) {
		time.Sleep(10 * time.Minute)
		if s := x.guard.Status(); time.Until(s.Until) < 10*time.Minute || s.Drains || s.Err != nil {
			x.Errorf("after 10 min: %+v", s)
		}
		time.Sleep(10 * time.Minute)
		want := []call{{100 * time.Second, true, 15}, {400 * time.Second, true, 15}, {700 * time.Second, true, 15}, {1000 * time.Second, true, 15}, {18 * time.Minute, false, 0}}
		if got := x.list(); !reflect.DeepEqual(got, want) {
			x.Errorf("calls %v, want %v", got, want)
		}
		if s := x.guard.Status(); s != (ecsprotect.Status{}) {
			x.Errorf("at the end: %+v", s)
		}
	})
}

// TestShortHandlers: a queue of short jobs makes no call.
func TestShortHandlers(t *testing.T) {
	t.Parallel()
	bubble(t, 500, always(time.Second), nil, func(x *task) {
		time.Sleep(5 * time.Minute)
		if len(x.list()) > 0 || x.handled() != 500 {
			x.Errorf("%d jobs done, calls %v", x.handled(), x.list())
		}
	})
}

// TestDeploymentEnds: ten handlers of 12 to 20 min at once, and more wait. ECS stops the task as soon as it is not protected. That is
// within Most and the longest handler, and cuts none off.
func TestDeploymentEnds(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{2 * time.Minute, time.Hour, 3 * time.Hour} {
		bubble(t, 400, func(i int) time.Duration { return 12*time.Minute + time.Duration(i*7%9)*time.Minute }, nil, func(x *task) {
			time.Sleep(after)
			for x.protects() {
				time.Sleep(time.Second)
			}
			waited := time.Since(x.begun) - after
			must.Do(x.T, x.stop())
			if waited > time.Hour+20*time.Minute+10*time.Second || x.cutOff() > 0 || x.handled() == 0 {
				x.Errorf("deployed after %s: replaced %s later, %d handlers cut off, %d done", after, waited, x.cutOff(), x.handled())
			}
		})
	}
}

// TestWorkersGoOn: a task that ECS leaves alone works on.
func TestWorkersGoOn(t *testing.T) {
	t.Parallel()
	bubble(t, 1000, func(i int) time.Duration { return 12*time.Minute + time.Duration(i*7%9)*time.Minute }, nil, func(x *task) {
		opened := 0
		for range 6 * 60 * 60 / 2 {
			before := x.guard.Status()
			time.Sleep(2 * time.Second)
			if after := x.guard.Status(); before.Drains && !after.Drains {
				opened++
			}
		}
		if opened < 3 || x.handled() < 150 { // ten slots, 16 min each, 6 h: 225 without a drain
			x.Errorf("in 6 h: drained %d times, %d done", opened, x.handled())
		}
	})
}

// refusal is ECS's, with the status 200.
const refusal = `{"failure":{"Arn":"arn:aws:ecs:x","Reason":"DEPLOYMENT_BLOCKED"}}`

func down(*http.Request) (*http.Response, bool, error) {
	return nil, false, errors.New("connection refused")
}

func refuses(*http.Request) (*http.Response, bool, error) { return body(200, refusal), false, nil }

func denies(*http.Request) (*http.Response, bool, error) {
	return body(400, `{"error":{"Code":"AccessDeniedException"}}`), false, nil
}

func hangs(r *http.Request) (*http.Response, bool, error) {
	<-r.Context().Done()
	return nil, false, r.Context().Err()
}

// stalls is a reader whose client waits for the rest of an answer.
type stalls struct{ ctx context.Context }

func (s stalls) Read([]byte) (int, error) { <-s.ctx.Done(); return 0, s.ctx.Err() }

// TestAgentFails: handlers never wait for the agent, and it gets few calls.
func TestAgentFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]func(*http.Request) (*http.Response, bool, error){
		"down": down, "refuses": refuses, "denies": denies, "hangs": hangs,
		"stalls": func(r *http.Request) (*http.Response, bool, error) {
			resp := body(200, "")
			resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"protection"`), stalls{r.Context()}))
			return resp, false, nil
		},
		"says no": func(*http.Request) (*http.Response, bool, error) { return body(200, `{"protection":{}}`), false, nil },
		"a page":  func(*http.Request) (*http.Response, bool, error) { return body(502, "<html>"), false, nil },
		"long": func(*http.Request) (*http.Response, bool, error) {
			return body(200, "%s", strings.Repeat(" ", 1<<20)), false, nil
		},
		"panics":     func(*http.Request) (*http.Response, bool, error) { panic("a bug") },
		"reply lost": func(*http.Request) (*http.Response, bool, error) { return nil, true, errors.New("connection reset") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, 1, always(28*time.Minute), c, func(x *task) {
				time.Sleep(20 * time.Minute)
				if s := x.guard.Status(); s.Err == nil || !s.Until.IsZero() {
					x.Errorf("%+v", s)
				}
				time.Sleep(9 * time.Minute)
				calls := x.list()
				if x.handled() != 1 || x.cutOff() != 0 || len(calls) < 10 || len(calls) > 30 {
					x.Errorf("%d done, %d cut off, %d calls", x.handled(), x.cutOff(), len(calls))
				}
				if calls[len(calls)-1].on {
					x.Error("the task may be protected, and nobody switches it off")
				}
			})
		})
	}
}

// TestAgentIsSlow: the protection has no gap, and Status never promises more of it than ECS gives.
func TestAgentIsSlow(t *testing.T) {
	t.Parallel()
	bubble(t, 1, always(28*time.Minute), nil, func(x *task) {
		x.slow(9 * time.Second)
		time.Sleep(2 * time.Minute)
		for x.handled() == 0 {
			if until := x.guard.Status().Until; !x.protects() || until.IsZero() || until.After(x.protectedUntil()) {
				x.Fatalf("after %s: protected: %t, until %s, and Status says %s", time.Since(x.begun), x.protects(), x.protectedUntil(), until)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(30 * time.Second)
		if n := len(x.list()); x.protects() || n > 8 {
			x.Errorf("after the handler's end: protected: %t, %d calls", x.protects(), n)
		}
	})
}

// TestAgentFailsInADrain: an agent that fails while the task drains holds its workers until the protection has lapsed, and not longer.
// When it works again, so does the protection.
func TestAgentFailsInADrain(t *testing.T) {
	t.Parallel()
	const longest = 20 * time.Minute
	for name, fails := range map[string]func(*http.Request) (*http.Response, bool, error){
		"down": down, "refuses": refuses, "denies": denies, "hangs": hangs,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, 400, func(i int) time.Duration { return 12*time.Minute + time.Duration(i*7%9)*time.Minute }, nil, func(x *task) {
				for !x.guard.Status().Drains {
					time.Sleep(time.Second)
				}
				x.fails(fails)
				began := time.Now()
				for x.guard.Status().Drains {
					if time.Sleep(time.Second); time.Since(began) > longest+17*time.Minute {
						x.Fatalf("the workers are held %s after the agent began to fail", time.Since(began))
					}
					if s := x.guard.Status(); !s.Until.IsZero() && !x.protects() {
						x.Fatalf("Status promises a protection that has lapsed: %+v", s)
					}
				}
				before := x.handled()
				time.Sleep(longest)
				if x.handled() == before || x.cutOff() > 0 {
					x.Errorf("%d handlers ended in 20 min after the drain, %d cut off", x.handled()-before, x.cutOff())
				}
				x.fails(nil)
				time.Sleep(2*time.Minute + 12*time.Second)
				if !x.protects() {
					x.Errorf("not protected 2 min after the agent works again: %+v", x.guard.Status())
				}
			})
		})
	}
}

// TestOffFails: an agent that fails only to switch the protection off makes no task protected for longer than Most and a handler, and
// none that is believed to be protected is not.
func TestOffFails(t *testing.T) {
	t.Parallel()
	for name, acts := range map[string]bool{"refused": false, "reply lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, 400, always(4*time.Minute), nil, func(x *task) { // ten at once, and none is long in the first 100 s of each ten
				x.fails(func(*http.Request) (*http.Response, bool, error) {
					if calls := x.list(); calls[len(calls)-1].on {
						return body(200, `{"protection":{"ProtectionEnabled":true}}`), true, nil
					}
					return nil, acts, errors.New("connection reset")
				})
				time.Sleep(500 * time.Millisecond) // between the Guard's looks
				drained, unprotected := false, time.Now()
				for time.Since(x.begun) < 3*time.Hour {
					time.Sleep(time.Second)
					s := x.guard.Status()
					drained = drained || s.Drains
					if since := time.Since(x.begun); !drained && since > time.Hour+2*time.Minute {
						x.Fatalf("after %s the task has not drained", since)
					}
					if x.protects() {
						unprotected = time.Now()
					} else if !s.Until.IsZero() {
						x.Fatalf("after %s Status promises a protection that is off: %+v", time.Since(x.begun), s)
					}
					if d := time.Since(unprotected); !drained && d > 110*time.Second {
						x.Fatalf("after %s the task has not been protected for %s", time.Since(x.begun), d)
					}
				}
				x.fails(nil)
			})
		})
	}
}

func TestOptions(t *testing.T) {
	t.Setenv("ECS_AGENT_URI", "")
	_, err := ecsprotect.New(func(o *ecsprotect.Options) {
		o.After, o.Most, o.Open, o.Expiry = -1, 13*time.Hour, time.Second, 90*time.Second
		o.SetAgent("169.254.170.2", nil)
	})
	if got, want := testaws.Fields(err), []string{"Options.After", "Options.Most", "Options.Open", "Options.Expiry", "ECS_AGENT_URI"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if g := must.Get(ecsprotect.New())(t); g.Hooks().Attach != nil {
		t.Error("a guard outside of ECS watches")
	}
}
