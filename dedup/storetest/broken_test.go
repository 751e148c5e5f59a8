package storetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// switchable is a correct store which breaks one rule for the name of a defect. It shares no code with memstore, which the
// suite tests.
type switchable struct {
	defect string
	down   error // what every call returns; nil: the store's server answers

	mu   sync.Mutex
	rows map[string]*row
}

type row struct {
	dedup.Lease
	released, done bool
	foreign        bool // data that is no record
	err, note      string
	result         dedup.Result
	expires        time.Time
}

func (s *switchable) has(defect string) bool { return s.defect == defect }

// answer is the error of a server that is away or misconfigured.
func (s *switchable) answer(method string) error {
	switch misconfigured := errors.Is(s.down, sqsonce.ErrMisconfigured); {
	case s.down == nil:
		return nil
	case errors.Is(s.down, errUnlisted):
		return s.unlisted()
	case errors.Is(s.down, errReadOnly) && method == "Inspect":
		return nil
	case errors.Is(s.down, errReadOnly) && s.has("takes a refused write for a refused value"):
		return &sqsonce.OptionError{Package: "store", Field: "key", Problem: "is refused"}
	case s.has("says nothing of a server that is away, at " + method):
		return errors.New("failed")
	case s.has("takes a server that is away for misconfigured") && !misconfigured:
		return sqsonce.ErrMisconfigured
	case s.has("takes a misconfigured server for one that is away") && misconfigured:
		return sqsonce.Unavailable(errors.New("refused"))
	}
	return s.down
}

// unlisted is the error of a server whose answer the store does not know.
func (s *switchable) unlisted() error {
	switch {
	case s.has("takes an unknown answer for a record that is none"):
		return dedup.ErrRecord
	case s.has("takes an unknown answer for a misconfiguration"):
		return sqsonce.ErrMisconfigured
	case s.has("takes an unknown answer for a refused value"):
		return &sqsonce.OptionError{Package: "store", Field: "key", Problem: "is refused"}
	case s.has("says nothing of an unknown answer"):
		return errUnlisted
	}
	return s.down
}

// refusedInbox is an inbox of a switchable: the writes of its handlers are not kept.
func refusedInbox(store dedup.Store, consumer string, h sqsonce.Handler, optFns ...func(*dedup.Options)) (sqsonce.Handler, error) {
	s := store.(*switchable)
	once, err := dedup.New(s, consumer, optFns...)
	return once.Handler(func(ctx context.Context, m *sqsonce.Message) error {
		refused := errors.New("no such table")
		switch err := h(ctx, m); {
		case err != nil:
			return err
		case m.Body != "refused", s.has("completes an event whose write was refused"):
			return nil
		case s.has("takes a handler's refused write for an outage"):
			return sqsonce.Unavailable(refused)
		case s.has("works for no event after a refused write"):
			s.down = sqsonce.Unavailable(refused)
		}
		return refused
	}), err
}

