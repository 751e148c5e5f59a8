package dedup_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
)

func TestNewReportsEveryBadField(t *testing.T) {
	t.Parallel()
	_, err := dedup.New(nil, "a#b", func(o *dedup.Options) {
		o.LeaseDuration = 999 * time.Millisecond
		o.Retention = time.Hour - 1
		o.CallTimeout = -1
		o.MaxResult = 350<<10 + 1
		o.OnCrash = 3
		o.OnCompleteFailed = -1
		o.OnStoreDown = 2
	})
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("got error %v, want a join", err)
	}
	var got []string
	for _, e := range joined.Unwrap() {
		f, ok := e.(*sqsonce.OptionError)
		if !ok || f.Package != "dedup" || f.Problem == "" {
			t.Fatalf("got %v, want *sqsonce.OptionError of dedup", e)
		}
		got = append(got, f.Field)
	}
	want := []string{"store", "consumer", "Options.LeaseDuration", "Options.Retention", "Options.CallTimeout", "Options.MaxResult",
		"Options.OnCrash", "Options.OnCompleteFailed", "Options.OnStoreDown"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

// A store that was never set panics when its methods are called.
func TestNewRefusesATypedNil(t *testing.T) {
	t.Parallel()
	var s *memstore.Store
	_, err := dedup.New(s, "billing")
	if bad, ok := errors.AsType[*sqsonce.OptionError](err); !ok || bad.Field != "store" {
		t.Errorf("got error %v, want *sqsonce.OptionError of the store", err)
	}
}

func TestNewLimits(t *testing.T) {
	t.Parallel()
	for _, consumer := range []string{"a", "Team.one/billing_2-x", "azAZ09", strings.Repeat("c", 64)} {
		if _, err := dedup.New(memstore.New(), consumer); err != nil {
			t.Errorf("consumer %q: got error %v, want nil", consumer, err)
		}
	}
	for _, consumer := range []string{"", "sqsonce.control", "a b", "a#", "ü", "a\x00", strings.Repeat("c", 65)} {
		if _, err := dedup.New(memstore.New(), consumer); err == nil {
			t.Errorf("consumer %q: got nil, want an error", consumer)
		}
	}
	if _, err := dedup.New(memstore.New(), "c", func(o *dedup.Options) {
		o.LeaseDuration, o.Retention, o.MaxResult, o.CacheSize = time.Second, time.Hour, 350<<10, -1
	}); err != nil {
		t.Errorf("the limits themselves: got error %v, want nil", err)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	c, _ := claimFor(t, message("1"))
	if c.Lease != 30*time.Second || c.Retention != 29*24*time.Hour || c.NoTakeover {
		t.Errorf("default claim: got %+v, want a lease of 30 s, a retention of 29 days and takeovers", c)
	}
}
