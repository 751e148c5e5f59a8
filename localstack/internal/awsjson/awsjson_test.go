package awsjson_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

// counter is a service with two operations: Count adds one and returns the sum, Refuse returns an error.
type counter struct {
	*awsjson.Server
	n    atomic.Int64
	last atomic.Pointer[string] // body of Remember
}

func newCounter(rules ...fault.Rule) *counter {
	c := &counter{}
	c.Server = awsjson.New(awsjson.Service{
		Name: "counter", Target: "Counter_1", Namespace: "com.example", InternalCode: "InternalFailure", CRC: true,
		Injected: func(code string) *awsjson.Error {
			if code == "Known" {
				return &awsjson.Error{Status: 403, Code: code, QueryCode: "Old.Known"}
			}
			return nil
		},
		Operations: map[string]awsjson.Operation{
			"Count": func(context.Context, awsjson.Request, *fault.Rule) (any, awsjson.Cost, error) {
				return map[string]int64{"Sum": c.n.Add(1)}, awsjson.Cost{Entries: 2, Units: 0.5}, nil
			},
			"Refuse": func(_ context.Context, in awsjson.Request, _ *fault.Rule) (any, awsjson.Cost, error) {
				if string(in.Body) == "plain" {
					return nil, awsjson.Cost{}, errors.New("oops")
				}
				return nil, awsjson.Cost{}, &awsjson.Error{Code: "Refused", QueryCode: "Old.Refused", Message: "no", Fields: map[string]any{"Item": 1}}
			},
			"Wait": func(ctx context.Context, _ awsjson.Request, _ *fault.Rule) (any, awsjson.Cost, error) {
				<-ctx.Done()
				return nil, awsjson.Cost{}, nil
			},
			"Measure": func(_ context.Context, in awsjson.Request, _ *fault.Rule) (any, awsjson.Cost, error) {
				return map[string]int{"Length": len(in.Body)}, awsjson.Cost{}, nil
			},
			"Remember": func(_ context.Context, in awsjson.Request, _ *fault.Rule) (any, awsjson.Cost, error) {
				s := string(in.Body)
				c.last.Store(&s)
				return nil, awsjson.Cost{}, nil
			},
			"Broken": func(context.Context, awsjson.Request, *fault.Rule) (any, awsjson.Cost, error) {
				return func() {}, awsjson.Cost{}, nil // has no JSON
			},
		},
	}, fault.Plan{Rules: rules})
	return c
}

func request(ctx context.Context, op, body string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("X-Amz-Target", "Counter_1."+op)
	r.Header.Set("Authorization", "x")
	return r
}

// call returns the status and the decoded response.
func (c *counter) call(t *testing.T, op, body string) (int, map[string]any, error) {
	t.Helper()
	resp, err := c.RoundTrip(request(t.Context(), op, body))
	if err != nil {
		return 0, nil, err
	}
	raw := must.Get(io.ReadAll(resp.Body))(t)
	if got, want := resp.Header.Get("X-Amz-Crc32"), strconv.FormatUint(uint64(crc32.ChecksumIEEE(raw)), 10); got != want {
		t.Errorf("checksum %s, want %s", got, want)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatalf("response %q: %v", raw, err)
	}
	return resp.StatusCode, out, nil
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	c := newCounter()
	defer c.Close()
	for _, w := range []struct {
		op, body string
		status   int
		out      map[string]any
	}{
		{"Count", "{}", 200, map[string]any{"Sum": 1.0}},
		{"Refuse", "{}", 400, map[string]any{"__type": "com.example#Refused", "message": "no", "Item": 1.0}},
		{"Refuse", "plain", 500, map[string]any{"__type": "com.example#InternalFailure", "message": "oops"}},
		{"Broken", "", 500, map[string]any{"__type": "com.example#InternalFailure"}},
		{"Nonsense", "", 400, map[string]any{"__type": "com.amazon.coral.service#UnknownOperationException", "message": "counter does not implement the operation Nonsense"}},
	} {
		status, out, err := c.call(t, w.op, w.body)
		if err != nil || status != w.status {
			t.Errorf("%s %q: status %d, %v, want %d", w.op, w.body, status, err, w.status)
		}
		if d := cmp.Diff(w.out, out); d != "" {
			t.Errorf("%s %q (-want +got):\n%s", w.op, w.body, d)
		}
	}
}

