package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/internal/field"
	"github.com/sqsonce/sqsonce/internal/cut"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Client is the part of a Redis client that a [Store] uses: scripts, INFO for [Store.Check], and SCAN for [Store.List]. A
// [*redis.Client], including one of redis.NewFailoverClient for Sentinel, and a [*redis.ClusterClient] implement it. A
// [*redis.Ring] implements it too, but [New] refuses it. If a server doesn't respond, a Ring sends its keys to another
// server, which lacks their records.
//
// The client's own retries are safe. The store retries after the client has given up. Set ContextTimeoutEnabled. Without it
// go-redis waits for a reply until ReadTimeout, even if the context's deadline comes first.
type Client interface {
	redis.Scripter
	Info(ctx context.Context, sections ...string) *redis.StringCmd
	Scan(ctx context.Context, cursor uint64, match string, count int64) *redis.ScanCmd
}

var (
	_ Client = (*redis.Client)(nil)
	_ Client = (*redis.ClusterClient)(nil)
)

// Options configure [New].
type Options struct {
	// Prefix comes before each record's key, to separate records from other data on the server. Stores with the same
	// prefix share records.
	//
	// Default: "sqsonce:".
	Prefix string
	// Volatile says that the server may lose records at a restart, after which their handlers run again. [Store.Check] and
	// the first acquire then accept a server without an append-only file.
	//
	// Default: false.
	Volatile bool
	// Logger gets a warning if the server doesn't say how it is configured.
	//
	// Default: slog.Default().
	Logger *slog.Logger
}

const defaultPrefix = "sqsonce:"

// Store is a [dedup.Store] in Redis. It is safe for concurrent use, starts no goroutine in New, and doesn't close its
// client.
//
// # Clocks
//
// Only the server's clock decides. For its owner a lease lasts from when the owner sent the request. For others it lasts
// from when the server received the request. If the server's clock jumps forward by more than the rest of a lease, the
// lease ends too early for others. A failover does the same if the two servers' clocks differ. If the clock jumps back, a
// lease lasts at most its length from when another delivery meets it. Synchronise the servers'
// clocks, and let them adjust slowly.
//
// If a server or the network to it stalls, the server executes requests later, including those that were given up. So an
// acquire says when it was sent, in the server's time according to the server's last replies. The server refuses the
// acquire if it is older than its caller's patience or than two seconds, or if it seems to come from the future by more
// than 100 ms. The store then sends it again with the right time. The first acquire of a store, and the first one after a
// failover to a server with another clock, therefore take two requests. So do acquires that change between nodes of a
// cluster whose clocks differ by more than that.
//
// # Retries
//
// go-redis retries by itself. The store retries for two more seconds if it can't reach the server, or if the server says
// that it is loading, failing over or moving slots. A failover takes longer, and the message comes again after it.
//
// A call with an unknown outcome is an error. For an acquire it matches [dedup.ErrOutcomeUnknown], and package dedup then
// releases the record in case it was acquired. If a release arrives before its acquire, the store repeats the release after
// 2.1 s, when the server refuses the acquire. In three cases the acquire may still be stored: dedup.Options.CallTimeout is
// shorter, the process ends meanwhile, or the server's clock is set back during a stall. The key then waits for an unused
// lease to expire. Under dedup.OnCrashBlock and dedup.OnCrashDeadLetter it looks like a crash.
//
// A key whose value isn't a record is [dedup.ErrRecord]. All other errors of the server and the network match
// [sqsonce.ErrUnavailable], and also [sqsonce.ErrMisconfigured] if retries can't help.
type Store struct {
	client   Client
	prefix   string
	volatile bool
	logger   *slog.Logger
	checked  atomic.Bool // ensureChecked has found nothing wrong
	clock    atomic.Pointer[reading]
}

var (
	_ dedup.Store    = (*Store)(nil)
	_ dedup.Reopener = (*Store)(nil)
	_ dedup.Keeper   = (*Store)(nil)
	_ dedup.Lister   = (*Store)(nil)
)

