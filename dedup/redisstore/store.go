package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// Options configure [New].
type Options struct {
	// Prefix is put before each record's key, so that the records are told from what else the server holds. Stores with
	// the same prefix share records. Default: "sqsonce:".
	Prefix string
	// Volatile says that it is acceptable that a restart of the server forgets records, and that the handler then runs
	// again: [Store.Check] does not ask for an append-only file. Default: false.
	Volatile bool
}

const defaultPrefix = "sqsonce:"

// Store is a [dedup.Store] in Redis. It is safe for concurrent use, starts nothing, and does not close its client.
type Store struct {
	client   Client
	prefix   string
	volatile bool
}

var _ dedup.Store = (*Store)(nil)

// New returns a store on the client. It makes no call: [Store.Check] tells whether the server is fit to hold records. The
// error is a [*sqsonce.FieldError].
func New(client Client, optFns ...func(*Options)) (*Store, error) {
	o := Options{}
	for _, fn := range optFns {
		fn(&o)
	}
	if client == nil {
		return nil, &sqsonce.FieldError{Package: "redisstore", Field: "client", Problem: "is nil"}
	}
	if _, ring := client.(*redis.Ring); ring {
		return nil, &sqsonce.FieldError{Package: "redisstore", Field: "client", Problem: "is a Ring: it looks for the records of a server that is down on another"}
	}
	if o.Prefix == "" {
		o.Prefix = defaultPrefix
	}
	return &Store{client: client, prefix: o.Prefix, volatile: o.Volatile}, nil
}

// Acquire implements [dedup.Store].
func (s *Store) Acquire(ctx context.Context, c dedup.Claim) (dedup.Lease, error) {
	if err := named("Claim.Key", c.Key, "Claim.Owner", c.Owner); err != nil {
		return dedup.Lease{}, err
	}
	r, err := s.call(ctx, acquireScript, c.Key, c.Owner, c.Lease.Milliseconds(), c.Retention.Milliseconds(), c.Attempt, flag(c.NoTakeover))
	if err != nil {
		if errors.Is(err, errUnknown) {
			s.abandon(ctx, c)
		}
		return dedup.Lease{}, explain("acquire", err)
	}
	l, err := read(c, r)
	if r.err != nil {
		return dedup.Lease{}, explain("acquire", r.err)
	}
	return l, err
}

// read turns the answer to a claim into a lease or the reason why there is none. What cannot be read is in r.err.
func read(c dedup.Claim, r *reply) (dedup.Lease, error) {
	switch r.word() {
	case "granted", "own":
		own := r.word() == "own"
		return dedup.Lease{
			Key: c.Key, Owner: c.Owner, Fence: r.number(1), Until: r.notAfter(2), LastError: r.text(3),
			Takeover: !own && r.number(4) == 1, OwnRetry: own,
			Retention: c.Retention, Attempts: c.Attempt, Validation: c.Validation,
		}, nil
	case "completed":
		return dedup.Lease{}, &dedup.CompletedError{Result: dedup.Result{Data: r.bytes(1), Validation: r.text(2)}}
	case "held":
		return dedup.Lease{}, &dedup.InProgressError{Until: r.notBefore(1)}
	case "crashed":
		return dedup.Lease{}, &dedup.InProgressError{Crashed: true}
	case "lost":
		return dedup.Lease{}, sqsonce.ErrLeaseLost
	}
	r.err = r.unexpected()
	return dedup.Lease{}, r.err
}

// abandonTimeout bounds the release of a lease that nobody will use.
const abandonTimeout = 2 * time.Second

// abandon releases what an acquire without an answer may have taken, once: else the key would wait for a lease that has
// no holder. The caller does not wait. Where it fails, or overtakes the acquire, the lease ends by itself.
func (s *Store) abandon(ctx context.Context, c dedup.Claim) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTimeout)
	go func() {
		defer cancel()
		_ = releaseScript.Run(ctx, s.client, []string{s.prefix + c.Key}, c.Owner, "").Err()
	}()
}

// Renew implements [dedup.Store].
func (s *Store) Renew(ctx context.Context, l dedup.Lease, d time.Duration) (dedup.Lease, error) {
	if err := named("Lease.Key", l.Key, "Lease.Owner", l.Owner); err != nil {
		return dedup.Lease{}, err
	}
	r, err := s.call(ctx, renewScript, l.Key, l.Owner, d.Milliseconds())
	if err != nil {
		return dedup.Lease{}, explain("renew", err)
	}
	switch r.word() {
	case "held":
		l.Until = r.notAfter(1)
		return l, explain("renew", r.err)
	case "lost":
		return dedup.Lease{}, sqsonce.ErrLeaseLost
	}
	return dedup.Lease{}, explain("renew", r.unexpected())
}

// Complete implements [dedup.Store].
func (s *Store) Complete(ctx context.Context, l dedup.Lease, res dedup.Result) error {
	if err := named("Lease.Key", l.Key, "Lease.Owner", l.Owner); err != nil {
		return err
	}
	validation := res.Validation
	if validation == "" {
		validation = l.Validation
	}
	r, err := s.call(ctx, completeScript, l.Key, l.Owner, validation, res.Data)
	if err != nil {
		return explain("complete", err)
	}
	switch r.word() {
	case "done":
		return nil
	case "lost":
		return sqsonce.ErrLeaseLost
	}
	return explain("complete", r.unexpected())
}

// Release implements [dedup.Store].
func (s *Store) Release(ctx context.Context, l dedup.Lease, cause error) error {
	if err := named("Lease.Key", l.Key, "Lease.Owner", l.Owner); err != nil {
		return err
	}
	r, err := s.call(ctx, releaseScript, l.Key, l.Owner, causeText(cause))
	if err != nil {
		return explain("release", err)
	}
	if w := r.word(); w != "done" && w != "lost" {
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

// named refuses empty names: all events would share one record.
func named(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			return &sqsonce.FieldError{Package: "redisstore", Field: pairs[i], Problem: "is empty"}
		}
	}
	return nil
}
