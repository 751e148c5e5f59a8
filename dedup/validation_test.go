package dedup_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
)

// strictStore keeps hashes as a column of 128 printable characters does, and counts what it refused.
type strictStore struct {
	*faults
	refused atomic.Int64
	refuse  func(dedup.Result) error // of a complete
}

func (s *strictStore) Complete(ctx context.Context, l dedup.Lease, r dedup.Result) error {
	if len(r.Validation) > 128 || strings.ContainsFunc(r.Validation, func(r rune) bool { return r < ' ' || r > '~' }) {
		s.refused.Add(1)
		return sqsonce.Unavailable(errors.New("value too long for type character varying(128)"))
	}
	if s.refuse != nil {
		if err := s.refuse(r); err != nil {
			s.refused.Add(1)
			return err
		}
	}
	return s.faults.Complete(ctx, l, r)
}

// A payload hash of any form and length is compared, and gives no store a value that it cannot keep.
func TestHashesOfAnyForm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, hash := range map[string]string{
			"long": strings.Repeat("x", 500_000), "not UTF-8": "\xff\xfe", "NUL": "a\x00b", "of other letters": "żółw", "short": "9f86d081", "none": "",
		} {
			s := &strictStore{faults: newFaults()}
			var e effects
			once := newOnce(t, s, func(o *dedup.Options) {
				o.CacheSize = -1
				o.PayloadHash = func(m *sqsonce.Message) string { return m.Body }
			})
			m := message("1")
			m.Body = hash
			for range 2 {
				if err := once.Handler(e.handler)(t.Context(), m); err != nil {
					t.Errorf("%s: got error %v, want nil", name, err)
				}
			}
			m = message("1")
			m.Body = hash + "other"
			err := once.Handler(e.handler)(t.Context(), m)
			if want := hash != ""; errors.Is(err, dedup.ErrPayloadMismatch) != want || e.got() != 1 || s.refused.Load() > 0 {
				t.Errorf("%s: another payload: got error %v, %d runs, %d values refused, want a mismatch %v, 1 run and none", name, err, e.got(), s.refused.Load(), want)
			}
			charged := 0
			for range 2 {
				if _, err := dedup.Do(t.Context(), once, "do", func(context.Context) (int, error) { charged++; return charged, nil },
					func(o *dedup.DoOptions) { o.PayloadHash = hash }); err != nil {
					t.Errorf("%s: Do: %v", name, err)
				}
			}
			if charged != 1 {
				t.Errorf("%s: Do charged %d times, want once", name, charged)
			}
		}
	})
}

// A record of an earlier version has the hash as the function returned it.
func TestHashOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	s := newFaults()
	once := newOnce(t, s, func(o *dedup.Options) {
		o.CacheSize = -1
		o.PayloadHash = func(m *sqsonce.Message) string { return m.Body }
	})
	var e effects
	m := message("1")
	m.Body = strings.Repeat("x", 200)
	key := must.Get(once.Key(m))(t)
	l := must.Get(granted.Lease(s.Acquire(t.Context(), dedup.Claim{Key: key, Owner: "before", Lease: time.Minute, Retention: time.Hour, ReceiveCount: 1})))(t)
	must.Do(t, s.Complete(t.Context(), l, dedup.Result{Validation: m.Body}))
	if err := once.Handler(e.handler)(t.Context(), m); err != nil || e.got() != 0 {
		t.Errorf("the same payload: error %v, %d runs, want a duplicate", err, e.got())
	}
	m.Body += "x"
	if err := once.Handler(e.handler)(t.Context(), m); !errors.Is(err, dedup.ErrPayloadMismatch) {
		t.Errorf("another payload: error %v, want ErrPayloadMismatch", err)
	}
}

// A complete that is refused without hash and result too is no outage: the delivery fails, with one incident, and so does a
// redelivery. The process knows the success, and does not repeat it.
func TestRefusedBareCompleteFailsTheDelivery(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		f.down(sqsonce.Unavailable(errors.New("denied by a trigger")), "complete")
		var incidents []dedup.Incident
		once := newOnce(t, f, func(o *dedup.Options) {
			o.PayloadHash = func(*sqsonce.Message) string { return "hash" }
			o.Hooks = []dedup.Hooks{{Incident: func(_ context.Context, i dedup.Incident) { incidents = append(incidents, i) }}}
		})
		var e effects
		ctx, _ := hosted(12 * time.Hour)
		start := time.Now()
		for range 2 {
			err := once.Handler(e.handler)(ctx, message("1"))
			if took := time.Since(start); sqsonce.OutcomeOf(err).Kind != sqsonce.OutcomeFailed || took > time.Minute {
				t.Errorf("after %s: got error %v, want a failure within a minute", took, err)
			}
		}
		f.up()
		if err := once.Handler(e.handler)(ctx, message("1")); err != nil || !completed(t, f.Store, "1") || e.got() != 1 || len(incidents) != 1 {
			t.Errorf("got error %v, %d runs and incidents %v, want a duplicate, one run and one incident", err, e.got(), incidents)
		}
	})
}

