package dedup_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// keys is a store that records its claims.
type keys struct {
	dedup.Store
	got []dedup.Claim
}

func (k *keys) Acquire(ctx context.Context, c dedup.Claim) (dedup.Grant, error) {
	k.got = append(k.got, c)
	return k.Store.Acquire(ctx, c)
}

// claimFor returns the claim that a delivery of m makes.
func claimFor(t *testing.T, m *sqsonce.Message, optFns ...func(*dedup.Options)) (dedup.Claim, *dedup.Once) {
	t.Helper()
	k := &keys{Store: memstore.New()}
	o := newOnce(t, k, optFns...)
	must.Do(t, o.Handler(hang(0))(t.Context(), m))
	if len(k.got) != 1 {
		t.Fatalf("%d acquires, want 1", len(k.got))
	}
	return k.got[0], o
}

func custom(key string) func(*dedup.Options) {
	return func(o *dedup.Options) { o.Key = func(*sqsonce.Message) (string, error) { return key, nil } }
}

func TestKeySources(t *testing.T) {
	t.Parallel()
	bare := &sqsonce.Message{ID: "m1", QueueARN: "q", DedupID: "d", Attributes: map[string]sqsonce.Attribute{sqsonce.AttrEventID: {Type: "String", String: "7"}}}
	fifo := &sqsonce.Message{ID: "m1", QueueARN: "q", Group: "g", DedupID: "d"}
	cloud := &sqsonce.Message{ID: "m1", QueueARN: "q", DedupID: "d", Body: `{"specversion":"1.0","id":"7","source":"s","type":"t"}`}
	trust := func(o *dedup.Options) { o.TrustDedupID = true }
	for _, tt := range []struct {
		name string
		m    *sqsonce.Message
		opt  func(*dedup.Options)
		want string
		from sqsonce.KeySource
	}{
		{"attribute", message("1"), trust, "billing#orders|1", sqsonce.KeyFromAttribute},
		{"event-id without event-source", bare, trust, "billing#sqs-event|q|7", sqsonce.KeyFromEventID},
		{"CloudEvents", cloud, trust, "billing#s|7", sqsonce.KeyFromCloudEvents},
		{"message ID", fifo, func(*dedup.Options) {}, "billing#sqs-message|q|m1", sqsonce.KeyFromMessageID},
		{"dedup ID", fifo, trust, "billing#sqs-dedup|q|g|d", sqsonce.KeyFromDedupID},
		{"dedup ID without a message ID", &sqsonce.Message{QueueARN: "q", DedupID: "d"}, trust, "billing#sqs-dedup|q||d", sqsonce.KeyFromDedupID},
		{"SNS", &sqsonce.Message{ID: "m1", QueueARN: "q", DedupID: "d", Envelope: sqsonce.Envelope{Key: "k", Source: sqsonce.KeyFromSNS}}, func(*dedup.Options) {}, "billing#k", sqsonce.KeyFromSNS},
		{"EventBridge", &sqsonce.Message{ID: "m1", QueueARN: "q", Envelope: sqsonce.Envelope{Key: "k", Source: sqsonce.KeyFromEventBridge}}, trust, "billing#k", sqsonce.KeyFromEventBridge},
		{"dedup ID in an envelope of SNS", &sqsonce.Message{ID: "m1", QueueARN: "q", Group: "g", DedupID: "d", Envelope: sqsonce.Envelope{Key: "k", Source: sqsonce.KeyFromSNS}}, trust, "billing#sqs-dedup|q|g|d", sqsonce.KeyFromDedupID},
		{"dedup ID in an envelope of EventBridge", &sqsonce.Message{ID: "m1", QueueARN: "q", Group: "g", DedupID: "d", Envelope: sqsonce.Envelope{Key: "k", Source: sqsonce.KeyFromEventBridge}}, trust, "billing#sqs-dedup|q|g|d", sqsonce.KeyFromDedupID},
		{"no dedup ID to trust", &sqsonce.Message{ID: "m1", QueueARN: "q"}, trust, "billing#sqs-message|q|m1", sqsonce.KeyFromMessageID},
		{"custom", message("1"), custom("abc"), "billing#abc", sqsonce.KeyFromFunction},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, o := claimFor(t, tt.m, tt.opt)
			if c.Key != tt.want {
				t.Errorf("key: got %q, want %q", c.Key, tt.want)
			}
			want := dedup.Stats{}.KeySources
			want[tt.from] = 1
			if diff := cmp.Diff(want, o.Stats().KeySources); diff != "" {
				t.Errorf("key sources (-want +got):\n%s", diff)
			}
		})
	}
}

