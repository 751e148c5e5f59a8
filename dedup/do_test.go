package dedup_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/settle"
)

type charge struct {
	ID     string
	Amount int64
}

func TestDoFailureIsNotReplayed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOnce(t, newFaults())
		declined := errors.New("declined")
		runs := 0
		f := func(context.Context) (int, error) {
			if runs++; runs == 1 {
				return 7, declined
			}
			return 8, nil
		}
		if got, err := dedup.Do(t.Context(), o, "k", f); err != declined || got != 0 {
			t.Errorf("first call: got %d, %v, want 0 and f's own error", got, err)
		}
		if got, err := dedup.Do(t.Context(), o, "k", f); err != nil || got != 8 || runs != 2 {
			t.Errorf("second call: got %d, %v after %d runs, want 8, nil after 2", got, err, runs)
		}
	})
}

// unstorable has no JSON. Its effect has happened all the same.
type unstorable struct{ Fails, Panics bool }

func (u unstorable) MarshalJSON() ([]byte, error) {
	if u.Panics {
		panic("no JSON")
	}
	return nil, errors.New("no JSON")
}

func (u *unstorable) UnmarshalJSON([]byte) error { return nil }

// notUTF8 is JSON that stores of text would change, such as a [json.RawMessage] may be.
type notUTF8 struct{}

func (notUTF8) MarshalJSON() ([]byte, error) { return []byte("\"\xff\""), nil }
func (*notUTF8) UnmarshalJSON([]byte) error  { return nil }

// nested is a value of JSON that is read to a depth of 10,000.
type nested struct{ In *nested }

// The effect of a call whose result cannot be stored has happened: it does not happen again, and the call succeeds.
func TestDoUnstorableResult(t *testing.T) {
	t.Parallel()
	text, deep := strings.Repeat("x", 70<<10), &nested{}
	for range 10_000 {
		deep = &nested{deep}
	}
	for _, tt := range []struct {
		name string
		call func(o *dedup.Once, run func()) (any, error)
		max  int
		got  any
		want error // of later calls; nil: a replay
	}{
		{"fits", do("12345678"), 10, "12345678", nil},
		{"a byte too long", do("123456789"), 10, "123456789", dedup.ErrResultTooLarge},
		{"70 KB", do(text), 0, text, dedup.ErrResultTooLarge},
		{"infinity", do(math.Inf(1)), 0, math.Inf(1), dedup.ErrNoResult},
		{"not UTF-8", do("a\xff"), 0, "a\xff", dedup.ErrNoResult},
		{"MarshalJSON of text that is not UTF-8", do(notUTF8{}), 0, notUTF8{}, dedup.ErrNoResult},
		{"deeper than JSON is read", do(deep), 100 << 10, deep, dedup.ErrNoResult},
		{"U+FFFD", do("a\ufffd"), 0, "a\ufffd", nil},
		{"the text of an escape", do(`\ufffd`), 0, `\ufffd`, nil},
		{"MarshalJSON fails", do(unstorable{Fails: true}), 0, unstorable{Fails: true}, dedup.ErrNoResult},
		{"MarshalJSON panics", do(unstorable{Panics: true}), 0, unstorable{Panics: true}, dedup.ErrNoResult},
	} {
		must.Run(t, tt.name, func(t *testing.T) {
			f := newFaults()
			var lines bytes.Buffer
			opt := func(o *dedup.Options) { o.MaxResult, o.Logger = tt.max, slog.New(slog.NewTextHandler(&lines, nil)) }
			runs := 0
			got, err := tt.call(newOnce(t, f, opt), func() { runs++ })
			if err != nil || got != tt.got {
				t.Errorf("first call: got %.20v, %v, want f's own value", got, err)
			}
			synctest.Wait() // for the log
			if warned := strings.Count(lines.String(), "level=WARN"); (warned == 1) != (tt.want != nil) || warned > 1 {
				t.Errorf("log: got %q, want one warning where the result is not stored", lines.String())
			}
			got, err = tt.call(newOnce(t, f, opt), func() { runs++ }) // in another process
			if !errors.Is(err, tt.want) || tt.want == nil && got != tt.got {
				t.Errorf("second call: got %.20v, %v, want %v", got, err, tt.want)
			}
			if runs != 1 || f.log() != "[acquire complete acquire]" {
				t.Errorf("%d runs, calls %s, want one run, completed", runs, f.log())
			}
		})
	}
}

// do returns a call of Do that returns v.
func do[T any](v T) func(o *dedup.Once, run func()) (any, error) {
	return func(o *dedup.Once, run func()) (any, error) {
		return dedup.Do(context.Background(), o, "k", func(context.Context) (T, error) { run(); return v, nil })
	}
}

