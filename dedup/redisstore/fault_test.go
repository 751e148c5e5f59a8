package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/redisstore"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// fault replaces replies between the store and its client. The client's own retries are below it.
type fault struct {
	before func() error           // an error instead of the call; nil: make the call
	after  func() error           // an error instead of the reply, after the server has executed the command
	reply  []any                  // instead of the server's
	change func(args []any)       // of the call
	info   func(*redis.StringCmd) // is the reply to INFO
}

func (f *fault) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *fault) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (f *fault) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if info, ok := cmd.(*redis.StringCmd); ok && cmd.Name() == "info" && f.info != nil {
			f.info(info)
			return info.Err()
		}
		if !strings.HasPrefix(cmd.Name(), "eval") { // a command of the connection itself
			return next(ctx, cmd)
		}
		if f.before != nil {
			if err := f.before(); err != nil {
				cmd.SetErr(err)
				return err
			}
		}
		if f.change != nil {
			f.change(cmd.Args())
		}
		err := next(ctx, cmd)
		if c, ok := cmd.(*redis.Cmd); ok && f.reply != nil && err == nil {
			c.SetVal(f.reply)
		}
		if f.after != nil && err == nil {
			if err = f.after(); err != nil {
				cmd.SetErr(err)
			}
		}
		return err
	}
}

// refusal is an error that a server returns.
type refusal string

func (r refusal) Error() string { return string(r) }
func (r refusal) RedisError()   {}

// times returns err for the first n calls.
func times(n int64, err error) func() error {
	var calls atomic.Int64
	return func() error {
		if calls.Add(1) <= n {
			return err
		}
		return nil
	}
}

func faulty(t *testing.T, f *fault) *redisstore.Store {
	client := connect(t, testserver.Redis.Shared(t))
	s := newStore(t, client)
	warm(t, s)
	client.AddHook(f)
	return s
}

// A call whose reply is lost is repeated, and the script recognises its own repetition.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	f := &fault{}
	s := faulty(t, f)
	ctx := t.Context()
	lose := func(call func() error) {
		t.Helper()
		f.after = times(2, io.EOF)
		start := time.Now()
		err := call()
		if time.Since(start) > redisstore.MaxAge/2 && err != nil { // a slow call is not repeated, but by its caller
			err = call()
		}
		must.Do(t, err)
	}
	var l, b dedup.Lease
	var again dedup.Grant
	lose(func() (err error) { l, err = granted.Lease(s.Acquire(ctx, claim("a"))); return err })
	if !l.OwnRetry || l.Takeover {
		t.Fatalf("acquire: got %+v, want an own retry", l)
	}
	lose(func() error { _, err := s.Renew(ctx, l, 2*time.Minute); return err })
	lose(func() error { return s.Release(ctx, l, errors.New("failed")) })
	lose(func() (err error) { b, err = granted.Lease(s.Acquire(ctx, claim("b"))); return err })
	if b.LastError != "failed" || b.Fence <= l.Fence {
		t.Fatalf("acquire by another: got %+v", b)
	}
	lose(func() error { return s.Complete(ctx, b, dedup.Result{Data: []byte("1")}) })
	lose(func() (err error) { again, err = s.Acquire(ctx, claim("c")); return err })
	if again.Verdict != dedup.VerdictCompleted || string(again.Result.Data) != "1" {
		t.Fatalf("acquire after the complete: got %+v, want completed", again)
	}
	done := must.Get(s.Inspect(ctx, claim("a").Key))(t)
	lose(func() error { return s.Reopen(ctx, done, "note") })
	lose(func() error { return s.Delete(ctx, claim("a").Key) })
	kept := dedup.Record{Lease: dedup.Lease{Key: "kept"}}
	for _, text := range []string{"first", "second"} {
		lose(func() (err error) {
			if kept, err = s.Keep(ctx, kept, "ann", []byte(text), time.Hour); err != nil {
				kept = must.Get(s.Inspect(ctx, "kept"))(t) // as an operator looks again
			}
			return err
		})
		if r := must.Get(s.Inspect(ctx, "kept"))(t); r.Owner != kept.Owner || string(r.Result.Data) != text {
			t.Errorf("after Keep: got %+v, want %+v", r, kept)
		}
	}
}

