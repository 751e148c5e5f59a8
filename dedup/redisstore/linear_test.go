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

// Owners on one Redis lose replies and requests, leave in the middle of a call, and have packets delivered once more,
// late; and the server is killed and started again, twice, in the middle of it. What they are told can be put into one
// order in which each record is one record: with an append-only file nothing that was answered is forgotten.
func TestHistoryIsLinearizable(t *testing.T) {
	t.Parallel()
	r := newRun(t, testserver.Redis.Start(t, testserver.AppendOnly))
	r.kills = map[int]bool{deliveries / 3: true, 2 * deliveries / 3: true}
	r.play()
	if err := r.history.Check(); err != nil {
		t.Errorf("seed %d: %v", r.seed, err)
	}
	t.Logf("%d calls and late packets, %d packets lost or late", r.history.Len(), r.faults)
}

// A checker that nothing fails proves nothing. Without an append-only file the server forgets records, and with a script
// broken it forgets a rule: soon there is a history that has no order.
func TestForgottenRecordsHaveNoOrder(t *testing.T) {
	t.Parallel()
	noOrder(t, func() *run {
		r := newRun(t, testserver.Redis.Start(t))
		r.kills = map[int]bool{deliveries / 3: true, 2 * deliveries / 3: true}
		return r
	})
}

func TestBrokenScriptsHaveNoOrder(t *testing.T) {
	t.Parallel()
	for _, b := range []struct{ name, script, clause, instead string }{
		{"takes what is held", "acquire", "if ends > now then", "if false then"},
		{"takes what is completed", "acquire", "if status == 'COMPLETED' then", "if false then"},
		{"keeps the fence", "acquire", "fence = math.max(now, fence + 1)", ""},
		{"does not know its own claim", "acquire", "if owner == ARGV[1] then", "if false then"},
		{"leases to an owner who has let go", "acquire", "if ends == 0 then return {'lost'} end", ""},
		{"renews for anyone", "renew", "owner ~= ARGV[1] or", ""},
		{"renews what was released", "renew", "or ends == '0'", ""},
		{"completes for anyone", "complete", "if owner ~= ARGV[1] then return {'lost'} end", ""},
		{"releases for anyone", "release", "owner ~= ARGV[1] or", ""},
	} {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			source := redisstore.Sources[b.script]
			if strings.Count(source, b.clause) != 1 {
				t.Fatalf("%s has not one %q", b.script, b.clause)
			}
			noOrder(t, func() *run {
				r := newRun(t, testserver.Redis.Shared(t))
				r.broken = redisstore.Scripts[b.script].Hash()
				r.instead = redisstore.Clock + strings.Replace(source, b.clause, b.instead, 1)
				return r
			})
		})
	}
}

func noOrder(t *testing.T, newRun func() *run) {
	t.Helper()
	const most = 60
	for range most {
		r := newRun()
		r.play()
		if r.history.Check() != nil {
			return
		}
	}
	t.Errorf("%d histories have an order", most)
}

const (
	hosts      = 6
	deliveries = 18 // of each host
	lease      = 80 * time.Millisecond
)

// run is hosts at work on one server.
type run struct {
	t       *testing.T
	server  *testserver.Server
	prefix  string
	seed    uint64
	kills   map[int]bool // before these deliveries of the first host
	broken  string       // hash of the script that instead replaces
	instead string

	history linear.History
	late    sync.WaitGroup
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
	r.late.Wait()
}

func (r *run) host(i int, rng *mathrand.Rand) {
	// Each attempt goes through the hook: what becomes of it is known.
	client := connect(r.t, r.server, func(o *redis.Options) { o.MaxRetries = -1 })
	client.AddHook(&network{run: r, client: hosts + i, rng: mathrand.New(mathrand.NewPCG(r.seed, uint64(hosts+i))),
		to: connect(r.t, r.server, func(o *redis.Options) { o.MaxRetries = -1 })})
	store, err := redisstore.New(client, func(o *redisstore.Options) { o.Prefix = r.prefix })
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

// delivery draws the n-th of a host. The hosts go from key to key at about the same time.
func delivery(rng *mathrand.Rand, n int) linear.Delivery {
	upTo := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
	d := linear.Delivery{Wait: upTo(lease / 2), Key: n / 3, Work: upTo(2 * lease)}
	for range rng.IntN(3) {
		d.Renews = append(d.Renews, upTo(lease/2))
	}
	d.End = []string{"release", "release", "release", "crash", "complete"}[rng.IntN(5)]
	return d
}

// network is a host's. It loses requests and replies, delivers some packets once more, later, and puts what becomes of
// those into the history that the store is not told of.
type network struct {
	run    *run
	client int
	to     *redis.Client // for late packets

	mu  sync.Mutex
	rng *mathrand.Rand
}

func (w *network) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w *network) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (w *network) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !strings.HasPrefix(cmd.Name(), "eval") { // a connection's own
			return next(ctx, cmd)
		}
		if w.run.broken != "" && cmd.Args()[1] == w.run.broken {
			cmd.Args()[0], cmd.Args()[1] = "eval", w.run.instead
		}
		if w.chance(5) {
			w.later(cmd.Args())
		}
		if w.chance(15) {
			cmd.SetErr(io.ErrUnexpectedEOF)
			return io.ErrUnexpectedEOF
		}
		called := time.Now()
		err := next(ctx, cmd)
		_, answered := errors.AsType[redis.Error](err)
		switch {
		case err == nil && w.chance(8):
			w.add(called, cmd, nil)
			err = io.EOF
			cmd.SetErr(err)
		case err != nil && !answered:
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

func (w *network) later(args []any) {
	w.mu.Lock()
	by := time.Duration(w.rng.Int64N(int64(3 * lease)))
	w.mu.Unlock()
	w.run.late.Go(func() {
		time.Sleep(by)
		called := time.Now()
		cmd := redis.NewCmd(context.Background(), args...)
		w.add(called, cmd, w.to.Process(context.Background(), cmd))
	})
}

// add puts a command into the history of which its sender is not told what became.
func (w *network) add(called time.Time, cmd redis.Cmder, err error) {
	w.run.mu.Lock()
	w.run.faults++
	client := w.client + hosts*w.run.faults // these overlap one another
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
	if _, answered := errors.AsType[redis.Error](err); answered {
		return // refused, the script was not run: forgotten by a restart
	}
	if reply, ok := cmd.(*redis.Cmd); ok && err == nil {
		values, err := reply.Slice()
		if err != nil || len(values) == 0 {
			w.run.t.Errorf("answer %v, %v", values, err)
			return
		}
		switch values[0] {
		case "granted", "own":
			a.Status, a.Fence = "granted", values[1].(int64)
		case "held", "done":
			a.Status = "granted"
			if kind == "acquire" {
				a.Status = "refused"
			}
		default:
			a.Status = "refused"
		}
	}
	w.run.history.Add(client, called, c, a)
}
