package redisstore

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/internal/failure"
)

// Client is what a [Store] needs of Redis: scripts, and INFO for [Store.Check]. A [*redis.Client], also one of
// redis.NewFailoverClient for Sentinel, and a [*redis.ClusterClient] implement it. [New] refuses a [*redis.Ring], which
// implements it too: it sends the keys of a server that does not respond to another server, which lacks their records.
//
// The client's own retries are safe. The store retries after the client has given up. Set ContextTimeoutEnabled: without
// it go-redis waits for a reply until ReadTimeout, also if the context's deadline comes first.
type Client interface {
	redis.Scripter
	Info(ctx context.Context, sections ...string) *redis.StringCmd
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
	// Volatile says that the server may lose records at a restart, after which their handlers run again: [Store.Check] then
	// does not demand an append-only file. Default: false.
	Volatile bool
}

const defaultPrefix = "sqsonce:"

// Store is a [dedup.Store] in Redis. It is safe for concurrent use, starts no goroutine in New, and does not close its
// client.
type Store struct {
	client   Client
	prefix   string
	volatile bool
}

var _ dedup.Store = (*Store)(nil)

// New returns a store on the client. It makes no call: use [Store.Check] to learn whether the server is configured to keep
// records. The error is a [*sqsonce.FieldError].
func New(client Client, optFns ...func(*Options)) (*Store, error) {
	o := Options{}
	for _, fn := range optFns {
		fn(&o)
	}
	if client == nil {
		return nil, fieldError("client", "is nil")
	}
	if _, ring := client.(*redis.Ring); ring {
		return nil, fieldError("client", "is a Ring, which looks for the records of a failed server on another one: use a Client or ClusterClient")
	}
	if o.Prefix == "" {
		o.Prefix = defaultPrefix
	}
	return &Store{client: client, prefix: o.Prefix, volatile: o.Volatile}, nil
}

// Acquire implements [dedup.Store].
func (s *Store) Acquire(ctx context.Context, c dedup.Claim) (dedup.Lease, error) {
	if err := checkNames("Claim.Key", c.Key, "Claim.Owner", c.Owner); err != nil {
		return dedup.Lease{}, err
	}
	r, err := s.call(ctx, acquireScript, c.Key, c.Owner, c.Lease.Milliseconds(), c.Retention.Milliseconds(), c.Attempt, flag(c.NoTakeover))
	if err != nil {
		if errors.Is(err, errUnknown) {
			s.abandon(ctx, c)
		}
		return dedup.Lease{}, explain("acquire", err)
	}
	l, err := readLease(c, r)
	if r.err != nil {
		return dedup.Lease{}, explain("acquire", r.err)
	}
	return l, err
}

// readLease returns the lease of an acquire's reply, or the reason why there is none. If the reply cannot be read, r.err
// is set.
func readLease(c dedup.Claim, r *reply) (dedup.Lease, error) {
	switch r.status() {
	case "granted", "own":
		own := r.status() == "own"
		return dedup.Lease{
			Key: c.Key, Owner: c.Owner, Fence: r.number(1), Until: r.ownerEnd(2), LastError: r.text(3),
			Takeover: !own && r.number(4) == 1, OwnRetry: own,
			Retention: c.Retention, Attempts: c.Attempt, Validation: c.Validation,
		}, nil
	case "completed":
		return dedup.Lease{}, &dedup.CompletedError{Result: dedup.Result{Data: r.bytes(1), Validation: r.text(2)}}
	case "leased":
		return dedup.Lease{}, &dedup.InProgressError{Until: r.othersEnd(1)}
	case "crashed":
		return dedup.Lease{}, &dedup.InProgressError{Crashed: true}
	case "lost":
		return dedup.Lease{}, sqsonce.ErrLeaseLost
	}
	r.err = r.unexpected()
	return dedup.Lease{}, r.err
}

// abandonTimeout limits the release of a lease that nobody will use.
const abandonTimeout = 2 * time.Second

// abandon releases what an acquire with an unknown outcome may have acquired. Without it the key would wait for a lease
// that nobody uses. It tries once, and the caller does not wait. If it fails, or comes before the acquire, the key waits
// for the lease's end.
func (s *Store) abandon(ctx context.Context, c dedup.Claim) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTimeout)
	go func() {
		defer cancel()
		_ = releaseScript.Run(ctx, s.client, []string{s.prefix + c.Key}, c.Owner, "").Err()
	}()
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
	r, err := s.call(ctx, completeScript, l.Key, l.Owner, cmp.Or(res.Validation, l.Validation), res.Data)
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

// Release implements [dedup.Store].
func (s *Store) Release(ctx context.Context, l dedup.Lease, cause error) error {
	if err := checkNames("Lease.Key", l.Key, "Lease.Owner", l.Owner); err != nil {
		return err
	}
	text := ""
	if cause != nil {
		text = failure.Text(cause)
	}
	r, err := s.call(ctx, releaseScript, l.Key, l.Owner, text)
	if err != nil {
		return explain("release", err)
	}
	if status := r.status(); status != "done" && status != "lost" {
		return explain("release", r.unexpected())
	}
	return nil
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
	return &sqsonce.FieldError{Package: "redisstore", Field: field, Problem: problem}
}