// A call is made again if the server starts or fails over, or if a cluster moves slots. Any other refusal is an error at once, and
// never a lease. TestKindsOfErrors has the errors.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for text, again := range map[string]bool{
		"LOADING Redis is loading the dataset in memory": true, "READONLY You can't write against a read only replica.": true,
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.": true, "NOREPLICAS Not enough good replicas to write.": true,
		"CLUSTERDOWN The cluster is down": true, "TRYAGAIN Multiple keys request during rehashing of slot": true, "BUSY Redis is busy running a script.": true,
		"ERR max number of clients reached": true,
		"ERR Error running script (call to f_1): @user_script:1: -READONLY You can't write against a read only replica.": true,

		"OOM command not allowed when used memory > 'maxmemory'.": false, "MISCONF Errors writing to the AOF file: No space left on device": false,
		"NOAUTH Authentication required.": false, "WRONGTYPE Operation against a key holding the wrong kind of value": false, "ERR unknown command 'EVALSHA'": false,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			refuse := times(3, refusal(text))
			s := faulty(t, &fault{before: func() error { calls.Add(1); return refuse() }})
			g, err := s.Acquire(t.Context(), claim("a"))
			if again && (err != nil || g.Verdict != dedup.VerdictGranted || g.Lease.OwnRetry) || !again && (err == nil || g.Verdict != 0 || calls.Load() != 1) {
				t.Errorf("got %+v and error %v after %d calls, want a lease: %t", g, err, calls.Load(), again)
			}
		})
	}
}

// A call to a server that cannot be reached is given up before a handler's lease ends, with the network's error, and after
// a few attempts.
func TestServerUnreachable(t *testing.T) {
	t.Parallel()
	dial := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	attempts := 0
	s := faulty(t, &fault{before: func() error { attempts++; return dial }})
	start := time.Now()
	_, err := granted.Lease(s.Acquire(t.Context(), claim("a")))
	if !errors.Is(err, dial) || !errors.Is(err, sqsonce.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable with the dial's error", err)
	}
	if d := time.Since(start); d < time.Second || d > 5*time.Second || attempts > 8 {
		t.Errorf("given up after %v and %d attempts, want about 2 s and 8 at most", d, attempts)
	}
}

// An acquire that ends without a reply says that its outcome is unknown if a request of it may have been executed, and
// leaves the release to its caller.
func TestUnknownAcquire(t *testing.T) {
	t.Parallel()
	dial := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	always := func(err error) func() error { return func() error { return err } }
	executedOnce := func() func() error {
		first := times(1, io.EOF)
		return func() error {
			if first() != nil {
				return nil
			}
			return dial
		}
	}
	for _, tt := range []struct {
		name    string
		fault   fault
		unknown bool
	}{
		{"the reply is lost", fault{after: always(io.EOF)}, true},
		{"the reply is lost, then the server", fault{before: executedOnce(), after: always(io.EOF)}, true},
		{"no connection", fault{before: always(dial)}, false},
		{"no connection in the pool", fault{before: always(redis.ErrPoolTimeout)}, false},
		{"refused", fault{before: always(refusal("LOADING Redis is loading the dataset in memory"))}, false},
		{"refused for good", fault{before: always(refusal("NOAUTH Authentication required."))}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := &tt.fault
			s := faulty(t, f)
			l, err := granted.Lease(s.Acquire(t.Context(), claim("a")))
			if err == nil || errors.Is(err, dedup.ErrOutcomeUnknown) != tt.unknown || !errors.Is(err, sqsonce.ErrUnavailable) {
				t.Errorf("got %+v, %v, want ErrUnavailable, and ErrOutcomeUnknown: %v", l, err, tt.unknown)
			}
			f.before, f.after = nil, nil
			_, err = granted.Lease(s.Acquire(t.Context(), claim("b")))
			if stored := errors.Is(err, sqsonce.ErrInProgress); stored != tt.unknown {
				t.Errorf("acquire by another: got %v, want in progress: %v", err, tt.unknown)
			}
		})
	}
}

