package hosttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/inboxkit"
	"github.com/sqsonce/sqsonce/internal/must"
)

// checker sees every start and end of the handler, in all processes, and checks the guarantees.
type checker struct {
	readRecord func(event string) record
	commits    bool // the effect is committed after the handler has returned nil: if that fails, the record is released

	mu       sync.Mutex
	runsOf   map[string][]*run   // by event
	running  map[*run]bool       // in live processes, until the delivery has ended
	order    map[string][]string // names of the events that succeeded, by group
	problems []string
}

// run is one start of the handler.
type run struct {
	event   string
	n       int // of the event, from 1
	process *process
	m       *sqsonce.Message
	begun   time.Time
	lease   dedup.Lease // at the start
	ctx     context.Context
	ended   time.Time // its return, in a live process
	failed  bool      // it returned an error, so its record is released; after a success its lease goes on
	outcome sqsonce.OutcomeKind
	killed  bool // its process died before the delivery ended
	effect  bool // it had its effect, right before it returned nil
	expired bool // it had its effect after the end of its lease: the handler was abandoned and went on
}

func newChecker(readRecord func(string) record) *checker {
	return &checker{readRecord: readRecord, runsOf: map[string][]*run{}, running: map[*run]bool{}, order: map[string][]string{}}
}

func (c *checker) problemLocked(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

type deliveryKey struct{}

// delivery is one call of the handler with its record.
type delivery struct {
	p         *process
	m         *sqsonce.Message
	completed bool // the record, before the call
	run       *run // nil: none
}

// delivered wraps the handler that the host calls, outside dedup.
func (c *checker) delivered(p *process, h sqsonce.Handler) sqsonce.Handler {
	return func(ctx context.Context, m *sqsonce.Message) error {
		d := &delivery{p: p, m: m, completed: c.readRecord(m.Attributes[sqsonce.AttrEventID].String).completed()}
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.running, d.run)
		}()
		return h(context.WithValue(ctx, deliveryKey{}, d), m)
	}
}

// run runs a script, inside dedup.
func (c *checker) run(ctx context.Context, s script) (err error) {
	r := c.start(ctx)
	err = errNoReturn
	defer func() { c.end(r, err) }() // also after a panic or Goexit
	err = s(ctx, r)
	return err
}

var errNoReturn = errors.New("did not return")

// start checks that the handler may start.
func (c *checker) start(ctx context.Context) *run {
	d := ctx.Value(deliveryKey{}).(*delivery)
	event := d.m.Attributes[sqsonce.AttrEventID].String
	lease, _ := inboxkit.LeaseFrom(ctx)
	now := c.readRecord(event)
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &run{event: event, n: len(c.runsOf[event]) + 1, process: d.p, m: d.m, begun: time.Now(), lease: lease, ctx: ctx}
	if !d.p.alive() {
		return r // a dead process has no effect
	}
	if d.completed {
		c.problemLocked("%s: run %d started although the record was completed", event, r.n)
	}
	if !now.leasedTo(lease.Owner) {
		c.problemLocked("%s: run %d started without owning the record: %+v", event, r.n, now)
	}
	for _, other := range c.runsOf[event] {
		released := other.failed || c.commits && !other.ended.IsZero()
		if l, _ := inboxkit.LeaseFrom(other.ctx); !released && l.Until.After(r.begun) {
			c.problemLocked("%s: run %d started during the lease of run %d, which ends in %s", event, r.n, other.n, l.Until.Sub(r.begun))
		}
		if other.lease.Fence >= lease.Fence {
			c.problemLocked("%s: run %d has fence %d, run %d had %d", event, r.n, lease.Fence, other.n, other.lease.Fence)
		}
	}
	c.runsOf[event] = append(c.runsOf[event], r)
	d.run, c.running[r] = r, true
	return r
}

// kill ends a process and marks its runs.
func (c *checker) kill(p *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.died = time.Now()
	close(p.dead)
	for r := range c.running {
		if r.process == p {
			r.killed = true
			delete(c.running, r)
		}
	}
}

// end notes the return of the handler, unless its process is dead by then. With a success the handler had its effect.
func (c *checker) end(r *run, err error) {
	lease, _ := inboxkit.LeaseFrom(r.ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !r.process.alive() {
		return
	}
	r.ended, r.outcome = time.Now(), sqsonce.OutcomeOf(err).Kind
	if r.failed = err != nil; r.failed {
		return
	}
	r.effect, r.expired = true, !time.Now().Before(lease.Until)
	if !r.expired {
		g := groupOf(r.event)
		c.order[g] = append(c.order[g], r.event)
	}
}

// runs returns the runs of the handler for an event.
func (c *checker) runs(event string) []*run {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.runsOf[event])
}

// runsIn returns the runs in a process.
func (c *checker) runsIn(p *process) (in []*run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, all := range c.runsOf {
		for _, r := range all {
			if r.process == p {
				in = append(in, r)
			}
		}
	}
	return in
}

// report returns the violations.
func (c *checker) report() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.problems)
}

const ledger = "ledger"

func (w *fixture) createLedger() {
	must.Get(w.admin.ddb.CreateTable(context.Background(), &dynamodb.CreateTableInput{
		TableName: aws.String(ledger), BillingMode: ddbtypes.BillingModePayPerRequest,
		AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String("event"), AttributeType: "S"}},
		KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: aws.String("event"), KeyType: "HASH"}},
	}))(w)
}

// appendTo is an effect: it appends the event to the ledger's list of the lane.
func appendTo(lane, event string) *ddbtypes.Update {
	return &ddbtypes.Update{
		TableName:        aws.String(ledger),
		Key:              map[string]ddbtypes.AttributeValue{"event": &ddbtypes.AttributeValueMemberS{Value: lane}},
		UpdateExpression: aws.String("SET effects = list_append(if_not_exists(effects, :none), :event)"),
		ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{
			":none":  &ddbtypes.AttributeValueMemberL{},
			":event": &ddbtypes.AttributeValueMemberL{Value: []ddbtypes.AttributeValue{&ddbtypes.AttributeValueMemberS{Value: event}}},
		},
	}
}

// ledgerOrder returns the events of each lane in the order of their effects.
func (f *fleet) ledgerOrder() map[string][]string {
	out := map[string][]string{}
	for _, raw := range f.ddb.Items(ledger) {
		var item struct {
			Event   struct{ S string }               `json:"event"`
			Effects struct{ L []struct{ S string } } `json:"effects"`
		}
		if err := json.Unmarshal(raw, &item); err != nil {
			f.Errorf("ledger: %v", err)
		}
		for _, e := range item.Effects.L {
			out[item.Event.S] = append(out[item.Event.S], e.S)
		}
	}
	return out
}

func (f *fleet) fleetEffects() map[string]int {
	out := map[string]int{}
	for _, events := range f.ledgerOrder() {
		for _, e := range events {
			out[e]++
		}
	}
	return out
}