// New returns a store that uses the client. It doesn't call the server. The first acquire, or [Store.Check], checks whether
// the server is configured to keep records. The error is a [*sqsonce.OptionError].
func New(client Client, optFns ...func(*Options)) (*Store, error) {
	o := Options{}
	for _, fn := range optFns {
		fn(&o)
	}
	if host.IsNil(client) {
		return nil, fieldError("client", "is nil")
	}
	if _, ring := client.(*redis.Ring); ring {
		return nil, fieldError("client", "is a Ring, which looks for the records of a failed server on another one: use a Client or ClusterClient")
	}
	if o.Prefix == "" {
		o.Prefix = defaultPrefix
	}
	return &Store{client: client, prefix: o.Prefix, volatile: o.Volatile, logger: host.QueuedLogger(o.Logger)}, nil
}

// Renew implements [dedup.Store].
func (s *Store) Renew(ctx context.Context, l dedup.Lease, d time.Duration) (dedup.Lease, error) {
	if err := checkNames("Lease.Key", l.Key, "Lease.Owner", l.Owner); err != nil {
		return dedup.Lease{}, err
	}
	r, err := s.call(ctx, renewScript, l.Key, l.Owner, d.Milliseconds())
	if err != nil {
		return dedup.Lease{}, explainOwners("renew", err)
	}
	switch r.status() {
	case "renewed":
		if end := r.ownerEnd(1); end.After(l.Until) {
			l.Until = end
		}
		return l, explain("renew", r.err)
	case "lost":
		return dedup.Lease{}, sqsonce.ErrLeaseLost
	}
	return dedup.Lease{}, explain("renew", r.unexpected())
}

// Complete implements [dedup.Store].
func (s *Store) Complete(ctx context.Context, l dedup.Lease, res dedup.Result) error {
	if err := checkNames("Lease.Key", l.Key, "Lease.Owner", l.Owner); err != nil {
		return err
	}
	args := []any{l.Owner}
	if len(res.Data) > 0 {
		args = append(args, "data", res.Data)
	}
	for _, f := range field.Texts {
		if text, given := f.Of(res); given {
			args = append(args, f.Name, text)
		}
	}
	r, err := s.call(ctx, completeScript, l.Key, args...)
	if err != nil {
		return explainOwners("complete", err)
	}
	switch r.status() {
	case "done":
		return nil
	case "lost":
		return sqsonce.ErrLeaseLost
	}
	return explain("complete", r.unexpected())
}

// Release implements [dedup.Store]. A lease without a fence belongs to an acquire whose outcome is unknown. If Release then
// doesn't find anything to release, it repeats the release after 2.1 s, because the server could execute a request of that
// acquire until then.
func (s *Store) Release(ctx context.Context, l dedup.Lease, cause error) error {
	if err := checkNames("Lease.Key", l.Key, "Lease.Owner", l.Owner); err != nil {
		return err
	}
	text := cut.Cause(cause)
	err := s.release(ctx, l, text)
	if l.Fence != 0 || !errors.Is(err, sqsonce.ErrLeaseLost) {
		return err
	}
	if !host.Wait(ctx, maxAge+clockSlack) {
		return explain("release", fmt.Errorf("the acquire may still be executed: %w", context.Cause(ctx)))
	}
	return s.release(ctx, l, text)
}

func (s *Store) release(ctx context.Context, l dedup.Lease, text string) error {
	r, err := s.call(ctx, releaseScript, l.Key, l.Owner, text)
	if err != nil {
		return explainOwners("release", err)
	}
	switch r.status() {
	case "done", "completed":
		return nil
	case "lost":
		return sqsonce.ErrLeaseLost
	}
	return explain("release", r.unexpected())
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// checkNames refuses empty names, with which all events would share one record. It takes pairs of field and value.
func checkNames(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			return fieldError(pairs[i], "is empty")
		}
	}
	return nil
}

func fieldError(field, problem string) error {
	return &sqsonce.OptionError{Package: "redisstore", Field: field, Problem: problem}
}
