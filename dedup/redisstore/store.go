package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/internal/failure"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Client is what a [Store] needs of Redis: scripts, INFO for [Store.Check], and SCAN for [Store.List]. A [*redis.Client], also one of
// redis.NewFailoverClient for Sentinel, and a [*redis.ClusterClient] implement it. [New] refuses a [*redis.Ring], which
// implements it too: it sends the keys of a server that does not respond to another server, which lacks their records.
//
// The client's own retries are safe. The store retries after the client has given up. Set ContextTimeoutEnabled: without
// it go-redis waits for a reply until ReadTimeout, also if the context's deadline comes first.
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
	// Prefix comes before each record's key, to separate records from other data on the server. Stores with the same prefix
	// share records. Default: "sqsonce:".
	Prefix string
	// Volatile says that the server may lose records at a restart, after which their handlers run again: [Store.Check] and the
	// first acquire then do not demand an append-only file. Default: false.
	Volatile bool
	// Logger gets a warning where the server does not say how it is configured. Default: slog.Default().
	Logger *slog.Logger
}

const defaultPrefix = "sqsonce:"

// Store is a [dedup.Store] in Redis. It is safe for concurrent use, starts no goroutine in New, and does not close its
// client.
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
	_ dedup.Lister   = (*Store)(nil)
)

// New returns a store on the client. It makes no call: the first acquire, or [Store.Check], finds out whether the server is
// configured to keep records. The error is a [*sqsonce.OptionError].
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
		return dedup.Lease{}, explain("renew", err)
	}
	switch r.status() {
	case "renewed":
		l.Until = r.ownerEnd(1)
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
	r, err := s.call(ctx, completeScript, l.Key, l.Owner, cmp.Or(res.Validation, l.Validation), res.Data, causeText(res.Skipped))
	if err != nil {
		return explain("complete", err)
	}
	switch r.status() {
	case "done":
		return nil
	case "lost":
		return sqsonce.ErrLeaseLost
	}
	return explain("complete", r.unexpected())
}

// causeText is the text of what may be nil.
func causeText(err error) string {
	if err == nil {
		return ""
	}
	return failure.Text(err)
}

// Release implements [dedup.Store]. A lease without a fence is that of an acquire whose outcome is unknown. Where Release finds
// nothing to release then, it tries again 2.1 s later: a request of that acquire could be executed until then.
func (s *Store) Release(ctx context.Context, l dedup.Lease, cause error) error {
	if err := checkNames("Lease.Key", l.Key, "Lease.Owner", l.Owner); err != nil {
		return err
	}
	text := causeText(cause)
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
		return explain("release", err)
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
