package dedup

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sqsonce/sqsonce"
)

const (
	defaultLease     = 30 * time.Second
	leastLease       = time.Second
	defaultRetention = 29 * 24 * time.Hour
	// leastRetention outlives every delayed copy of a request: AWS refuses a signature after minutes.
	leastRetention     = time.Hour
	defaultCallTimeout = 5 * time.Second
	defaultWait        = time.Second
	defaultCacheSize   = 1024
	defaultMaxResult   = 64 << 10
	// mostResult leaves room in a DynamoDB item of 400 KB for key, names and what else the record holds.
	mostResult  = 350 << 10
	maxConsumer = 64
)

// complete sets the defaults and reports everything that cannot be used.
func (o *Options) complete(s Store, consumer string) error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, &sqsonce.FieldError{Package: "dedup", Field: field, Problem: fmt.Sprintf(format, args...)})
	}
	if s == nil {
		bad("store", "is nil")
	}
	if !validConsumer(consumer) {
		bad("consumer", "%q: must be 1 to %d of A-Z a-z 0-9 . _ / -", consumer, maxConsumer)
	}

	o.Lease = cmp.Or(o.Lease, defaultLease)
	o.Retention = cmp.Or(o.Retention, defaultRetention)
	o.CallTimeout = cmp.Or(o.CallTimeout, defaultCallTimeout)
	o.Wait = cmp.Or(o.Wait, defaultWait)
	o.CacheSize = cmp.Or(o.CacheSize, defaultCacheSize)
	o.MaxResult = cmp.Or(o.MaxResult, defaultMaxResult)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Lease < leastLease {
		bad("Options.Lease", "%s: least %s", o.Lease, leastLease)
	}
	if o.Retention < leastRetention {
		bad("Options.Retention", "%s: least %s", o.Retention, leastRetention)
	}
	if o.CallTimeout < 0 {
		bad("Options.CallTimeout", "%s: must be positive", o.CallTimeout)
	}
	if o.MaxResult < 0 || o.MaxResult > mostResult {
		bad("Options.MaxResult", "%d bytes: must be 1 to %d", o.MaxResult, mostResult)
	}
	if o.OnCrash < Rerun || o.OnCrash > DeadLetter {
		bad("Options.OnCrash", "%d: not a policy", o.OnCrash)
	}
	if o.OnCompleteFailed < Redeliver || o.OnCompleteFailed > Acknowledge {
		bad("Options.OnCompleteFailed", "%d: not a policy", o.OnCompleteFailed)
	}
	if o.OnStoreDown < FailClosed || o.OnStoreDown > RunAnyway {
		bad("Options.OnStoreDown", "%d: not a policy", o.OnStoreDown)
	}
	return errors.Join(errs...)
}

// validConsumer has no '#', so that a record's key splits at the first one into consumer and event.
func validConsumer(s string) bool {
	for i := range len(s) {
		c := s[i]
		ok := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '/' || c == '-'
		if !ok {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= maxConsumer
}
