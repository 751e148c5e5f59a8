package storetest

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/internal/field"
	"github.com/sqsonce/sqsonce/internal/suite"
)

// Attributes gives the cases access to records as they are stored.
type Attributes struct {
	// Of returns each attribute of the key's record, by DynamoDB's names of protocol.md, section 2. An attribute that the
	// protocol does not know keeps its own name. NULL and the empty text don't count as attributes. Of returns nil if the key
	// has no record. Required.
	Of func(ctx context.Context, s dedup.Store, key string) (map[string]string, error)
	// Commit are the attributes that the inbox's commit writes in addition to those of Complete.
	Commit []string
	// Foreign writes an expired record of Powertools with all attributes that Powertools knows.
	// Default: not set, for a store that does not read such records.
	Foreign func(ctx context.Context, s dedup.Store, key string) error
}

// attributeConsumer is the consumer of the keys of earlier states and operations.
const attributeConsumer = "storetest"

// earlierStates bring the record of a key into a state in which a delivery may acquire it.
var earlierStates = map[string]func(x *exam, key string){
	"no record": func(*exam, string) {},
	"released with an error": func(x *exam, key string) {
		x.release(x.acquire(x.claimOf(key)), errors.New("earlier"))
	},
	"crashed": func(x *exam, key string) {
		x.acquire(x.claimOf(key))
		x.expire(x.Lease)
	},
	"completed with a result and reopened": func(x *exam, key string) {
		x.complete(x.acquire(x.claimOf(key)), dedup.Result{Data: []byte("1"), Validation: "hash"})
		x.reopenKey(key)
	},
	"completed by Once and reopened": func(x *exam, key string) {
		x.handle(key, x.slow(nil), hashing)
		x.reopenKey(key)
	},
	"committed by an inbox and reopened": func(x *exam, key string) {
		x.handleInInbox(key, nil)
		x.reopenKey(key)
	},
	"of Powertools": func(x *exam, key string) {
		if x.Attributes.Foreign == nil {
			return
		}
		if err := x.Attributes.Foreign(x.ctx, x.Store, key); err != nil {
			x.fatalf("writing a record of Powertools: %v", err)
		}
	},
}

// attributeOperation is a delivery of which the handler returns an error or nil.
type attributeOperation struct {
	by      func(x *exam, h sqsonce.Handler) sqsonce.Handler // nil: an inbox with PayloadHash
	returns error
}

// attributeOperations are the ways in which a free record can change.
var attributeOperations = map[string]attributeOperation{
	"a handler that succeeds":                   {byOnce, nil},
	"a handler that succeeds, with PayloadHash": {byHashing, nil},
	"a handler that fails":                      {byOnce, errors.New("failed")},
	"a handler that skips the event":            {byOnce, sqsonce.Skip("void")},
	"Do":                                        {byDo, nil},
	"an inbox that commits":                     {nil, nil},
	"an inbox that fails":                       {nil, errors.New("failed")},
	"an inbox whose handler skips the event":    {nil, sqsonce.Skip("void")},
}

func byOnce(x *exam, h sqsonce.Handler) sqsonce.Handler { return x.once().Handler(h) }

func byHashing(x *exam, h sqsonce.Handler) sqsonce.Handler { return x.once(hashing).Handler(h) }

func byDo(x *exam, h sqsonce.Handler) sqsonce.Handler {
	return func(ctx context.Context, m *sqsonce.Message) error {
		_, err := dedup.Do(ctx, x.once(), m.Body, func(ctx context.Context) (string, error) { return "result", h(ctx, m) })
		return err
	}
}

// run returns the attributes that the record gets by the operation, in addition to the acquire's: those that the store was given. An
// inbox writes what a Once gives its store, and Commit.
func (o attributeOperation) run(x *exam, key string) []string {
	g := &given{Store: x.Store}
	once, h := *x, x.slow(o.returns)
	once.Store = g
	if o.by != nil {
		once.deliver(key, h, func(h sqsonce.Handler) sqsonce.Handler { return o.by(&once, h) })
		return g.names
	}
	x.needInbox()
	once.handle(key+", by Once", h, hashing)
	x.handleInInbox(key, o.returns)
	if o.returns == nil {
		return append(g.names, x.Attributes.Commit...)
	}
	return g.names
}