// The host's copy for the dead-letter queue has another message ID and MessageDeduplicationId, and may be an envelope: dedup
// tells the host its key. A function finds its own in the copy.
func TestKeyIsKept(t *testing.T) {
	t.Parallel()
	trust := func(o *dedup.Options) { o.TrustDedupID = true }
	fifo := &sqsonce.Message{ID: "m1", QueueARN: "q", Group: "g", DedupID: "d"}
	for _, tt := range []struct {
		m    *sqsonce.Message
		opt  func(*dedup.Options)
		want string
		show string // to those who look at what runs
	}{
		{fifo, trust, "sqs-dedup|q|g|d", "sqs-dedup|q|g|d"},
		{fifo, func(*dedup.Options) {}, "sqs-message|q|m1", "sqs-message|q|m1"},
		{message("1"), trust, "orders|1", "orders|1"},
		{fifo, custom("abc"), "", "abc"},
	} {
		o := newOnce(t, memstore.New(), tt.opt)
		guard := func(ctx context.Context, m *sqsonce.Message) error {
			return guard(o, ctx, m, func(context.Context, dedup.Lease) (bool, error) { return false, nil })
		}
		for _, h := range []sqsonce.Handler{o.Handler(hang(0)), guard} {
			ctx, _ := settle.New(t.Context())
			must.Do(t, h(ctx, tt.m))
			if got := settle.KeptKey(ctx); got != tt.want {
				t.Errorf("the host's key: got %q, want %q", got, tt.want)
			}
			if got := settle.KnownKey(ctx); got != tt.show {
				t.Errorf("the key that is shown: got %q, want %q", got, tt.show)
			}
		}
	}
}

// Two producers that number their events from 1 have two events 7: neither is acknowledged unrun because of the other. One
// line says so for all of them.
func TestEventIDWithoutSourceIsTheQueues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		o := newOnce(t, memstore.New(), func(o *dedup.Options) { o.Logger = slog.New(slog.NewTextHandler(&lines, nil)) })
		var e effects
		h := o.Handler(e.handler)
		for _, queue := range []string{"orders", "refunds"} {
			for range 2 { // the second one is a duplicate
				m := message("7")
				delete(m.Attributes, sqsonce.AttrEventSource)
				m.QueueARN = "arn:aws:sqs:eu-west-1:1:" + queue
				must.Do(t, h(t.Context(), m))
			}
		}
		if e.got() != 2 || o.Stats().KeySources[sqsonce.KeyFromEventID] != 4 {
			t.Errorf("%d runs, stats %+v, want one run for each queue and 4 keys from the event-id", e.got(), o.Stats().KeySources)
		}
		synctest.Wait() // for the log
		got := lines.String()
		if strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, "without event-source") || !strings.Contains(got, "consumer=billing queue=arn:aws:sqs:eu-west-1:1:orders") {
			t.Errorf("log: got %q, want one warning with consumer and queue", got)
		}

		lines.Reset()
		err := h(t.Context(), message("8"))
		synctest.Wait()
		if err != nil || lines.Len() > 0 {
			t.Errorf("an event with a source: got error %v, log %q, want neither", err, lines.String())
		}
	})
}

