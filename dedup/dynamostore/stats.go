package dynamostore

import (
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Stats counts what a [Store] has done since New.
type Stats struct {
	// OwnRetries are acquires whose reply was lost and which were recognised when they came again.
	OwnRetries int64
	// ForeignRecords are records that a program which knows no owners has written, or has completed under an owner of this
	// store: met by an acquire, or found by a holder in the place of its own. A shared complete does not see whose the
	// record is that refused it.
	ForeignRecords int64
	// Batches are the shared calls; Statements / Batches is how full they were.
	Batches, Statements int64
	// Fallbacks are statements that were refused for a reason other than their own and sent again as single calls.
	Fallbacks int64
	// WriteUnits and ReadUnits are the capacity consumed, on demand the request units, of all answered calls. DynamoDB
	// says so itself, but for a write that its condition refused: that is counted by the size of the item, as DynamoDB
	// counts it. Not in it is what nobody is told: calls whose answer was lost, and cancelled transactions.
	WriteUnits, ReadUnits float64
}

// Stats returns what has been counted since New. Numbers of one moment need not add up while calls are under way.
func (s *Store) Stats() Stats {
	m := &s.meter
	return Stats{
		OwnRetries: m.ownRetries.Load(), ForeignRecords: m.foreign.Load(),
		Batches: m.batches.Load(), Statements: m.statements.Load(), Fallbacks: m.fallbacks.Load(),
		WriteUnits: float64(m.halfWrites.Load()) / 2, ReadUnits: float64(m.halfReads.Load()) / 2,
	}
}

// meter is Stats while it is counted.
type meter struct {
	ownRetries, foreign            atomic.Int64
	batches, statements, fallbacks atomic.Int64
	halfWrites, halfReads          atomic.Int64 // an eventually consistent read is half a unit
}

func (m *meter) batch(n int) {
	m.batches.Add(1)
	m.statements.Add(int64(n))
}

func (m *meter) fallback(n int) { m.fallbacks.Add(int64(n)) }

func (m *meter) wrote(all ...ddbtypes.ConsumedCapacity) { m.halfWrites.Add(halves(all)) }
func (m *meter) read(all ...ddbtypes.ConsumedCapacity)  { m.halfReads.Add(halves(all)) }

func halves(all []ddbtypes.ConsumedCapacity) (n int64) {
	for _, c := range all {
		n += int64(2 * aws.ToFloat64(c.CapacityUnits))
	}
	return n
}

// one is a call's consumption where there is any.
func one(c *ddbtypes.ConsumedCapacity) []ddbtypes.ConsumedCapacity {
	if c == nil {
		return nil
	}
	return []ddbtypes.ConsumedCapacity{*c}
}

// refusedWrite counts a write that was refused by its condition, of which DynamoDB says nothing: one unit for each
// started KB of the item that is there.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
func (m *meter) refusedWrite(item map[string]ddbtypes.AttributeValue) {
	m.halfWrites.Add(2 * int64(max(1, (itemSize(item)+1023)/1024)))
}