// given is a store that notes which attributes its complete or release was given.
type given struct {
	dedup.Store
	names []string
}

func (g *given) Complete(ctx context.Context, l dedup.Lease, r dedup.Result) error {
	if r.Data != nil {
		g.names = append(g.names, "data")
	}
	for _, f := range field.Texts {
		if _, ok := f.Of(r); ok {
			g.names = append(g.names, f.Name)
		}
	}
	return g.Store.Complete(ctx, l, r)
}

func (g *given) Release(ctx context.Context, l dedup.Lease, cause error) error {
	g.names = append(g.names, "error")
	return g.Store.Release(ctx, l, cause)
}

// attributeCases compare whole records: after each operation a record has the attributes that the operation allows and no
// other one, whatever the record was before.
var attributeCases = func() (cases []testCase) {
	for _, name := range slices.Sorted(maps.Keys(attributeOperations)) {
		op := attributeOperations[name]
		cases = append(cases, testCase{name: "attributes/" + name, run: func(x *exam) {
			x.needAttributes()
			for _, state := range slices.Sorted(maps.Keys(earlierStates)) {
				key := attributeConsumer + "#" + state + ", " + name
				earlierStates[state](x, key)
				want := acquired(x.attributes(key))
				x.hasExactly(key, state, append(want, op.run(x, key)...))
			}
		}})
	}
	return append(cases,
		testCase{name: "attributes/a handler that runs", run: func(x *exam) {
			x.needAttributes()
			for _, state := range slices.Sorted(maps.Keys(earlierStates)) {
				key := attributeConsumer + "#" + state
				earlierStates[state](x, key)
				want := acquired(x.attributes(key))
				var got map[string]string
				x.handle(key, func(ctx context.Context, _ *sqsonce.Message) (err error) {
					got, err = x.Attributes.Of(ctx, x.Store, key)
					return err
				})
				sameNames(state, got, want)
			}
		}},
		testCase{name: "attributes/reopen", run: func(x *exam) {
			x.needAttributes()
			for _, state := range slices.Sorted(maps.Keys(earlierStates)) {
				key := attributeConsumer + "#" + state
				earlierStates[state](x, key)
				before := x.attributes(key)
				if before == nil || before["owner"] == "" {
					continue // no record, or one of Powertools, which an operator deletes
				}
				x.reopenKey(key)
				x.hasExactly(key, state, append(acquired(before), "note"))
			}
		}},
		testCase{name: "attributes/retention over", hours: true, run: func(x *exam) {
			x.needAttributes()
			for name := range attributeOperations {
				x.complete(x.acquire(x.claimOf(attributeConsumer+"#"+name)), dedup.Result{Data: []byte("1"), Validation: "hash"})
			}
			x.advance(25*time.Hour + x.Grace)
			for name, op := range attributeOperations {
				if x.Inbox != nil || op.by != nil {
					key := attributeConsumer + "#" + name
					x.hasExactly(key, "completed, "+name, append(acquired(nil), op.run(x, key)...))
				}
			}
		}},
		testCase{name: "attributes/a refused acquire changes none", run: func(x *exam) {
			x.needAttributes()
			completed, running := attributeConsumer+"#completed", attributeConsumer+"#running"
			x.complete(x.acquire(x.claimOf(completed)), dedup.Result{Data: []byte("1"), Validation: "hash"})
			c := x.long("a")
			c.Key = running
			x.acquire(c)
			for _, key := range []string{completed, running} {
				before := x.attributes(key)
				c := x.claimOf(key)
				c.Owner = "other"
				if g := x.ask(c, "of a record that is not free"); g.Verdict == dedup.VerdictGranted {
					x.fatalf("Acquire of a record that is not free: got %+v, want it refused", g)
				}
				if after := x.attributes(key); !maps.Equal(before, after) {
					x.fatalf("record after a refused acquire: got %v, want %v", after, before)
				}
			}
		}})
}()

// acquired are the attributes after an acquire: it keeps the texts that are not of the result.
func acquired(before map[string]string) []string {
	names := []string{"id", "status", "owner", "fence", "in_progress_expiration", "expiration", "receive_count"}
	for _, f := range field.Texts {
		if !f.OfResult && before[f.Name] != "" {
			names = append(names, f.Name)
		}
	}
	return names
}