// A reply that cannot be read says nothing: the lease may be granted.
func TestUnreadableReply(t *testing.T) {
	t.Parallel()
	for _, reply := range [][]any{{}, {"nonsense"}, {int64(1)}, {"granted"}, {"granted", "1", int64(1), "", int64(0), int64(1)}} {
		f := &fault{}
		s := faulty(t, f)
		f.reply = reply
		l, err := granted.Lease(s.Acquire(t.Context(), claim("a")))
		if !errors.Is(err, dedup.ErrOutcomeUnknown) || l.Fence != 0 {
			t.Errorf("reply %q: got %+v, %v, want ErrOutcomeUnknown", reply, l, err)
		}
	}
}

// With a slow reply the lease's end for its owner is counted from the request, never later than the server's. For others
// it is counted from the reply.
func TestSlowReplies(t *testing.T) {
	t.Parallel()
	const slow = 400 * time.Millisecond
	f := &fault{}
	s := faulty(t, f)
	var start time.Time
	f.before = func() error { start = time.Now(); return nil }
	f.after = func() error { time.Sleep(slow); return nil }
	l := acquire(t, s, claim("a"))
	if latest := start.Add(time.Minute + slow/2); l.Until.After(latest) {
		t.Errorf("Until: got %v after the request, want at most a minute", l.Until.Sub(start))
	}
	l, err := s.Renew(t.Context(), l, 2*time.Minute)
	if err != nil || l.Until.After(start.Add(2*time.Minute+slow/2)) {
		t.Errorf("renewed: got %+v, %v", l, err)
	}
	if g, err := s.Acquire(t.Context(), claim("b")); g.Verdict != dedup.VerdictInProgress || g.Until.Before(start.Add(2*time.Minute-slow/2)) {
		t.Errorf("leased: got %+v and error %v, want not before the server's end", g, err)
	}
}

// The server's clock has whole milliseconds. This rounding does not make the lease's end for its owner later than the
// record's, not even by one millisecond.
func TestEndsEarly(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	client := connect(t, testserver.Redis.Shared(t))
	prefix := t.Name() + ":"
	s := must.Get(redisstore.New(client, func(o *redisstore.Options) { o.Prefix, o.Volatile = prefix, true }))(t)
	c := claim("a")
	ends := func(what string, l dedup.Lease) {
		t.Helper()
		ms, err := client.HGet(ctx, prefix+c.Key, "until").Int64()
		if end := time.UnixMilli(ms); err != nil || l.Until.After(end) {
			t.Errorf("%s: Until is %v, later than the record's %v (%v)", what, l.Until, end, err)
		}
	}
	for i := range 50 {
		c.Key = fmt.Sprint("test#", i)
		l := acquire(t, s, c)
		ends("acquired", l)
		ends("the same claim again", acquire(t, s, c))
		l = must.Get(s.Renew(ctx, l, time.Hour))(t)
		ends("renewed", l)
	}
}

func TestFlushedScripts(t *testing.T) {
	t.Parallel()
	server := testserver.Redis.Start(t) // its own, because other tests would lose their scripts too
	client := connect(t, server)
	s := newStore(t, client)
	l := acquire(t, s, claim("a"))
	flush := func() { must.Do(t, client.ScriptFlush(t.Context()).Err()) }
	flush()
	l, err := s.Renew(t.Context(), l, time.Minute)
	if err != nil {
		t.Error(err)
	}
	flush()
	must.Do(t, s.Complete(t.Context(), l, dedup.Result{}))
}