// The whole body is read, even if its Content-Length is wrong.
func TestLengths(t *testing.T) {
	t.Parallel()
	c := newCounter()
	defer c.Close()
	for _, n := range []int{0, 1, 511, 512, 513, 64<<10 - 1, 64 << 10, 64<<10 + 1, 64<<10 + 513, 1 << 20} {
		for _, said := range []int64{int64(n), -1, 0, 1, int64(n) + 1} {
			r := request(t.Context(), "Measure", strings.Repeat("x", n))
			r.ContentLength = said
			resp := must.Get(c.RoundTrip(r))(t)
			var out struct{ Length int }
			if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || out.Length != n {
				t.Errorf("%d bytes, said to be %d: got %d, %v", n, said, out.Length, err)
			}
		}
	}
}

func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	c := newCounter()
	defer c.Close()
	for name, w := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"unsigned":      {func(r *http.Request) { r.Header.Del("Authorization") }, 403},
		"GET":           {func(r *http.Request) { r.Method = http.MethodGet }, 400},
		"other service": {func(r *http.Request) { r.Header.Set("X-Amz-Target", "Other.Count") }, 400},
		"no target":     {func(r *http.Request) { r.Header.Del("X-Amz-Target") }, 400},
		"too large":     {func(r *http.Request) { r.Body = io.NopCloser(io.LimitReader(zeros{}, 18<<20)) }, 413},
	} {
		r := request(t.Context(), "Count", "{}")
		w.change(r)
		resp, err := c.RoundTrip(r)
		if err != nil || resp.StatusCode != w.status {
			t.Errorf("%s: got %v, %v, want status %d", name, resp, err, w.status)
		}
	}
	if n := c.n.Load(); n != 0 {
		t.Errorf("the operation ran %d times, want 0", n)
	}
	if c.Serves(request(t.Context(), "Count", "")) != true {
		t.Error("does not serve its own target")
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// A rule for an operation that does not exist would never apply.
func TestUnknownOperationInAPlan(t *testing.T) {
	t.Parallel()
	c := newCounter()
	defer c.Close()
	for name, set := range map[string]func(){
		"New": func() { newCounter(fault.Rule{Op: "Cuont", Do: fault.Reset}) },
		"Set": func() { c.Set(fault.Plan{Rules: []fault.Rule{{Op: "Count"}, {Op: "Cuont", Do: fault.Reset}}}) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, `Op is "Cuont", which is none of [Broken Count`) {
					t.Errorf("%s: %s", name, got)
				}
			}()
			set()
		}()
	}
}

// Operations under another target are served under that one only, and a plan knows them.
func TestOthers(t *testing.T) {
	t.Parallel()
	answer := func(text string) map[string]awsjson.Operation {
		return map[string]awsjson.Operation{text: func(context.Context, awsjson.Request, *fault.Rule) (any, awsjson.Cost, error) {
			return map[string]string{"Answer": text}, awsjson.Cost{}, nil
		}}
	}
	c := awsjson.New(awsjson.Service{
		Target: "S", InternalCode: "InternalFailure", Operations: answer("Do"), Others: map[string]map[string]awsjson.Operation{"T": answer("DoOther")},
	}, fault.Plan{Rules: []fault.Rule{{Op: "DoOther", Nth: 2, Do: fault.Error}}})
	defer c.Close()
	for _, tt := range []struct {
		target string
		serves bool
		status int
	}{{"S.Do", true, 200}, {"T.DoOther", true, 200}, {"T.DoOther", true, 500}, {"S.DoOther", true, 400}, {"T.Do", true, 400}, {"U.Do", false, 400}, {"T", false, 400}} {
		r := request(t.Context(), "", "{}")
		r.Header.Set("X-Amz-Target", tt.target)
		if got := c.Serves(r); got != tt.serves {
			t.Errorf("serves %s is %v", tt.target, got)
		}
		resp := must.Get(c.RoundTrip(r))(t)
		if resp.StatusCode != tt.status {
			t.Errorf("%s: status %d, want %d", tt.target, resp.StatusCode, tt.status)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]struct {
		rule   fault.Rule
		status int
		typ    any
		reset  bool
		ran    int64
	}{
		"error":          {fault.Rule{Do: fault.Error, Code: "Custom"}, 400, "com.example#Custom", false, 0},
		"error after":    {fault.Rule{Do: fault.Error, Code: "Custom", After: true}, 400, "com.example#Custom", false, 1},
		"internal error": {fault.Rule{Do: fault.Error}, 500, "com.example#InternalFailure", false, 0},
		"known error":    {fault.Rule{Do: fault.Error, Code: "Known"}, 403, "com.example#Known", false, 0},
		"reset":          {fault.Rule{Do: fault.Reset}, 0, nil, true, 0},
		"reset after":    {fault.Rule{Do: fault.Reset, After: true}, 0, nil, true, 1},
		"lost reply":     {fault.Rule{Do: fault.LoseReply}, 0, nil, true, 1},
		"not its own":    {fault.Rule{Do: fault.Duplicate}, 200, nil, false, 1},
		"another call":   {fault.Rule{Op: "Refuse", Do: fault.Reset}, 200, nil, false, 1},
	} {
		w.rule.Nth = 1
		c := newCounter(w.rule)
		status, out, err := c.call(t, "Count", "{}")
		if errors.Is(err, syscall.ECONNRESET) != w.reset {
			t.Errorf("%s: got error %v, want a reset: %v", name, err, w.reset)
		}
		if status != w.status || out["__type"] != w.typ {
			t.Errorf("%s: got %d %v, want %d %v", name, status, out["__type"], w.status, w.typ)
		}
		if n := c.n.Load(); n != w.ran {
			t.Errorf("%s: the operation ran %d times, want %d", name, n, w.ran)
		}
		calls := c.Calls()
		if len(calls) != 1 || (calls[0].Fault != nil) != (name != "another call") {
			t.Errorf("%s: recorded %+v", name, calls)
		}
		if w.ran == 1 && (calls[0].Entries != 2 || calls[0].Units != 0.5) {
			t.Errorf("%s: recorded cost %+v, want 2 entries, 0.5 units", name, calls[0])
		}
		c.Close()
	}
}

func TestDelayAndReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounter(fault.Rule{Nth: 1, Do: fault.Delay, Delay: 3 * time.Second}, fault.Rule{Nth: 2, Do: fault.Replay, Delay: 5 * time.Second})
		defer c.Close()
		start := time.Now()
		done := make(chan error)
		go func() {
			_, _, err := c.call(t, "Count", "{}")
			done <- err
		}()
		time.Sleep(2 * time.Second)
		if n := c.n.Load(); n != 0 {
			t.Errorf("a delayed call had its effect too early")
		}
		if err := <-done; err != nil || time.Since(start) != 3*time.Second {
			t.Errorf("the call ended after %v with %v, want 3 s", time.Since(start), err)
		}
		if _, out, err := c.call(t, "Count", "{}"); err != nil || out["Sum"] != 2.0 {
			t.Errorf("got %v, %v, want 2", out, err)
		}
		time.Sleep(5*time.Second - 1)
		if n := c.n.Load(); n != 2 {
			t.Errorf("%d calls before the replay, want 2", n)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if n, calls := c.n.Load(), len(c.Calls()); n != 3 || calls != 3 {
			t.Errorf("%d calls, %d recorded after the replay, want 3", n, calls)
		}
	})
}

