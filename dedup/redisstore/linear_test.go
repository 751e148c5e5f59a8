package redisstore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce/dedup/redisstore"
	"github.com/sqsonce/sqsonce/internal/linear"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// Owners on one Redis lose replies and requests, cancel calls, and have packets delivered a second time, later. The server
// is killed and started again, twice. The results are linearizable: with an append-only file the server loses nothing that
// it has acknowledged.
func TestHistoryIsLinearizable(t *testing.T) {
	t.Parallel()
	r := newRun(t, testserver.Redis.Start(t, testserver.AppendOnly))
	r.kills = map[int]bool{deliveries / 3: true, 2 * deliveries / 3: true}
	r.play()
	if err := r.history.Check(); err != nil {
		t.Errorf("seed %d: %v", r.seed, err)
	}
	t.Logf("%d calls and repeated packets, %d packets lost or repeated", r.history.Len(), r.faults)
}

// The check must be able to fail. Without an append-only file the server loses records, and with a broken script it lacks
// a rule: soon a history is not linearizable.
func TestLostRecordsAreFound(t *testing.T) {
	t.Parallel()
	notLinearizable(t, func() *run {
		r := newRun(t, testserver.Redis.Start(t))
		r.kills = map[int]bool{deliveries / 3: true, 2 * deliveries / 3: true}
		return r
	})
}

func TestBrokenScriptsAreFound(t *testing.T) {
	t.Parallel()
	for _, b := range []struct{ name, script, clause, instead string }{
		{"takes a live lease", "acquire", "if ends > now then", "if false then"},
		{"takes a completed record", "acquire", "if status == 'COMPLETED' then", "if false then"},
		{"does not raise the fence", "acquire", "fence = math.max(now, fence + 1)", ""},
		{"does not recognise its own claim", "acquire", "if owner == ARGV[1] then", "if false then"},
		{"leases to an owner that has released", "acquire", "if ends == 0 then return {'lost'} end", ""},
		{"renews for any owner", "renew", "owner ~= ARGV[1] or", ""},
		{"renews a released record", "renew", "or ends == '0'", ""},
		{"completes for any owner", "complete", "if owner ~= ARGV[1] then return {'lost'} end", ""},
		{"releases for any owner", "release", "if owner ~= ARGV[1] then return {'lost'} end", ""},
	} {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			source := redisstore.Sources[b.script]
			if strings.Count(source, b.clause) != 1 {
				t.Fatalf("%s has not one %q", b.script, b.clause)
			}
			notLinearizable(t, func() *run {
				r := newRun(t, testserver.Redis.Shared(t))
				r.broken = redisstore.Scripts[b.script].Hash()
				r.instead = redisstore.Clock + strings.Replace(source, b.clause, b.instead, 1)
				return r
			})
		})
	}
}

func notLinearizable(t *testing.T, newRun func() *run) {
	t.Helper()
	const limit = 60
	for range limit {
		r := newRun()
		r.play()
		if r.history.Check() != nil {
			return
		}
	}
	t.Errorf("%d histories are linearizable, want one that is not", limit)
}

const (
	hosts      = 6
	deliveries = 18 // per host
	lease      = 80 * time.Millisecond
)

// run is a number of hosts that use one server.
type run struct {
	t       *testing.T
	server  *testserver.Server
	prefix  string
	seed    uint64
	kills   map[int]bool // the server is killed before these deliveries of the first host
	broken  string       // hash of the script that instead replaces
	instead string

	history linear.History
	resends sync.WaitGroup
	mu      sync.Mutex
	faults  int
}

func newRun(t *testing.T, server *testserver.Server) *run {
	return &run{t: t, server: server, prefix: rand.Text() + ":", seed: mathrand.Uint64()}
}

func (r *run) play() {
	var wg sync.WaitGroup
	for i := range hosts {
		rng := mathrand.New(mathrand.NewPCG(r.seed, uint64(i)))
		wg.Go(func() { r.host(i, rng) })
	}
	wg.Wait()
	r.resends.Wait()
}