// A store that refuses to keep a hash or a result has its record completed without them, whatever it answers: the event has had
// its effect. A line says so, once. A store that is down, or that fails twice, keeps them.
func TestRefusedCompleteIsSentWithoutHashAndResult(t *testing.T) {
	t.Parallel()
	tooLarge := sqsonce.Unavailable(errors.New("item size has exceeded the maximum allowed size"))
	for name, tt := range map[string]struct {
		refusal        error
		until, renewed time.Duration // from the start: of the refusals, and of failing renewals
		host           time.Duration // has the message for so long
		policy         dedup.CompletePolicy
		flaps, kept    bool
	}{
		"by its own code":              {refusal: &sqsonce.OptionError{Package: "store", Field: "Result.Data", Problem: "is too large"}, host: time.Hour},
		"by the server":                {refusal: tooLarge, host: time.Hour},
		"by the server, after the end": {refusal: tooLarge, host: time.Second},
		"by the server, acknowledged":  {refusal: tooLarge, host: time.Hour, policy: dedup.OnCompleteFailedAcknowledge},
		"is down":                      {refusal: tooLarge, until: 15 * time.Minute, renewed: 15 * time.Minute, host: time.Hour, kept: true},
		"is down, after the end":       {refusal: tooLarge, until: 15 * time.Minute, renewed: 15 * time.Minute, host: time.Second, kept: true},
		"fails twice":                  {refusal: tooLarge, until: time.Second, host: time.Hour, kept: true},
		"is down at times":             {refusal: tooLarge, until: 15 * time.Minute, host: time.Hour, flaps: true, kept: true},
	} {
		must.Run(t, name, func(t *testing.T) {
			var log bytes.Buffer
			s := &strictStore{faults: newFaults()}
			begun := time.Now()
			s.refuse = func(r dedup.Result) error {
				if r.Validation != "" && (tt.until == 0 || time.Since(begun) < tt.until) {
					return tt.refusal
				}
				return nil
			}
			s.before = func(_ context.Context, op string, _ int) error {
				if op == "renew" && (time.Since(begun) < tt.renewed || tt.flaps && s.refused.Load()%2 == 0) {
					return errStore
				}
				return nil
			}
			once := newOnce(t, s, func(o *dedup.Options) {
				o.PayloadHash, o.OnCompleteFailed = func(*sqsonce.Message) string { return "hash" }, tt.policy
				o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			})
			var e effects
			ctx, _ := hosted(tt.host)
			if err := once.Handler(e.handler)(ctx, message("1")); err != nil && tt.host == time.Hour {
				t.Errorf("got error %v, want nil", err)
			}
			time.Sleep(time.Until(begun.Add(tt.until + time.Minute)))
			synctest.Wait()
			g, err := s.Acquire(t.Context(), dedup.Claim{Key: recordKey("1"), Owner: "later", Lease: time.Minute, Retention: time.Hour})
			if err != nil || g.Verdict != dedup.VerdictCompleted || (g.Result.Validation == "hash") != tt.kept || e.got() != 1 {
				t.Errorf("got %+v, %v after %d runs, want it completed after one, with the hash: %t", g, err, e.got(), tt.kept)
			}
			if lines := strings.Count(log.String(), "completed without them"); lines != 1 && !tt.kept || lines > 0 && tt.kept || s.refused.Load() > 3 && !tt.kept {
				t.Errorf("%d lines after %d refusals, want one after 3 at most, and none where the hash is kept:\n%s", lines, s.refused.Load(), &log)
			}
			if n := float64(int(s.refused.Load()) + s.seen("renew")); tt.renewed > 0 && n > tt.until.Seconds() {
				t.Errorf("%v calls in %s, want one a second at most", n, tt.until)
			}
		})
	}
}
