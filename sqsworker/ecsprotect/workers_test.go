package ecsprotect_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
	"github.com/sqsonce/sqsonce/sqsworker"
	"github.com/sqsonce/sqsonce/sqsworker/ecsprotect"
)

func takes(d time.Duration) sqsonce.Handler {
	return func(context.Context, *sqsonce.Message) error { time.Sleep(d); return nil }
}

func (x *task) wantCalls(want ...call) {
	x.Helper()
	if got := x.list(); !reflect.DeepEqual(got, want) {
		x.Errorf("calls %v, want %v", got, want)
	}
}

// TestTwoWorkers: workers that share a Guard are one task. The shorter StopTimeout says when a handler is long, the last long
// handler ends the protection, and both workers drain.
func TestTwoWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newTask(t, func(o *ecsprotect.Options) { o.Most, o.Open = 10*time.Minute, 2*time.Minute })
		slow, quick := testaws.Queue(t, x.sqs, "slow", nil), testaws.Queue(t, x.sqs, "quick", nil)
		a, stopA := x.work(slow, 110*time.Second, takes(4*time.Minute-time.Second))
		b, stopB := x.work(quick, 30*time.Second, takes(time.Minute-time.Second))
		x.send(quick, 1)
		time.Sleep(2 * time.Minute)
		x.send(quick, 1)
		x.send(slow, 1)
		time.Sleep(5 * time.Minute)
		x.wantCalls(
			call{20 * time.Second, true, 15}, call{60 * time.Second, false, 0}, // 30 s less 10 s
			call{140 * time.Second, true, 15}, call{360 * time.Second, false, 0},
		)
		for range 15 { // one is always long
			x.send(slow, 1)
			time.Sleep(time.Minute)
		}
		if a, b := a.Stats().Intake, b.Stats().Intake; !x.guard.Status().Drains || a != sqsworker.IntakePaused || b != sqsworker.IntakePaused {
			t.Errorf("after Most: drains: %t, the workers are %s and %s", x.guard.Status().Drains, a, b)
		}
		time.Sleep(6 * time.Minute)
		if a, b := a.Stats().Intake, b.Stats().Intake; a != sqsworker.IntakeOpen || b != sqsworker.IntakeOpen {
			t.Errorf("after the drain the workers are %s and %s", a, b)
		}
		must.Do(t, stopA())
		x.send(quick, 1)
		time.Sleep(30 * time.Second)
		if !x.protects() {
			t.Error("the other worker's end ended the protection")
		}
		time.Sleep(time.Minute)
		must.Do(t, stopB())
	})
}

// TestStuckHandler: a handler that doesn't return after its context has ended doesn't keep the protection.
func TestStuckHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newTask(t)
		url := testaws.Queue(t, x.sqs, "jobs", nil)
		x.send(url, 1)
		_, stop := x.work(url, 110*time.Second, takes(time.Hour), func(o *sqsworker.Options) {
			o.StopGrace, o.Timeout = 5*time.Second, func(*sqsonce.Message) time.Duration { return 3 * time.Minute }
		})
		time.Sleep(59 * time.Minute)
		x.wantCalls(call{100 * time.Second, true, 15}, call{186 * time.Second, false, 0})
		time.Sleep(2 * time.Minute)
		must.Do(t, stop())
	})
}

// TestWorkersInTurn: a second Run of a worker changes nothing for the first one, and a worker that starts after the last one has ended
// is protected as the first one was.
func TestWorkersInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newTask(t)
		url := testaws.Queue(t, x.sqs, "jobs", nil)
		for i := range 2 {
			x.send(url, 1)
			w, stop := x.work(url, 110*time.Second, takes(4*time.Minute-time.Second))
			time.Sleep(time.Minute)
			if err := w.Run(t.Context()); !errors.Is(err, sqsworker.ErrAlreadyRun) {
				t.Errorf("a second Run: got error %v", err)
			}
			time.Sleep(time.Minute)
			if s := x.guard.Status(); !x.protects() || s.Until.IsZero() {
				t.Errorf("worker %d: protected: %t, %+v", i, x.protects(), s)
			}
			time.Sleep(time.Minute)
			go func() { _ = stop() }() // the handler has 110 s
			time.Sleep(50 * time.Second)
			if !x.protects() {
				t.Errorf("worker %d: not protected in its stop", i)
			}
			time.Sleep(20 * time.Second)
			if must.Do(t, stop()); x.protects() || x.guard.Status() != (ecsprotect.Status{}) {
				t.Errorf("worker %d: after its end: protected: %t, %+v", i, x.protects(), x.guard.Status())
			}
		}
	})
}

// TestNoProxy: the Guard's own client goes to the agent, also where HTTP_PROXY is set.
func TestNoProxy(t *testing.T) {
	asked := make(chan struct{}, 10)
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"protection":{"ProtectionEnabled":true}}`)
		asked <- struct{}{}
	}))
	defer agent.Close()
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the proxy got a request to %s", r.URL)
		asked <- struct{}{}
	}))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL)
	// Not 127.0.0.1, for which net/http asks no proxy.
	t.Setenv("ECS_AGENT_URI", strings.Replace(agent.URL, "127.0.0.1", "0.0.0.0", 1)+"/api/id")
	srv := memsqs.New()
	defer srv.Close()
	x := &task{T: t, sqs: testaws.SQS(srv)}
	x.guard = must.Get(ecsprotect.New(func(o *ecsprotect.Options) { o.After, o.Logger = time.Millisecond, quiet }))(t)
	url := testaws.Queue(t, x.sqs, "jobs", nil)
	x.send(url, 1)
	_, stop := x.work(url, 10*time.Second, func(context.Context, *sqsonce.Message) error { <-asked; return nil }, func(o *sqsworker.Options) { o.WaitTime = time.Second })
	<-asked
	asked <- struct{}{}
	must.Do(t, stop())
}