// A message without a key does not run, and does not share a key with other such messages.
func TestMissingKey(t *testing.T) {
	t.Parallel()
	empty := message("1")
	empty.Attributes[sqsonce.AttrEventID] = sqsonce.Attribute{Type: "Binary", Binary: []byte{1}}
	broken := errors.New("no tenant")
	trust := func(o *dedup.Options) { o.TrustDedupID = true }
	none := func(*dedup.Options) {}
	for _, tt := range []struct {
		name   string
		m      *sqsonce.Message
		opt    func(*dedup.Options)
		want   error
		reject bool
	}{
		{"empty attribute", empty, none, sqsonce.ErrNoEventID, true},
		{"nothing at all", &sqsonce.Message{}, none, sqsonce.ErrNoEventID, true},
		{"event-id, no ARN", &sqsonce.Message{ID: "m", Attributes: map[string]sqsonce.Attribute{"event-id": {Type: "String", String: "1"}}}, none, sqsonce.ErrUnavailable, false},
		{"message ID, no ARN", &sqsonce.Message{ID: "m"}, none, sqsonce.ErrUnavailable, false},
		{"dedup ID, no ARN", &sqsonce.Message{ID: "m", DedupID: "d", Envelope: sqsonce.Envelope{Key: "k", Source: sqsonce.KeyFromSNS}}, trust, sqsonce.ErrUnavailable, false},
		{"custom, empty", message("1"), custom(""), sqsonce.ErrNoEventID, true},
		{"custom, error", message("1"), func(o *dedup.Options) {
			o.Key = func(*sqsonce.Message) (string, error) { return "key", broken }
		}, broken, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFaults()
			var e effects
			err := newOnce(t, f, tt.opt).Handler(e.handler)(t.Context(), tt.m)
			if !errors.Is(err, tt.want) || sqsonce.OutcomeOf(err).Reject != tt.reject {
				t.Errorf("got error %v, want %v, a Reject: %t", err, tt.want, tt.reject)
			}
			if e.got() != 0 || f.log() != "[]" {
				t.Errorf("%d runs and calls %s, want none", e.got(), f.log())
			}
		})
	}
}

func TestUnusualKeysStayApart(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 1024-len("billing#"))
	events := []string{"a", "#a", "##a", "a#b", "ключ", "\xff", "\xfe", "\xef\xbf\xbd", "a\x00", "\x00a", long, long + "k", long + "K", "x" + long}
	seen := make(map[string]string)
	for _, event := range events {
		c, _ := claimFor(t, message("1"), custom(event))
		if prior, ok := seen[c.Key]; ok {
			t.Errorf("events %.20q and %.20q share the key %q", prior, event, c.Key)
		}
		seen[c.Key] = event
		if len(c.Key) > 1024 || !utf8.ValidString(c.Key) || strings.Contains(c.Key, "\x00") || !strings.HasPrefix(c.Key, "billing#") {
			t.Errorf("event %.20q: key %.40q of %d bytes, want UTF-8 of at most 1,024 without NUL that begins with the consumer", event, c.Key, len(c.Key))
		}
		// An event whose own key looks like the hashed form is another event.
		if again, _ := claimFor(t, message("1"), custom(strings.TrimPrefix(c.Key, "billing#"))); strings.HasPrefix(c.Key, "billing##") && again.Key == c.Key {
			t.Errorf("event %.20q has the key of event %q", event, strings.TrimPrefix(c.Key, "billing#"))
		}
	}
	if c, _ := claimFor(t, message("1"), custom(long)); c.Key != "billing#"+long {
		t.Errorf("a key of 1,024 bytes: got %.40q, want it as it is", c.Key)
	}
}

// Key returns the key of the record that the handler completes.
func TestKeyIsTheRecords(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	o := must.Get(dedup.New(s, "billing"))(t)
	m := message("1")
	must.Do(t, o.Handler(func(context.Context, *sqsonce.Message) error { return nil })(t.Context(), m))
	key := must.Get(o.Key(m))(t)
	if r, err := s.Inspect(t.Context(), key); err != nil || !r.Completed {
		t.Errorf("Inspect(%q): got %+v and error %v, want the completed record", key, r, err)
	}
	if key, err := o.Key(&sqsonce.Message{}); !errors.Is(err, sqsonce.ErrNoEventID) {
		t.Errorf("Key of a message without an ID: got %q and error %v, want ErrNoEventID", key, err)
	}
}