func (r *run) host(i int, rng *mathrand.Rand) {
	// Without the client's retries every attempt goes through the hook, and the history has its result.
	client := connect(r.t, r.server, func(o *redis.Options) { o.MaxRetries = -1 })
	client.AddHook(&network{run: r, client: hosts + i, rng: mathrand.New(mathrand.NewPCG(r.seed, uint64(hosts+i))),
		to: connect(r.t, r.server, func(o *redis.Options) { o.MaxRetries = -1 })})
	store, err := redisstore.New(client, func(o *redisstore.Options) { o.Prefix, o.Volatile = r.prefix, true })
	if err != nil {
		r.t.Error(err)
		return
	}
	host := linear.Host{Store: store, Client: i, Lease: lease, Context: func() (context.Context, context.CancelFunc) {
		if rng.IntN(12) == 0 {
			return context.WithTimeout(context.Background(), time.Duration(rng.IntN(1000))*time.Microsecond)
		}
		return context.WithCancel(context.Background())
	}}
	for n := range deliveries {
		if i == 0 && r.kills[n] {
			r.server.Kill()
			if err := r.server.Relaunch(context.Background()); err != nil {
				r.t.Error(err)
				return
			}
		}
		r.history.Deliver(host, fmt.Sprintf("%d.%d", i, n), delivery(rng, n))
	}
}

// delivery draws a host's n-th delivery. The hosts use the same key at about the same time.
func delivery(rng *mathrand.Rand, n int) linear.Delivery {
	upTo := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
	d := linear.Delivery{Wait: upTo(lease / 2), Key: n / 3, Work: upTo(2 * lease)}
	for range rng.IntN(3) {
		d.Renews = append(d.Renews, upTo(lease/2))
	}
	d.End = []string{"release", "release", "release", "crash", "complete"}[rng.IntN(5)]
	return d
}

// network is a host's network. It loses requests and replies, and delivers some packets a second time, later. It adds the
// results that the store does not see to the history.
type network struct {
	run    *run
	client int
	to     *redis.Client // for the second delivery of packets

	mu  sync.Mutex
	rng *mathrand.Rand
}

func (w *network) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w *network) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (w *network) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !strings.HasPrefix(cmd.Name(), "eval") { // a command of the connection itself
			return next(ctx, cmd)
		}
		if w.run.broken != "" && cmd.Args()[1] == w.run.broken {
			cmd.Args()[0], cmd.Args()[1] = "eval", w.run.instead
		}
		if w.chance(5) {
			w.resend(cmd.Args())
		}
		if w.chance(15) {
			cmd.SetErr(io.ErrUnexpectedEOF)
			return io.ErrUnexpectedEOF
		}
		called := time.Now()
		err := next(ctx, cmd)
		_, refused := errors.AsType[redis.Error](err)
		switch {
		case err == nil && w.chance(8):
			w.add(called, cmd, nil)
			err = io.EOF
			cmd.SetErr(err)
		case err != nil && !refused:
			w.add(called, cmd, err)
		}
		return err
	}
}

// chance is true one time in n.
func (w *network) chance(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n) == 0
}

// resend executes a command again after up to three leases.
func (w *network) resend(args []any) {
	w.mu.Lock()
	by := time.Duration(w.rng.Int64N(int64(3 * lease)))
	w.mu.Unlock()
	w.run.resends.Go(func() {
		time.Sleep(by)
		called := time.Now()
		cmd := redis.NewCmd(context.Background(), args...)
		w.add(called, cmd, w.to.Process(context.Background(), cmd))
	})
}

// add adds a command to the history whose result its sender does not see.
func (w *network) add(called time.Time, cmd redis.Cmder, err error) {
	w.run.mu.Lock()
	w.run.faults++
	client := w.client + hosts*w.run.faults // a new client for each, because they overlap
	w.run.mu.Unlock()
	args := cmd.Args()
	kind := ""
	for name, script := range redisstore.Scripts {
		if args[1] == script.Hash() || args[1] == redisstore.Clock+redisstore.Sources[name] || args[1] == w.run.instead && script.Hash() == w.run.broken {
			kind = name
		}
	}
	c := linear.Call{Kind: kind, Key: strings.TrimPrefix(args[3].(string), w.run.prefix), Owner: args[4].(string), Delayed: true}
	a := linear.Result{Status: "unknown"}
	if _, refused := errors.AsType[redis.Error](err); refused {
		return // refused: the script was not executed, because the server lost it in a restart
	}
	if reply, ok := cmd.(*redis.Cmd); ok && err == nil {
		values, err := reply.Slice()
		if err != nil || len(values) == 0 {
			w.run.t.Errorf("reply: got %v, %v", values, err)
			return
		}
		switch values[0] {
		case "granted", "own":
			a.Status, a.Fence = "granted", values[1].(int64)
		case "renewed", "done":
			a.Status = "granted"
		default:
			a.Status = "refused"
		}
	}
	w.run.history.Add(client, called, c, a)
}