// A response that is delayed after the effect keeps its Date.
func TestDelayAfterTheEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounter(fault.Rule{Nth: 1, Do: fault.Delay, After: true, Delay: 30 * time.Second})
		defer c.Close()
		start := time.Now()
		done := make(chan string)
		go func() {
			resp, err := c.RoundTrip(request(t.Context(), "Count", "{}"))
			if err != nil {
				t.Error(err)
			}
			done <- resp.Header.Get("Date")
		}()
		synctest.Wait()
		if n := c.n.Load(); n != 1 {
			t.Error("the effect was delayed")
		}
		if got, want := <-done, start.UTC().Format(http.TimeFormat); got != want || time.Since(start) != 30*time.Second {
			t.Errorf("Date %s after %s, want %s after 30 s", got, time.Since(start), want)
		}
	})
}

// A replay has the body of its own call, not of a later one.
func TestReplayOfABody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounter(fault.Rule{Op: "Remember", Nth: 1, Do: fault.Replay, Delay: time.Second})
		defer c.Close()
		for _, body := range []string{"first", "later"} {
			if _, _, err := c.call(t, "Remember", body); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got, want := *c.last.Load(), "first"; got != want {
			t.Errorf("the replay's body is %q, want %q", got, want)
		}
	})
}

func TestCloseEndsWaitingCallsAndReplays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounter(fault.Rule{Op: "Count", Nth: 1, Do: fault.Replay, Delay: time.Hour})
		if _, _, err := c.call(t, "Count", "{}"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.RoundTrip(request(ctx, "Wait", "")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		if n := len(c.Calls()); n != 1 {
			t.Errorf("%d calls ended, want 1: a client that cancels does not stop its call", n)
		}
		c.Close()
		if n := len(c.Calls()); n != 2 {
			t.Errorf("%d calls ended, want 2", n)
		}
		if n := c.n.Load(); n != 1 {
			t.Errorf("the replay ran after Close")
		}
	})
}

func TestCancelledBeforeTheCall(t *testing.T) {
	t.Parallel()
	c := newCounter()
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.RoundTrip(request(ctx, "Count", "{}")); !errors.Is(err, context.Canceled) || c.n.Load() != 0 {
		t.Errorf("got %v and %d calls, want context.Canceled and none", err, c.n.Load())
	}
}
