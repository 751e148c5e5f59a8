package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce/internal/stack"
)

// maxStatements is DynamoDB's limit for a BatchExecuteStatement.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchExecuteStatement.html
const maxStatements = 25

// batcher gathers the statements of concurrent deliveries in batches (group commit). A statement waits at most for the
// linger. A full batch is sent at once, also while others are under way.
//
// The first statement of a batch starts a timer. The batch is sent on the timer's goroutine or, when it is full, on a
// goroutine of its own. While statements don't wait, the batcher has no goroutine. A process that is frozen while a batch
// waits sends it when it is thawed. See send for the statements that it then leaves out.
type batcher struct {
	store  *Store
	size   int
	linger time.Duration
	texts  statementTexts
	logger *slog.Logger
	never  bool         // by option, or since PartiQL does not take the table's ARN
	denied atomic.Int64 // until when batches are off, in nanoseconds of the host's monotonic clock; 0: never refused

	mu   sync.Mutex
	open *batch // accepts more statements, or nil if none waits
}

type batch struct {
	statements []*statement
	timer      *time.Timer
	done       chan struct{} // closed when every statement has its result
}

// add puts the statement into the open batch. It reports false if the statement has to be sent singly: DynamoDB
// refuses a whole batch that has two statements of one key.
func (b *batcher) add(st *statement) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	open := b.open
	if open == nil {
		open = &batch{statements: make([]*statement, 0, b.size), done: make(chan struct{})}
		b.open = open
		open.timer = time.AfterFunc(b.linger, func() {
			if b.close(open) {
				b.send(open)
			}
		})
	}
	for _, other := range open.statements {
		if other.key.Value == st.key.Value {
			return false
		}
	}
	st.batch = open
	open.statements = append(open.statements, st)
	if len(open.statements) == b.size {
		b.open = nil
		open.timer.Stop()
		go b.send(open)
	}
	return true
}

// close makes the next statement start another batch. It reports false if the batch is not open any more: it was
// full, or its last statement was withdrawn.
func (b *batcher) close(open *batch) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open != open {
		return false
	}
	b.open = nil
	return true
}

// await waits for the statement's result. Where ctx ends, a statement that was not sent is withdrawn.
func (b *batcher) await(ctx context.Context, st *statement) statementResult {
	select {
	case <-st.batch.done:
		return st.result
	case <-ctx.Done():
	}
	if b.withdraw(st) {
		return withdrawn
	}
	return underWay
}

// withdraw takes a statement out of the open batch. It reports false if the batch was sent.
func (b *batcher) withdraw(st *statement) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	open := b.open
	if open == nil || st.batch != open {
		return false
	}
	for i, other := range open.statements {
		if other == st {
			open.statements = append(open.statements[:i], open.statements[i+1:]...)
			break
		}
	}
	if len(open.statements) == 0 {
		b.open = nil
		open.timer.Stop()
	}
	return true
}

// send sends a batch once, on a context of its own, and gives each statement its result.
//
// It leaves out an acquire whose lease has ended by now. The process may have been frozen since the acquire was added, and
// a lease that has ended when it is written looks like a crash. Its result comes with those of the others. The caller sends the only statement of a batch singly. The
// conditional update is one request too, and it can take over, which an INSERT can't.
func (b *batcher) send(closed *batch) {
	defer close(closed.done)
	stack.Grow()
	sending := closed.statements[:0]
	for _, st := range closed.statements {
		if !st.completes && !b.store.clock.ahead(st.insert.until) {
			st.result = expired
			continue
		}
		sending = append(sending, st)
	}
	if len(sending) < 2 || b.off() {
		finishAll(sending, sentSingly)
		return
	}
	same := numbers{}
	in := &dynamodb.BatchExecuteStatementInput{
		Statements:             make([]ddbtypes.BatchStatementRequest, len(sending)),
		ReturnConsumedCapacity: ddbtypes.ReturnConsumedCapacityTotal,
	}
	for i, st := range sending {
		in.Statements[i] = st.request(&b.texts, same)
	}
	var out *dynamodb.BatchExecuteStatementOutput
	result, err := b.store.attempt(context.Background(), 0, func(ctx context.Context, options func(*dynamodb.Options)) (err error) {
		out, err = b.store.client.BatchExecuteStatement(ctx, in, options)
		return err
	})
	b.store.meter.batch(len(sending))
	switch {
	case result == unknown:
		finishAll(sending, unanswered)
	case result == unwritten:
		for _, st := range sending {
			st.why = err
		}
		finishAll(sending, transient)
	case err != nil: // the whole batch was refused
		if api, ok := errors.AsType[smithy.APIError](err); ok && noStatements[api.ErrorCode()] {
			b.disable(api.ErrorCode())
		}
		b.store.meter.fallback(len(sending))
		finishAll(sending, sentSingly)
	case len(out.Responses) != len(sending):
		finishAll(sending, unanswered) // it is not known which response is missing
	default:
		b.store.meter.wrote(out.ConsumedCapacity...)
		b.finish(sending, out.Responses)
	}
}

