package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// Two hosts with clocks up to a minute apart, in every combination of known and unknown clocks.
func TestHostsApart(t *testing.T) {
	t.Parallel()
	for _, holder := range []time.Duration{-30 * time.Second, 0, 30 * time.Second} {
		for _, taker := range []time.Duration{-30 * time.Second, 0, 30 * time.Second} {
			for _, first := range []bool{true, false} {
				name := "holder " + holder.String() + " taker " + taker.String()
				if first {
					name += ", before any date"
				}
				t.Run(name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { apartCase(newBed(t), holder, taker, first) })
				})
			}
		}
	}
}

func apartCase(b *bed, holder, taker time.Duration, first bool) {
	const length = 40 * time.Second
	h, k := b.store(off(holder)), b.store(off(taker))
	if !first {
		for _, s := range []*Store{h, k} {
			if _, err := s.Inspect(b.Context(), testKey); !errors.Is(err, dedup.ErrNotFound) {
				b.Fatal(err)
			}
		}
	}
	c := claim("holder")
	c.Lease = length
	start := time.Now()
	l := b.acquire(h, c)
	// By the holder's own clock.
	left := l.Until.Sub(h.clock.look().host)
	if left < length/2 || left > length {
		b.Errorf("left of a lease of %s by the holder's clock: %s", length, left)
	}
	for elapsed := time.Duration(0); elapsed < left; elapsed += 3 * time.Second {
		g, err := k.Acquire(b.Context(), claim("taker"))
		if g.Verdict != dedup.VerdictInProgress {
			b.Fatalf("Acquire %s after the holder's: got %+v and error %v, want in progress", time.Since(start), g, err)
		}
		if wait := g.Until.Sub(k.clock.look().host); wait < left-elapsed {
			b.Errorf("in progress for %s by the taker's clock, but the holder has %s left", wait, left-elapsed)
		}
		time.Sleep(3 * time.Second)
	}
	// A holder that was ahead before its first answer has asked for a lease that is longer by as much.
	time.Sleep(max(0, holder) + 8*time.Second)
	if got := b.acquire(k, claim("taker")); !got.Takeover || got.Fence <= l.Fence {
		b.Errorf("lease after the holder vanished: got %+v, want a Takeover and a fence over %d", got, l.Fence)
	}
	if err := h.Complete(b.Context(), l, dedup.Result{}); !errors.Is(err, sqsonce.ErrLeaseLost) {
		b.Errorf("Complete by the first holder: got %v, want ErrLeaseLost", err)
	}
}

// A host's wall clock is set, or its monotonic clock jumps, after its store has read a Date. The taker does not take over a
// live lease, and the holder does not get one that is over.
func TestHostJumps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		wall, mono time.Duration
	}{
		{"wall clock set forward", time.Hour, 0},
		{"wall clock set back", -time.Hour, 0},
		{"monotonic clock jumps", 0, time.Hour},
	} {
		runStore(t, c.name, func(t *testing.T, b *bed, s *Store) {
			look := s.clock.look
			if _, err := s.Inspect(t.Context(), testKey); !errors.Is(err, dedup.ErrNotFound) {
				t.Fatal(err)
			}
			b.acquire(b.store(), claim("holder"))
			s.clock.look = func() moment {
				m := look()
				return moment{host: m.host.Add(c.wall), wall: m.wall + c.wall, mono: m.mono + c.mono}
			}
			if _, err := granted.Lease(s.Acquire(t.Context(), claim("taker"))); !errors.Is(err, sqsonce.ErrInProgress) {
				t.Errorf("Acquire during the holder's lease: got error %v, want in progress", err)
			}
			time.Sleep(lease + 5*time.Second)
			l := b.acquire(s, claim("taker"))
			if left := l.Until.Sub(s.clock.look().host); left < lease/2 || left > lease {
				t.Errorf("left of a lease of %s by the host's clock: %s", lease, left)
			}
		})
	}
}

