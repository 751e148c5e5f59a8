package dynamostore

import (
	"context"
	"maps"
	"time"

	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/dedup/internal/counter"
	"github.com/sqsonce/sqsonce/internal/counting"
	"github.com/sqsonce/sqsonce/limit"
)

// keyCounter is what NewCounter returns.
type keyCounter struct {
	slots
	store  *Store
	memory counter.Memory
}

type slots = counter.Slots

var _ limit.Counter = (*keyCounter)(nil)

// NewCounter returns a [limit.Counter] in the table of s. It is safe for concurrent use.
//
// A key is one item, limit/ and the key, and a slot is a record of the store. Both are listed under the consumer
// limit/NAME of a rule. Every call is an UpdateItem: a take or a place of a key that is known costs one write unit, a
// refusal one more, and an acquire, a renewal and a release of a slot one each. The role needs dynamodb:UpdateItem, as
// for records.
//
// # Clocks
//
// Tokens have their times on DynamoDB's clock, which the counter knows from the Date of the answers to a part of a
// second. A grant's times are late by that part at most, whatever a host's clock is set to. The first take of a
// process, and the one after its clock has jumped, sends a request more.
//
// # Retries
//
// A take whose answer is lost is sent again, and takes other tokens: those of the first are wasted. An operator who
// deletes the item of a key resets it, so that a full burst is granted at once.
func NewCounter(s *Store) limit.Counter {
	return &keyCounter{slots: slots{Store: s, Package: "dynamostore"}, store: s}
}

// The attributes of a key, in microseconds of the epoch.
const (
	attrTat  = "tat"  // N, time of the next token + the tolerance of a burst
	attrLine = "line" // N, the next place in the line
)

const (
	// counterRequests limits the answered requests of a call. The second one has the item that refused the first.
	counterRequests = 4
	// wideClock is how little may be known of DynamoDB's clock. A process that was frozen, or whose clock jumped, asks
	// first: a take whose time is an hour ahead would let the key wait for an hour.
	wideClock = 3 * time.Second
	// keptFor is the least retention of a key's item after a take. A line is shorter: SQS hides a message for 12 h at
	// most.
	keptFor = 24 * time.Hour
)

const (
	// What makes the item a released record.
	asRecord = ", #status=:p, #in_progress_expiration=:zero, #owner=:limit, #fence=:zero"

	moveTat  = "SET #tat=#tat + :span, #expiration=:exp" + asRecord
	startTat = "SET #tat=:tat, #expiration=:exp" + asRecord
	// A place doesn't shorten the retention of the tokens.
	setLine = ", #tat=if_not_exists(#tat, :now), #expiration=if_not_exists(#expiration, :exp)" + asRecord

	// Both move tat forward. A copy that comes late, or twice, takes tokens that nobody uses. An item without a tat is
	// another program's, and is refused.
	isBusy = "#tat BETWEEN :floor AND :latest"
	isIdle = "(attribute_not_exists(#id) OR #tat < :floor)"
	// Only those who have waited take tokens behind a longer line.
	isShortLine = " AND (attribute_not_exists(#line) OR #line <= :short)"
)

var (
	// By whether the line matters.
	takeBusyExpr = map[bool]expression{true: newExpression(moveTat, isBusy+isShortLine), false: newExpression(moveTat, isBusy)}
	takeIdleExpr = map[bool]expression{true: newExpression(startTat, isIdle+isShortLine), false: newExpression(startTat, isIdle)}

	// A place is behind the line, behind the tokens that are taken, or the first one.
	lineBehindLineExpr  = newExpression("SET #line=#line + :span"+setLine, "#line >= :now AND #line >= #tat")
	lineBehindTokenExpr = newExpression("SET #line=#tat + :span"+setLine, "#tat >= :now AND (attribute_not_exists(#line) OR #line < #tat)")
	lineExpr            = newExpression("SET #line=:place"+setLine,
		"(attribute_not_exists(#id) OR #tat < :now) AND (attribute_not_exists(#line) OR #line < :now)")
)

// Take implements [limit.Counter].
func (c *keyCounter) Take(ctx context.Context, t counting.Take) (counting.Grant, error) {
	a, err := counter.NewAsk("dynamostore", t)
	if err == nil {
		err = checkKey("Take.Key", a.Key)
	}
	if err != nil {
		return counting.Grant{}, err
	}
	guess := counter.State{Tat: c.memory.Guess(a.Key)}
	var g counting.Grant
	err = c.ask(ctx, "take", a.Key, func(sent time.Time, now int64, found *schedule) *keyUpdate {
		s := guess
		if found != nil {
			s = found.at(now)
		}
		n, ok := a.Try(s, found != nil)
		if !ok {
			lag := a.Lag(s)
			c.memory.Learn(a.Key, sent, lag, lag)
			g = a.Refused(lag, s.Line)
			return nil
		}
		u := takeUpdate(a, now, n, s)
		u.done = func(after schedule) {
			span := int64(n) * a.Step
			c.memory.Learn(a.Key, sent, after.tat-span-now, after.tat-now)
			if n == 0 {
				g = a.Refused(after.tat-now, after.line-now)
			} else {
				g = a.Granted(n, after.tat-span-c.store.clock.earliest())
			}
		}
		return u
	})
	return g, err
}

