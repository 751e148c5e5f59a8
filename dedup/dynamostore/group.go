package dynamostore

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// maxStatements is DynamoDB's limit for a BatchExecuteStatement.
const maxStatements = 25

// group gathers the statements of deliveries that are at work at the same time into shared calls. A statement waits for
// at most the linger; a batch that is full goes at once, beside those that are out already.
//
// Nothing runs while nothing waits: the first statement of a batch starts a timer, and the batch is sent on the timer's
// goroutine or, when it is full, on one of its own. A process that is frozen while a batch waits sends it when it is
// thawed; see send for what is left out of it then.
type group struct {
	store  *Store
	size   int
	linger time.Duration
	texts  statements
	logger *slog.Logger
	off    atomic.Bool // by option, or since the role is not allowed to use statements

	mu   sync.Mutex
	open *batch // the one that waits, or nil
}

type batch struct {
	statements []*statement
	timer      *time.Timer
}

// await waits for what became of a statement. A caller whose context ends takes back what was not sent. After that an
// acquire waits for the answer, since a lease that was granted must be released; a complete is done, or is not, whoever
// waits.
func (g *group) await(ctx context.Context, st *statement) verdict {
	select {
	case v := <-st.answers:
		return v
	case <-ctx.Done():
	}
	if g.withdraw(st) {
		return left
	}
	if st.until == 0 {
		return inDoubt
	}
	return <-st.answers
}

// join has the statement written together with others. It reports false where it has to go by itself: two statements of
// one key would have the whole call refused.
func (g *group) join(st *statement) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	b := g.open
	if b == nil {
		b = &batch{}
		g.open = b
		b.timer = time.AfterFunc(g.linger, func() {
			if g.close(b) {
				g.send(b)
			}
		})
	}
	for _, other := range b.statements {
		if other.key == st.key {
			return false
		}
	}
	st.batch = b
	b.statements = append(b.statements, st)
	if len(b.statements) == g.size {
		g.open = nil
		b.timer.Stop()
		go g.send(b)
	}
	return true
}

// close takes the batch out of the way of those that come later. It reports false where it was full, or empty, before
// its time.
func (g *group) close(b *batch) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open != b {
		return false
	}
	g.open = nil
	return true
}

func (g *group) withdraw(st *statement) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	b := g.open
	if b == nil || st.batch != b {
		return false
	}
	for i, other := range b.statements {
		if other == st {
			b.statements = append(b.statements[:i], b.statements[i+1:]...)
			break
		}
	}
	if len(b.statements) == 0 {
		g.open = nil
		b.timer.Stop()
	}
	return true
}

// send sends a batch once, on no caller's context, and gives each statement its verdict.
//
// An acquire whose lease is over by now is left out: the process may have been frozen since it came, and a lease that
// was over when it was written would look like a crash. One that is left by itself is sent by its caller, as the
// conditional update, which is one call too and takes over what an INSERT cannot.
func (g *group) send(b *batch) {
	var going []*statement
	for _, st := range b.statements {
		if st.until != 0 && !g.store.clock.ahead(st.until) {
			st.answers <- late
			continue
		}
		going = append(going, st)
	}
	if len(going) < 2 || g.off.Load() {
		answer(going, alone)
		return
	}
	in := &dynamodb.BatchExecuteStatementInput{
		Statements:             make([]ddbtypes.BatchStatementRequest, len(going)),
		ReturnConsumedCapacity: ddbtypes.ReturnConsumedCapacityTotal,
	}
	for i, st := range going {
		in.Statements[i] = ddbtypes.BatchStatementRequest{Statement: aws.String(st.text), Parameters: st.values}
	}
	var out *dynamodb.BatchExecuteStatementOutput
	o, err := g.store.attempt(context.Background(), 0, func(ctx context.Context, single func(*dynamodb.Options)) (err error) {
		out, err = g.store.client.BatchExecuteStatement(ctx, in, single)
		return err
	})
	g.store.meter.batch(len(going))
	switch {
	case o == unknown:
		answer(going, inDoubt)
	case o == unwritten:
		answer(going, transient)
	case err != nil:
		g.refusedWhole(err)
		g.store.meter.fallback(len(going))
		answer(going, alone)
	case len(out.Responses) != len(going):
		// Whose answer is missing cannot be told.
		answer(going, inDoubt)
	default:
		g.store.meter.wrote(out.ConsumedCapacity...)
		g.judge(going, out.Responses)
	}
}

func answer(to []*statement, v verdict) {
	for _, st := range to {
		st.answers <- v
	}
}

func (g *group) judge(to []*statement, responses []ddbtypes.BatchStatementResponse) {
	for i, st := range to {
		e := responses[i].Error
		v := verdictOf(e)
		if v == alone {
			g.store.meter.fallback(1)
		}
		if e != nil && e.Code == ddbtypes.BatchStatementErrorCodeEnumAccessDenied {
			g.disable(string(e.Code))
		}
		st.answers <- v
	}
}

// noStatements are the refusals by which the table can be used, if at all, by single calls only.
var noStatements = map[string]bool{
	"AccessDenied": true, "AccessDeniedException": true,
	"UnknownOperationException": true, // an emulator, or a proxy, that knows no PartiQL
}

func (g *group) refusedWhole(err error) {
	if api, ok := errors.AsType[smithy.APIError](err); ok && noStatements[api.ErrorCode()] {
		g.disable(api.ErrorCode())
	}
}

// disable goes back to single calls for the store's life, and says so once.
func (g *group) disable(code string) {
	if g.off.CompareAndSwap(false, true) {
		g.logger.Warn("dynamostore: no group commit: the role may not use statements (dynamodb:PartiQLInsert, dynamodb:PartiQLUpdate)",
			slog.String("table", g.store.table), slog.String("code", code))
	}
}
