package outbox_test

import (
	"context"
	"crypto/md5" //nolint:gosec // SQS's checksum of bodies
	"encoding/hex"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/outboxstorm"
	"github.com/sqsonce/sqsonce/internal/outboxtest/refstore"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// No visit begins in the last ten seconds of a minute, nor in the last third of six seconds; the call ends with its context.
func TestDeadline(t *testing.T) {
	t.Parallel()
	for total, last := range map[time.Duration]time.Duration{time.Minute: 50 * time.Second, 6 * time.Second: 4 * time.Second} {
		for name, call := range map[string]func(context.Context, *outbox.Relay) error{
			"Drain": func(ctx context.Context, r *outbox.Relay) error { return r.Drain(ctx, groupNames(400)...) },
			"Sweep": func(ctx context.Context, r *outbox.Relay) error { _, err := r.Sweep(ctx); return err },
		} {
			t.Run(fmt.Sprint(name, total), func(t *testing.T) {
				bubble(t, func(x *fixture) {
					x.commit(5, groupNames(400)...)
					r := x.relay(func(o *outbox.Options) { o.Groups, o.Settle = 2, -1 })
					start := time.Now()
					var latest time.Duration
					var mu sync.Mutex
					x.ops.failing(func(op string) error {
						mu.Lock()
						defer mu.Unlock()
						if op == "Read" {
							latest = time.Since(start)
						}
						return nil
					})
					ctx, cancel := context.WithTimeout(x.Context(), total)
					defer cancel()
					if err := call(ctx, r); err == nil {
						t.Error("no error, though not all is published")
					}
					if took := time.Since(start); took > total || took < last {
						t.Errorf("took %v, want at least %v and at most %v", took, last, total)
					}
					if latest > last || latest < last-3*time.Second {
						t.Errorf("the last visit began after %v, want about %v and not later", latest, last)
					}
				}, fault.Rule{Op: send, Do: fault.Delay, Delay: 200 * time.Millisecond})
			})
		}
	}
}

// Sweeps that never come to the end: each begins where the last one has ended, so that the groups in front do not starve the others.
func TestSweepsCoverAll(t *testing.T) {
	bubble(t, func(x *fixture) {
		r := x.relay(func(o *outbox.Options) { o.Groups, o.Settle = 4, -1 })
		names := groupNames(200)
		x.commit(1, names[100:]...)
		for range 12 {
			x.commit(1, names[:100]...) // those in front never end
			ctx, cancel := context.WithTimeout(x.Context(), 15*time.Second)
			_, _ = r.Sweep(ctx)
			cancel()
		}
		for _, g := range names[100:] {
			x.wantQueued(g, 1)
		}
	}, fault.Rule{Op: send, Do: fault.Delay, Delay: time.Second})
}

// A sweep leaves young groups to their doorbells, and counts them.
func TestSettle(t *testing.T) {
	bubble(t, func(x *fixture) {
		r := x.relay()
		x.commit(2, "old")
		time.Sleep(time.Minute)
		x.commit(1, "young")
		time.Sleep(10 * time.Second)
		b, err := r.Sweep(x.Context())
		if want := (outbox.Backlog{Groups: 2, Oldest: 70 * time.Second}); err != nil || b != want || r.Backlog() != want {
			t.Errorf("Sweep: %+v, %v; Backlog %+v; want %+v", b, err, r.Backlog(), want)
		}
		if line := "groups=2 oldest_seconds=70 halted=0 skipped=0"; x.log.lines(line) != 1 {
			t.Errorf("no line %s:\n%s", line, x.log)
		}
		x.wantQueued("old", 2)
		if len(x.queued("young")) != 0 {
			t.Error("the young group was visited")
		}
		time.Sleep(20 * time.Second)
		must.Get(r.Sweep(x.Context()))(t)
		x.wantQueued("young", 1)
		if b, err := r.Sweep(x.Context()); err != nil || b != (outbox.Backlog{}) {
			t.Errorf("Sweep of an empty outbox: %+v, %v", b, err)
		}
	})
}

// 10,000 events of 4 KB in one group: the relay holds a page of them.
func TestMemoryOfALargeGroup(t *testing.T) {
	const events = 10_000
	synctest.Test(t, func(t *testing.T) {
		var most, sent atomic.Int64
		measure := func() {
			if sent.Add(1)%(events/10) != 0 {
				return
			}
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most.Store(max(most.Load(), int64(m.HeapAlloc)))
		}
		p := must.Get(fifo.NewPublisher(&sink{sent: measure}, "https://sqs.us-east-1.amazonaws.com/000000000000/orders.fifo", refstore.Source))(t)
		s := &endless{last: events, body: strings.Repeat("x", 4096)}
		r := must.Get(outbox.NewRelay(s, p, func(o *outbox.Options) { o.Logger, o.Settle = slog.New(slog.DiscardHandler), -1 }))(t)
		runtime.GC()
		var before runtime.MemStats
		runtime.ReadMemStats(&before)
		must.Get(r.Sweep(t.Context()))(t)
		if s := r.Stats(); s.Published != events || s.Deleted != events {
			t.Errorf("stats %+v, want %d events", s, events)
		}
		if grown := most.Load() - int64(before.HeapAlloc); grown > 20<<20 {
			t.Errorf("the heap has grown by %d MiB, want less than 20", grown>>20)
		}
	})
}

// endless is a store with one large group, which is made as it is read.
type endless struct {
	outbox.Store
	first, last int64 // first was deleted
	body        string
}

func (s *endless) Groups(context.Context, string, int) ([]outbox.Group, string, error) {
	return []outbox.Group{{Name: "g", Last: s.last}}, "", nil
}

func (s *endless) Claim(_ context.Context, groups []string, _ time.Duration) ([]string, error) {
	return groups, nil
}

func (s *endless) Unclaim(context.Context, []string) error { return nil }

func (s *endless) Read(_ context.Context, g outbox.Group, _ outbox.Known, limit int) (es []outbox.Entry, _ error) {
	for seq := s.first + 1; seq <= min(s.last, s.first+int64(limit)); seq++ {
		e := outbox.Entry{Source: refstore.Source, Seq: seq}
		e.ID, e.Group, e.Body = fmt.Sprint("e", seq), g.Name, s.body
		es = append(es, e)
	}
	return es, nil
}

func (s *endless) Delete(_ context.Context, es []outbox.Entry) ([]outbox.Entry, error) {
	s.first = es[len(es)-1].Seq
	return nil, nil
}

// sink is an SQS that accepts all and keeps nothing.
type sink struct{ sent func() }

func (s *sink) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	out := &sqs.SendMessageBatchOutput{}
	for _, e := range in.Entries {
		s.sent()
		sum := md5.Sum([]byte(*e.MessageBody)) //nolint:gosec // as above
		text, id := hex.EncodeToString(sum[:]), "m"
		out.Successful = append(out.Successful, sqstypes.SendMessageBatchResultEntry{Id: e.Id, MessageId: &id, MD5OfMessageBody: &text})
	}
	return out, nil
}