// Another input under the key of a completed call is refused. It neither runs nor gets the other one's result.
func TestDoPayloadMismatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOnce(t, newFaults())
		runs := 0
		call := func(hash string) (int, error) {
			f := func(context.Context) (int, error) { runs++; return runs, nil }
			return dedup.Do(t.Context(), o, "k", f, func(o *dedup.DoOptions) { o.PayloadHash = hash })
		}
		for _, hash := range []string{"10 EUR", "10 EUR", ""} {
			if got, err := call(hash); got != 1 || err != nil {
				t.Errorf("input %q: got %d, %v, want the first result", hash, got, err)
			}
		}
		if got, err := call("99 EUR"); !errors.Is(err, dedup.ErrPayloadMismatch) || got != 0 || runs != 1 {
			t.Errorf("another input: got %d, %v after %d runs, want ErrPayloadMismatch after 1", got, err, runs)
		}
		// A message of the key, which this process remembers as completed.
		h := newOnce(t, newFaults(), custom("k"), func(o *dedup.Options) { o.PayloadHash = func(m *sqsonce.Message) string { return m.Body } })
		pay := func(context.Context) (int, error) { return 1, nil }
		must.Get(dedup.Do(t.Context(), h, "k", pay, func(o *dedup.DoOptions) { o.PayloadHash = "10 EUR" }))(t)
		if err := h.Handler(hang(0))(t.Context(), message("1")); !errors.Is(err, dedup.ErrPayloadMismatch) {
			t.Errorf("a message with another payload: got error %v, want ErrPayloadMismatch", err)
		}
	})
}

// A value whose record may be missing is not returned: the caller could act on it, and f could run again.
func TestDoCompleteFailed(t *testing.T) {
	t.Parallel()
	for _, policy := range []dedup.CompletePolicy{dedup.OnCompleteFailedRedeliver, dedup.OnCompleteFailedAcknowledge} {
		synctest.Test(t, func(t *testing.T) {
			f := newFaults()
			f.fail("complete", errStore)
			o := newOnce(t, f, func(o *dedup.Options) { o.OnCompleteFailed = policy })
			got, err := dedup.Do(t.Context(), o, "k", func(context.Context) (int, error) { return 7, nil })
			if policy == dedup.OnCompleteFailedRedeliver && (got != 0 || !errors.Is(err, errStore)) {
				t.Errorf("Redeliver: got %d, %v, want 0 and the store's error", got, err)
			}
			if policy == dedup.OnCompleteFailedAcknowledge && (got != 7 || err != nil) {
				t.Errorf("Acknowledge: got %d, %v, want 7, nil", got, err)
			}
		})
	}
}

func TestDoEdges(t *testing.T) {
	withFaults(t, func(t *testing.T, f *faults) {
		o := newOnce(t, f)
		one := func(context.Context) (int, error) { return 1, nil }
		if _, err := dedup.Do(t.Context(), o, "", one); err == nil || f.log() != "[]" {
			t.Errorf("empty key: got error %v after calls %s, want one before any", err, f.log())
		}
		_, err := dedup.Do(t.Context(), o, "panics", func(context.Context) (int, error) { panic("boom") })
		if p, ok := errors.AsType[*sqsonce.PanicError](err); !ok || p.Value != "boom" {
			t.Errorf("panic: got error %v, want *sqsonce.PanicError", err)
		}

		// A message handler's record has no result to replay.
		must.Do(t, o.Handler(hang(0))(t.Context(), message("1")))
		if _, err := dedup.Do(t.Context(), o, "orders|1", one); !errors.Is(err, dedup.ErrNoResult) {
			t.Errorf("key of a message: got error %v, want ErrNoResult", err)
		}

		must.Get(dedup.Do(t.Context(), o, "number", one))(t)
		if _, err := dedup.Do(t.Context(), o, "number", func(context.Context) (charge, error) { return charge{}, nil }); err == nil {
			t.Error("stored result of another type: got nil, want an error")
		}
	})
}

// A guarded handler inside one that runs without a record, under OnStoreDownRunAnyway, is called by that all the same. Protocol, 7.1a.
func TestHandlerInOneWithoutARecord(t *testing.T) {
	down := newFaults()
	down.fail("acquire", sqsonce.Unavailable(errors.New("down")))
	outer := newOnce(t, down, func(o *dedup.Options) { o.OnStoreDown = dedup.OnStoreDownRunAnyway })
	ctx, settled := settle.New(t.Context())
	recorded := false
	works := newFaults()
	works.before = func(_ context.Context, op string, _ int) error {
		recorded = recorded || op == "acquire" && settle.Recording(ctx)
		return nil
	}
	inner := newOnce(t, works)
	err := outer.Handler(func(ctx context.Context, _ *sqsonce.Message) error {
		if _, leased := dedup.FenceFrom(ctx); leased {
			t.Error("the context has a fence without a lease")
		}
		err := inner.Handler(func(context.Context, *sqsonce.Message) error { return nil })(ctx, message("charge"))
		if !settle.InHandler(ctx) {
			t.Error("not in the handler after the call")
		}
		return err
	})(ctx, message("e"))
	if err != nil || !recorded {
		t.Errorf("got %v; the host knows that the handler waits for a store: %t", err, recorded)
	}
	_ = settled(false)
}