// The retention of a completed event ends by the server's clock, for a host that is hours ahead and for one that is behind.
func TestRetentionByTheServersClock(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{-3 * time.Hour, 3 * time.Hour} {
		runBed(t, skew.String(), func(t *testing.T, b *bed) {
			c := claim("a")
			c.Retention = 2 * time.Hour
			first := b.store()
			b.complete(first, b.acquire(first, c))
			if g, err := b.store(off(skew)).Acquire(t.Context(), claim("b")); g.Verdict != dedup.VerdictCompleted {
				t.Errorf("Acquire within the retention: got %+v and error %v, want completed", g, err)
			}
			time.Sleep(c.Retention + 5*time.Second)
			b.acquire(b.store(off(skew)), claim("b"))
		})
	}
}

// A worker whose store answers with errors that nobody knows. While it refuses some events, the others go on: the question passes.
// While it refuses everything, the worker hardly receives. No message is dead-lettered unrun, and in the end each event ran once.
func TestWorkerOfAStoreThatRefuses(t *testing.T) {
	onBed(t, func(t *testing.T, b *bed) {
		var refused atomic.Value // what the requests that the store refuses contain
		refused.Store("sick")
		answers := []string{"{}", "", "[]", "<html>"}
		for _, r := range testserver.Refusals(100) {
			answers = append(answers, refusal(r.Code+"Exception", r.Text))
		}
		var refusals atomic.Int64
		store := must.Get(New(b.client(transport(func(r *http.Request) (*http.Response, error) {
			body := must.Get(io.ReadAll(r.Body))(t)
			if !bytes.Contains(body, []byte(refused.Load().(string))) {
				r.Body = io.NopCloser(bytes.NewReader(body))
				return b.srv.RoundTrip(r)
			}
			return answerTo(r, http.StatusBadRequest, answers[refusals.Add(1)%int64(len(answers))]), nil
		})), testTable))(t)
		once := must.Get(dedup.New(store, "billing", func(o *dedup.Options) {
			o.Key = func(m *sqsonce.Message) (string, error) { return m.Body, nil }
		}))(t)
		srv := memsqs.New()
		t.Cleanup(srv.Close)
		client := testaws.SQS(srv)
		testaws.Queue(t, client, "dlq", nil)
		url := testaws.Queue(t, client, "orders", map[string]string{
			"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dlq","maxReceiveCount":"3"}`,
		})
		var ran atomic.Int64
		w := must.Get(sqsworker.New(client, url, once.Handler(func(context.Context, *sqsonce.Message) error {
			ran.Add(1)
			return nil
		}), func(o *sqsworker.Options) { o.Logger = slog.New(slog.DiscardHandler) }))(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		sent := 0
		// during sends 20 messages of each kind, and waits.
		during := func(d time.Duration, refuse string, kinds ...string) (receives int64) {
			refused.Store(refuse)
			for n := range 20 * len(kinds) {
				body := fmt.Sprint(kinds[n%len(kinds)], " ", sent)
				must.Get(client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}))(t)
				sent++
			}
			before := w.Stats().Receives
			time.Sleep(d)
			if dead := srv.Messages("dlq"); len(dead) > 0 {
				t.Errorf("%d messages were dead-lettered, the first one %s", len(dead), dead[0].Body)
			}
			return w.Stats().Receives - before
		}
		during(3*time.Minute, "sick", "sick", "well")
		if n, s := ran.Load(), w.Stats(); n != 20 || s.Aside != 20 {
			t.Errorf("some events are refused: %d ran, stats %+v, want the 20 others done, and 20 aside", n, s)
		}
		if n := during(5*time.Minute, "", "sick", "well"); n > 10 || ran.Load() != 20 {
			t.Errorf("all is refused: %d receives and %d runs, want at most 10, and still 20", n, ran.Load())
		}
		during(10*time.Minute, "nothing")
		cancel()
		must.Do(t, <-ended)
		if n := refusals.Load(); n < int64(len(answers)) {
			t.Errorf("%d requests were refused, want each of the %d answers", n, len(answers))
		}
		if n := ran.Load(); n != int64(sent) || len(srv.Messages(url)) > 0 {
			t.Errorf("nothing is refused: %d runs of %d events, in the queue %v", n, sent, srv.Messages(url))
		}
	})
}

func isCompleted(err error) bool { return errors.Is(err, granted.ErrCompleted) }