func (s *switchable) Acquire(ctx context.Context, c dedup.Claim) (g dedup.Grant, err error) {
	if ctx.Err() != nil && !s.has("acquires for a cancelled caller") {
		return dedup.Grant{}, ctx.Err()
	}
	if err := s.answer("Acquire"); err != nil {
		return dedup.Grant{}, err
	}
	if s.has("keeps 26 bytes of an owner") {
		c.Owner = c.Owner[:min(26, len(c.Owner))]
	}
	if c.Key == "" && !s.has("accepts an empty key") || c.Owner == "" && !s.has("accepts an empty owner") {
		if s.has("returns a verdict with an error") {
			return dedup.Grant{Verdict: dedup.VerdictLost}, errors.New("empty")
		}
		if s.has("takes a refused value for an outage") {
			return dedup.Grant{}, sqsonce.Unavailable(errors.New("empty"))
		}
		return dedup.Grant{}, &sqsonce.OptionError{Package: "store", Field: "Claim", Problem: "is empty"}
	}
	if s.has("folds keys to lower case") {
		defer func(k string) { c.Key = k }(c.Key)
		c.Key = strings.ToLower(c.Key)
	}
	if s.has("cuts keys at 1,000 bytes") && len(c.Key) > 1000 {
		return dedup.Grant{}, errors.New("key too long")
	}
	if s.has("answers without a verdict") {
		defer func() { g.Verdict = 0 }()
	}
	if s.has("keeps a lease for a caller that left") {
		defer func() {
			if time.Sleep(time.Millisecond); ctx.Err() != nil {
				g, err = dedup.Grant{}, ctx.Err()
			}
		}()
	}
	if s.has("checks before it locks") {
		s.mu.Lock()
		free := s.rows[c.Key] == nil
		s.mu.Unlock()
		if free {
			time.Sleep(time.Millisecond)
			s.mu.Lock()
			defer s.mu.Unlock()
			return grantOf(s.grant(c, nil, time.Now())), nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	r := s.rows[c.Key]
	if r == nil {
		return grantOf(s.grant(c, nil, now)), nil
	}
	if r.foreign && !s.has("takes over what is no record") {
		if s.has("takes what is no record for an outage") {
			return dedup.Grant{}, sqsonce.Unavailable(dedup.ErrRecord)
		}
		return dedup.Grant{}, dedup.ErrRecord
	}
	expired := !now.Before(r.expires)
	if expired && s.has("frees a live lease when retention ends") {
		return grantOf(s.grant(c, nil, now)), nil
	}
	own := r.Owner == c.Owner
	switch {
	case r.done && expired && !s.has("waits for the deletion of an expired record"):
		return grantOf(s.grant(c, r, now)), nil
	case r.done && own && s.has("reopens a completed record for its owner"):
		return grantOf(s.grant(c, r, now)), nil
	case r.done && s.has("says in progress when completed"):
		return dedup.Grant{Verdict: dedup.VerdictInProgress, Until: now.Add(c.Lease)}, nil
	case r.done && s.has("forgets a completed record with its lease") && !now.Before(r.Until):
		return grantOf(s.grant(c, r, now)), nil
	case r.done:
		res := r.result
		if s.has("loses the result") {
			res.Data = nil
		}
		if s.has("loses the validation") {
			res.Validation = ""
		}
		return dedup.Grant{Verdict: dedup.VerdictCompleted, Result: res}, nil
	case own && r.released && !s.has("lets a released owner in again"):
		if s.has("returns a lost lease as an error") {
			return dedup.Grant{}, sqsonce.ErrLeaseLost
		}
		return dedup.Grant{Verdict: dedup.VerdictLost}, nil
	case own && !r.released && s.has("extends the lease for a repeated claim"):
		r.Until = now.Add(c.Lease)
		return grantOf(r.Lease), nil
	case own && !r.released && s.has("moves a renewed end back for a repeated claim"):
		r.Until = r.Until.Add(-3 * c.Lease)
		return grantOf(r.Lease), nil
	case own && !r.released && s.has("gives a repeated claim a new fence"):
		r.Fence++
		return grantOf(s.ownRetry(r)), nil
	case own && !r.released && !s.has("does not know its own claim"):
		return grantOf(s.ownRetry(r)), nil
	case r.released && s.has("keeps a released key"):
		return dedup.Grant{Verdict: dedup.VerdictInProgress, Until: r.Until}, nil
	case !r.released && now.Before(r.Until) && !s.has("steals live leases"):
		until := r.Until
		if s.has("does not say until when") {
			until = time.Time{}
		}
		return dedup.Grant{Verdict: dedup.VerdictInProgress, Until: until}, nil
	case !r.released && s.has("never takes over"):
		return dedup.Grant{Verdict: dedup.VerdictInProgress, Until: r.Until}, nil
	case !r.released && c.NoTakeover && !s.has("ignores NoTakeover"):
		return dedup.Grant{Verdict: dedup.VerdictCrashed}, nil
	case r.released && c.NoTakeover && s.has("blocks a released key with NoTakeover"):
		return dedup.Grant{Verdict: dedup.VerdictCrashed}, nil
	}
	return grantOf(s.grant(c, r, now)), nil
}

func grantOf(l dedup.Lease) dedup.Grant { return dedup.Grant{Verdict: dedup.VerdictGranted, Lease: l} }

func (s *switchable) ownRetry(r *row) dedup.Lease {
	l := r.Lease
	l.OwnRetry = !s.has("does not report an own retry")
	return l
}

func (s *switchable) grant(c dedup.Claim, old *row, now time.Time) dedup.Lease {
	l := dedup.Lease{Key: c.Key, Owner: c.Owner, Fence: now.UnixMilli(), Until: now.Add(c.Lease), Retention: c.Retention,
		ReceiveCount: c.ReceiveCount}
	if s.has("promises more than it leases") {
		l.Until = l.Until.Add(time.Second)
	}
	if s.has("drops the attempt") {
		l.ReceiveCount = 0
	}
	if old != nil && !old.done {
		if !old.released && !s.has("does not say whom it takes over from") {
			l.TakenFrom = old.Fence
			if !s.has("does not name the owner that it takes over from") {
				l.TakenOwner = old.Owner
			}
		}
		l.Takeover = !old.released && !s.has("does not report a takeover") || s.has("reports every earlier owner as a takeover")
	}
	if old != nil {
		l.LastError = old.err
		if !s.has("takes its fence only from the clock") {
			l.Fence = max(l.Fence, old.Fence+1)
		}
	}
	if s.has("forgets the fence") {
		l.Fence = 1
	}
	r := &row{Lease: l, err: l.LastError, expires: now.Add(c.Retention)}
	if least := l.Until.Add(time.Hour); least.After(r.expires) && !s.has("frees a live lease when retention ends") {
		r.expires = least
	}
	if old != nil && !s.has("loses the note at an acquire") {
		r.note = old.note
	}
	if s.has("loses the error in a crash") {
		r.err = ""
	}
	s.rows[c.Key] = r
	return l
}

func (s *switchable) owned(l dedup.Lease) *row {
	r := s.rows[l.Key]
	if r == nil || r.Owner != l.Owner {
		return nil
	}
	return r
}

func (s *switchable) Renew(ctx context.Context, l dedup.Lease, d time.Duration) (dedup.Lease, error) {
	if ctx.Err() != nil && !s.has("renews for a cancelled caller") {
		return dedup.Lease{}, ctx.Err()
	}
	if err := s.answer("Renew"); err != nil {
		return dedup.Lease{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	r := s.owned(l)
	if r == nil && s.rows[l.Key] != nil && s.has("renews for anyone") {
		r = s.rows[l.Key]
		r.Owner = l.Owner
	}
	if r == nil || r.done && !s.has("renews after complete") || r.released && !s.has("renews after release") {
		return dedup.Lease{}, sqsonce.ErrLeaseLost
	}
	if !now.Before(r.Until) && s.has("refuses a late renewal") {
		return dedup.Lease{}, sqsonce.ErrLeaseLost
	}
	r.released, r.done = false, false
	until := now.Add(d)
	if until.After(r.Until) && !s.has("renews nothing") || s.has("renews backwards") {
		r.Until = until
	}
	if least := r.Until.Add(time.Hour); least.After(r.expires) && !s.has("does not move retention with a renewal") {
		r.expires = least
	}
	if s.has("shortens retention with a renewal") {
		r.expires = r.Until.Add(time.Hour)
	}
	if s.has("renews for ever") {
		r.Until = now.Add(100 * d)
	}
	out := r.Lease
	out.Until = until
	if !s.has("returns the end of a shorter renewal") {
		out.Until = r.Until
	}
	if s.has("renews for ever") {
		out.Until = until
	}
	return out, nil
}

func (s *switchable) Complete(ctx context.Context, l dedup.Lease, res dedup.Result) error {
	if ctx.Err() != nil && !s.has("completes for a cancelled caller") {
		return ctx.Err()
	}
	if err := s.answer("Complete"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.owned(l)
	if r == nil && s.has("completes for anyone") {
		if r = s.rows[l.Key]; r == nil {
			r = &row{Lease: l, expires: time.Now().Add(l.Retention)}
			s.rows[l.Key] = r
		}
	}
	if r == nil && s.has("completes without a record") && s.rows[l.Key] == nil {
		r = &row{Lease: l, expires: time.Now().Add(l.Retention)}
		s.rows[l.Key] = r
	}
	if r == nil && s.has("hides a refused complete") {
		return nil
	}
	if r == nil && s.rows[l.Key] != nil && s.rows[l.Key].foreign && s.has("tells an owner of what is no record") {
		return dedup.ErrRecord
	}
	if r == nil || !time.Now().Before(r.Until) && s.has("refuses a late complete") || r.done && s.has("completes once only") {
		return sqsonce.ErrLeaseLost
	}
	longest, limited := map[string]int{"keeps hashes of 64 bytes": 64, "keeps results of 64 KB": 64 << 10}[s.defect]
	if limited && max(len(res.Validation), len(res.Data)) > longest || s.has("refuses a reason with a NUL") && res.Skipped != nil {
		return errors.New("value too long, or not text")
	}
	if len(res.Data) == 0 && s.has("forgets a hash without a result") {
		res.Validation = ""
	}
	if res.Note != "" && !s.has("drops the note of a complete") {
		s.note(r, res.Note)
	}
	res.Note = ""
	if res.Skipped != nil && (res.Skipped.Error() != "" || !s.has("keeps an earlier error at an empty reason")) {
		r.err = res.Skipped.Error()
	}
	if !s.has("returns why an event was skipped") {
		res.Skipped = nil
	}
	r.done, r.result = true, res
	return nil
}

func (s *switchable) Release(ctx context.Context, l dedup.Lease, cause error) error {
	if ctx.Err() != nil && !s.has("releases for a cancelled caller") {
		return ctx.Err()
	}
	if err := s.answer("Release"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.owned(l)
	if s.has("releases for anyone") {
		r = s.rows[l.Key]
	}
	switch {
	case r == nil && s.has("hides a lost lease on release"),
		r == nil && s.rows[l.Key] == nil && s.has("hides a missing record on release"),
		r == nil && s.rows[l.Key] != nil && s.rows[l.Key].done && s.has("hides another owner's complete on release"):
		return nil
	case r == nil:
		return sqsonce.ErrLeaseLost
	case r.done && s.has("reports its own complete as a lost lease on release"),
		r.released && s.has("reports its own release as a lost lease"):
		return sqsonce.ErrLeaseLost
	case r.done && !s.has("releases a completed record"):
		return nil
	}
	if s.has("deletes on release") {
		delete(s.rows, l.Key)
		return nil
	}
	r.released, r.done = true, false
	if cause != nil && !s.has("drops the error") {
		if s.has("refuses an error with a NUL") && strings.Contains(cause.Error(), "\x00") {
			return errors.New("not text")
		}
		r.err = cause.Error()
		if !s.has("keeps an error of any length") {
			r.err = strings.ToValidUTF8(r.err[:min(len(r.err), 256)], "")
		}
		if s.has("cuts errors inside characters") {
			r.err = cause.Error()[:min(len(cause.Error()), 256)]
		}
	} else if !s.has("keeps an earlier error") {
		r.err = ""
	}
	return nil
}