func (s *sink) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{"MaximumMessageSize": "1048576"}}, nil
}

// TestEverythingAtOnce: one to four relays, in processes that are killed and frozen, whose calls of the store and of SQS fail, lose
// their answers or arrive up to 20 minutes late; transactions that become visible event by event; refusals, and an operator who
// unparks. In the end nothing is lost, nothing invented, the first occurrences of each group are in the order of its commits, and an
// event is there twice only where two of its sends were five minutes apart.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	outboxstorm.NoProblem(t, storm)
}

// Each of these is seen in some run.
func TestEverythingAtOnceSees(t *testing.T) {
	t.Parallel()
	outboxstorm.Sees(t, storm, outboxstorm.BlindPark, outboxstorm.Payloads, outboxstorm.EarlyDelete)
}

// storm runs a plan over the reference store.
func storm(t *testing.T, p outboxstorm.Plan) (problem string) {
	synctest.Test(t, func(t *testing.T) {
		table := refstore.NewTable()
		problem = outboxstorm.Run(t.Context(), p, outboxstorm.World{
			Source: refstore.Source,
			Commit: func(es []fifo.Event, _ int64) func() { return table.Half(es...) },
			Open: func(*outboxstorm.Process) outbox.Store {
				s := table.Open()
				switch {
				case p.Defect == outboxstorm.BlindPark:
					s.Defect = "parks blindly"
				case p.Seed%2 == 0: // as on DynamoDB, where nothing keeps relays from the same work
					s.Defect = "claims what is claimed for nobody"
				}
				return s
			},
			Left: func(group string) (ids []string) {
				for _, e := range table.Events(group) {
					ids = append(ids, e.ID)
				}
				return ids
			},
		})
	})
	return problem
}