// takeUpdate takes n tokens of a key that is probably in the state s. Without a token it moves the key's tokens for a
// pause.
func takeUpdate(a counter.Ask, now int64, n int, s counter.State) *keyUpdate {
	span, floor := int64(n)*a.Step, now+a.Floor
	tat := floor + span
	v := values{":floor": number(floor)}
	short, hasLine := a.MostLine()
	hasLine = hasLine && n > 0
	if hasLine {
		v[":short"] = number(now + short)
	}
	if n == 0 || s.Tat < a.Floor {
		v[":tat"] = number(tat)
		return &keyUpdate{expression: takeIdleExpr[hasLine], values: v, until: tat}
	}
	latest := now + a.MostLag(n)
	v[":span"], v[":latest"] = number(span), number(latest)
	return &keyUpdate{expression: takeBusyExpr[hasLine], values: v, until: latest + span}
}

// Line implements [limit.Counter].
func (c *keyCounter) Line(ctx context.Context, key string, n int, step time.Duration) (time.Duration, error) {
	record := counter.RecordKey(key)
	span, err := counter.Span("dynamostore", key, n, step)
	if err == nil {
		err = checkKey("key", record)
	}
	if err != nil {
		return 0, err
	}
	guess := counter.State{Tat: c.memory.Guess(record), Line: c.memory.Guess(lineOf + record)}
	var first time.Duration
	err = c.ask(ctx, "line", record, func(sent time.Time, now int64, found *schedule) *keyUpdate {
		s := guess
		if found != nil {
			s = found.at(now)
		}
		u := &keyUpdate{expression: lineExpr, values: values{":now": number(now)}, until: now + max(s.Line, s.Tat, 0) + span}
		switch {
		case s.Line >= max(s.Tat, 0):
			u.expression, u.values[":span"] = lineBehindLineExpr, number(span)
		case s.Tat >= 0:
			u.expression, u.values[":span"] = lineBehindTokenExpr, number(span)
		default:
			u.values[":place"] = number(now + span)
		}
		u.done = func(after schedule) {
			c.memory.Learn(lineOf+record, sent, after.line-span-now, after.line-now)
			first = counter.Duration(after.line - span - c.store.clock.earliest())
		}
		return u
	})
	return first, err
}

// lineOf and a key is the name of its line in the memory.
const lineOf = "line of "

// keyUpdate is an update of a key's item.
type keyUpdate struct {
	expression
	values values
	until  int64                // the tat, or the end of the line, after it
	done   func(after schedule) // called when it is written; nil: go on
}

// notOnce is refused by every item, and brings it with DynamoDB's time.
var notOnce = &keyUpdate{expression: takeBusyExpr[false], values: values{":floor": number(0), ":latest": number(0), ":span": number(1)}}

// ask sends the update that next returns for the item that refused the last one, or nil. It ends when one is written,
// or next returns nil.
func (c *keyCounter) ask(ctx context.Context, op, key string, next func(sent time.Time, now int64, found *schedule) *keyUpdate) error {
	s := c.store
	var found *schedule
	for n := range counterRequests {
		now, width := s.clock.latest()
		u := notOnce
		if s.clock.known() && (width < wideClock || n > 0) {
			if u = next(time.Now(), now, found); u == nil {
				return nil
			}
		}
		in := s.updateInput(key, u.expression, u.item(now))
		in.ReturnValues = ddbtypes.ReturnValueAllNew
		written, refusal, err := s.write(ctx, in)
		if err == nil {
			err = s.checkTime()
		}
		if err != nil {
			return s.explain(op, err)
		}
		if refusal != nil {
			written = refusal.Item
		}
		is, err := decodeSchedule(written)
		switch {
		case err != nil:
			return s.explain(op, err)
		case refusal == nil && u.done != nil:
			u.done(is)
			return nil
		}
		found = &is
	}
	return s.explain(op, errContended)
}

// item are the update's values, with those that make the item a record.
func (u *keyUpdate) item(now int64) values {
	v := maps.Clone(u.values)
	v[":p"], v[":zero"], v[":limit"] = inProgressValue, number(0), text(counter.Owner)
	end := max(u.until+counter.Retention.Microseconds(), now+keptFor.Microseconds())
	v[":exp"] = number(end/time.Second.Microseconds() + 1)
	return v
}

// schedule is a key's item, in microseconds of the epoch. Without an item all of it is in the past.
type schedule struct{ tat, line int64 }

func decodeSchedule(found item) (schedule, error) {
	d := decoder{item: found}
	tat := d.number(attrTat)
	if tat == nil && len(found) > 0 {
		d.fail(attrTat, "there")
	}
	return schedule{tat: valueOf(tat), line: valueOf(d.number(attrLine))}, d.err
}

func (is schedule) at(now int64) counter.State {
	return counter.State{Tat: is.tat - now, Line: is.line - now}
}