func hashing(o *dedup.Options) { o.PayloadHash = func(*sqsonce.Message) string { return "hash" } }

func (x *exam) needAttributes() {
	if x.Attributes == nil {
		suite.Unsupported("the harness cannot read attributes")
	}
	x.reopener()
}

func (x *exam) needInbox() {
	if x.Inbox == nil {
		suite.Unsupported("the store has no inbox")
	}
}

func (x *exam) attributes(key string) map[string]string {
	got, err := x.Attributes.Of(x.ctx, x.Store, key)
	if err != nil {
		x.fatalf("reading the attributes of %q: %v", key, err)
	}
	return got
}

func (x *exam) hasExactly(key, state string, want []string) {
	sameNames(state, x.attributes(key), want)
}

func sameNames(state string, record map[string]string, want []string) {
	slices.Sort(want)
	want = slices.Compact(want)
	if got := slices.Sorted(maps.Keys(record)); !slices.Equal(got, want) {
		suite.Failf("record that was %s before: got attributes %q, want %q", state, got, want)
	}
}

func (x *exam) claimOf(key string) dedup.Claim {
	c := x.claim("a")
	c.Key = key
	return c
}

func (x *exam) reopenKey(key string) {
	seen, err := x.reopener().Inspect(x.ctx, key)
	if err == nil {
		err = x.reopener().Reopen(x.ctx, seen, "note")
	}
	if err != nil && !errors.Is(err, dedup.ErrNotFound) {
		x.fatalf("Reopen of %q: got error %v, want nil", key, err)
	}
}

// slow is a handler that runs for a twentieth of a lease, because a store proves little if no time passes.
func (x *exam) slow(err error) sqsonce.Handler {
	return func(context.Context, *sqsonce.Message) error {
		x.advance(x.Lease / 20)
		return err
	}
}

// options make the message's body its event's key, and remember nothing.
func (x *exam) options(o *dedup.Options) {
	o.Key = func(m *sqsonce.Message) (string, error) { return m.Body, nil }
	o.CacheSize, o.LeaseDuration, o.Logger = -1, x.long("").Lease, slog.New(slog.DiscardHandler)
}

func (x *exam) once(optFns ...func(*dedup.Options)) *dedup.Once {
	o, err := dedup.New(x.Store, attributeConsumer, append([]func(*dedup.Options){x.options}, optFns...)...)
	if err != nil {
		x.fatalf("dedup.New: %v", err)
	}
	return o
}

func (x *exam) message(key string) *sqsonce.Message {
	return &sqsonce.Message{ID: "storetest", QueueARN: "arn:aws:sqs:us-east-1:0:q", ReceiveCount: 1, Body: strings.TrimPrefix(key, attributeConsumer+"#")}
}

// handle delivers the key's event to the handler, which must run.
func (x *exam) handle(key string, h sqsonce.Handler, optFns ...func(*dedup.Options)) {
	x.deliver(key, h, x.once(optFns...).Handler)
}

// handleInInbox delivers it to an inbox with PayloadHash.
func (x *exam) handleInInbox(key string, err error) {
	if x.Inbox == nil {
		return
	}
	x.deliver(key, x.slow(err), func(h sqsonce.Handler) sqsonce.Handler { return x.inbox(h, hashing) })
}

func (x *exam) inbox(h sqsonce.Handler, optFns ...func(*dedup.Options)) sqsonce.Handler {
	guarded, err := x.Inbox(x.Store, attributeConsumer, h, append(optFns, x.options)...)
	if err != nil {
		x.fatalf("making the inbox: %v", err)
	}
	return guarded
}

func (x *exam) deliver(key string, h sqsonce.Handler, guard func(sqsonce.Handler) sqsonce.Handler) {
	var returned error
	ran := false
	err := guard(func(ctx context.Context, m *sqsonce.Message) error {
		ran = true
		returned = h(ctx, m)
		return returned
	})(x.ctx, x.message(key))
	if !ran || !errors.Is(err, returned) {
		x.fatalf("delivery of %q: ran %v, got error %v, want a run and %v", key, ran, err, returned)
	}
}
