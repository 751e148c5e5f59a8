package sqlstore

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
)

func TestDelete(t *testing.T) {
	eachStore(t, func(t *testing.T, b *Bed, s *Store) {
		l := mustAcquire(t, s, claim("k", "a"))
		in, ok := errors.AsType[*dedup.InProgressError](s.Delete(t.Context(), "k"))
		if !ok || in.Until.Before(l.Until) {
			t.Errorf("Delete of a live lease: got %v, want *InProgressError until its end", in)
		}
		must.Do(t, s.Delete(t.Context(), "k", func(o *DeleteOptions) { o.Force = true }))
		mustComplete(t, s, mustAcquire(t, s, claim("k", "b")))
		for range 2 {
			must.Do(t, s.Delete(t.Context(), "k"))
		}
		if l := mustAcquire(t, s, claim("k", "c")); l.Takeover || l.LastError != "" {
			t.Errorf("after a delete: got %+v, want a fresh lease", l)
		}
	})
}

// A text that one database would refuse or change is refused for all.
func TestBadTexts(t *testing.T) {
	eachStore(t, func(t *testing.T, b *Bed, s *Store) {
		for _, text := range []string{"", strings.Repeat("k", 2049), "a\x00b", "a\xffb"} {
			_, err := granted.Lease(s.Acquire(t.Context(), claim(text, "a")))
			if !hasField(err, "Claim.Key") {
				t.Errorf("key %.9q: got error %v, want a *sqsonce.OptionError of Claim.Key", text, err)
			}
			if _, err := granted.Lease(s.Acquire(t.Context(), claim("k", text))); !hasField(err, "Claim.Owner") {
				t.Errorf("owner %.9q: got error %v, want a *sqsonce.OptionError of Claim.Owner", text, err)
			}
			l := dedup.Lease{Key: text, Owner: "a"}
			_, err = s.Renew(t.Context(), l, time.Hour)
			for _, err := range []error{err, s.Complete(t.Context(), l, dedup.Result{}), s.Release(t.Context(), l, nil)} {
				if !hasField(err, "Lease.Key") {
					t.Errorf("key %.9q: got error %v, want a *sqsonce.OptionError of Lease.Key", text, err)
				}
			}
			_, err = s.Inspect(t.Context(), text)
			for _, err := range []error{err, s.Delete(t.Context(), text)} {
				if !hasField(err, "key") {
					t.Errorf("key %.9q: got error %v, want a *sqsonce.OptionError of key", text, err)
				}
			}
		}
		short := claim("k", "a")
		short.Lease = time.Microsecond
		if _, err := granted.Lease(s.Acquire(t.Context(), short)); !hasField(err, "Claim.Lease") {
			t.Errorf("a lease of 1 µs: got error %v, want a *sqsonce.OptionError of Claim.Lease", err)
		}
		longest := claim(strings.Repeat("é", 1024), strings.Repeat("o", 255))
		mustComplete(t, s, mustAcquire(t, s, longest))
	})
}