func finishAll(all []*statement, r statementResult) {
	for _, st := range all {
		st.result = r
	}
}

// finish gives each statement the result that its own response says.
func (b *batcher) finish(sent []*statement, responses []ddbtypes.BatchStatementResponse) {
	for i, st := range sent {
		e := responses[i].Error
		r := resultOf(e)
		if r == sentSingly {
			b.store.meter.fallback(1)
		}
		if e != nil && e.Code == ddbtypes.BatchStatementErrorCodeEnumAccessDenied {
			b.disable(string(e.Code))
		}
		if r == transient {
			st.why = fmt.Errorf("%s: %s", e.Code, aws.ToString(e.Message))
		}
		st.result = r
	}
}

// noStatements are the codes of refusals after which the table can be used by single requests only, if at all.
var noStatements = map[string]bool{
	"AccessDenied": true, "AccessDeniedException": true,
	"UnknownOperationException": true, // an emulator, or a proxy, that has no PartiQL
}

// deniedTime is how long batches are off after a refusal: a role may be changed, or a refusal may pass.
const deniedTime = 5 * time.Minute

// off reports whether every write is sent singly.
func (b *batcher) off() bool {
	until := b.denied.Load()
	return b.never || b.store.clock.look().mono.Nanoseconds() < until
}

// disable turns batches off for some time. It is logged the first time.
func (b *batcher) disable(code string) {
	if b.denied.Swap((b.store.clock.look().mono + deniedTime).Nanoseconds()) == 0 {
		b.logger.Warn("dynamostore: batches are off and every write is a request of its own: allow dynamodb:PartiQLInsert and dynamodb:PartiQLUpdate on the table",
			slog.String("table", b.store.table), slog.String("code", code), slog.Duration("tried_again_after", deniedTime))
	}
}

// peers are the other concurrent deliveries in this process: those that acquire a record or hold one. A statement waits
// for others only if there are peers. A worker with one slot, or a Lambda function with one message at a time, never
// waits.
//
// At most the eight latest owners are known. An owner that came before all of these, and has not left, has a slow
// handler, and a statement does not wait for it.
type peers struct {
	mu     sync.Mutex
	latest [8]peer
	next   int // is overwritten next if no entry is free
}

// peer is an owner, and the end of its lease. The end is needed for a holder that lost its lease, which doesn't call the
// store again.
type peer struct {
	owner string // empty: the entry is free
	until time.Time
}

func (p *peers) enter(owner string, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.find(owner)
	if e == nil {
		e = p.find("")
	}
	if e == nil {
		e = &p.latest[p.next]
		p.next = (p.next + 1) % len(p.latest)
	}
	*e = peer{owner, until}
}

func (p *peers) leave(owner string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.find(owner); e != nil {
		*e = peer{}
	}
}

func (p *peers) find(owner string) *peer {
	for i := range p.latest {
		if p.latest[i].owner == owner {
			return &p.latest[i]
		}
	}
	return nil
}

// others reports whether there is a peer of owner.
func (p *peers) others(owner string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.latest {
		if e := &p.latest[i]; e.owner != "" && e.owner != owner && e.until.After(now) {
			return true
		}
	}
	return false
}
