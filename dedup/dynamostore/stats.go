package dynamostore

import (
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Stats counts the work of a [Store] since New.
//
// WriteUnits and ReadUnits are the units that DynamoDB bills. Prices are those of on-demand tables in us-east-1
// (https://aws.amazon.com/dynamodb/pricing/on-demand/): 0.625 dollars for a million write units, 0.125 for a million read
// units.
//
//	first delivery                    2 write units: acquire, complete, 1.25 dollars for a million
//	with an Inbox                     1 to acquire, 2 for the record in the transaction, and twice the handler's writes
//	duplicate                         1 write unit, in a batch 1 read unit more
//	duplicate known in this process   0: see dedup.Options.CacheSize
//	delivery after a failure          2, after 2 of the failed delivery: acquire, release
//	renewal                           1 for each third of the lease
//
// If a result makes the record larger than 1 KB, each write consumes a unit for each KB, also the write of a duplicate.
// docs/cost.md has the cost of a million events.
type Stats struct {
	// OwnRetries are acquires whose reply was lost, and which the record recognised when they were sent again.
	OwnRetries int64
	// ForeignRecords are records that were written, or completed under an owner of this store, by a program that doesn't
	// check ownership. An acquire has found them, or a holder in the place of its own record.
	ForeignRecords int64
	// Batches are the requests with several statements. Statements / Batches is how full they were.
	Batches, Statements int64
	// Fallbacks are statements that were refused for a reason other than their record, and were then sent singly.
	Fallbacks int64
	// WriteUnits and ReadUnits are the capacity units, on demand the request units, that all answered requests consumed.
	// The numbers are DynamoDB's, except for a write that its condition refused. DynamoDB doesn't return a number for it,
	// and the store counts the size of the item. Requests whose answer was lost and cancelled transactions aren't counted.
	WriteUnits, ReadUnits float64
}

// Stats returns the counts since New. They needn't be consistent with each other while calls are under way.
func (s *Store) Stats() Stats {
	m := &s.meter
	return Stats{
		OwnRetries: m.ownRetries.Load(), ForeignRecords: m.foreign.Load(),
		Batches: m.batches.Load(), Statements: m.statements.Load(), Fallbacks: m.fallbacks.Load(),
		WriteUnits: float64(m.halfWrites.Load()) / 2, ReadUnits: float64(m.halfReads.Load()) / 2,
	}
}

// Counts returns Stats by the names of its fields, for status.Options.Stores.
func (s *Store) Counts() map[string]float64 {
	c := s.Stats()
	return map[string]float64{
		"OwnRetries": float64(c.OwnRetries), "ForeignRecords": float64(c.ForeignRecords),
		"Batches": float64(c.Batches), "Statements": float64(c.Statements), "Fallbacks": float64(c.Fallbacks),
		"WriteUnits": c.WriteUnits, "ReadUnits": c.ReadUnits,
	}
}

// meter counts for Stats.
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

// one is the consumption of a request that has at most one.
func one(c *ddbtypes.ConsumedCapacity) []ddbtypes.ConsumedCapacity {
	if c == nil {
		return nil
	}
	return []ddbtypes.ConsumedCapacity{*c}
}

// refusedWrite counts a write that its condition refused, for which DynamoDB returns no consumption: one unit for each
// started KB of the item.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
func (m *meter) refusedWrite(item map[string]ddbtypes.AttributeValue) {
	m.halfWrites.Add(2 * int64(max(1, (itemSize(item)+1023)/1024)))
}

// itemSize is an item's size as DynamoDB counts it: names and values.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
func itemSize(item map[string]ddbtypes.AttributeValue) (n int) {
	for name, v := range item {
		n += len(name) + valueSize(v)
	}
	return n
}

// overhead of a list or map, and of each of its elements.
const (
	collectionOverhead = 3
	elementOverhead    = 1
)

func valueSize(v ddbtypes.AttributeValue) int {
	switch v := v.(type) {
	case *ddbtypes.AttributeValueMemberS:
		return len(v.Value)
	case *ddbtypes.AttributeValueMemberN:
		return numberSize(v.Value)
	case *ddbtypes.AttributeValueMemberB:
		return len(v.Value)
	case *ddbtypes.AttributeValueMemberSS:
		return len(strings.Join(v.Value, ""))
	case *ddbtypes.AttributeValueMemberNS:
		n := 0
		for _, x := range v.Value {
			n += numberSize(x)
		}
		return n
	case *ddbtypes.AttributeValueMemberBS:
		n := 0
		for _, x := range v.Value {
			n += len(x)
		}
		return n
	case *ddbtypes.AttributeValueMemberL:
		n := collectionOverhead
		for _, x := range v.Value {
			n += elementOverhead + valueSize(x)
		}
		return n
	case *ddbtypes.AttributeValueMemberM:
		return collectionOverhead + len(v.Value)*elementOverhead + itemSize(v.Value)
	default: // a boolean, null
		return 1
	}
}

// numberSize is one byte, one more for every two digits and one for a minus. Digits pair up from the decimal point, and
// pairs of zeros at either end cost nothing.
func numberSize(s string) int {
	size := 1
	if rest, negative := strings.CutPrefix(s, "-"); negative {
		s, size = rest, 2
	}
	whole, fraction, _ := strings.Cut(s, ".")
	if len(whole)%2 == 1 {
		whole = "0" + whole
	}
	if len(fraction)%2 == 1 {
		fraction += "0"
	}
	digits := whole + fraction
	for strings.HasPrefix(digits, "00") {
		digits = digits[2:]
	}
	for strings.HasSuffix(digits, "00") {
		digits = digits[:len(digits)-2]
	}
	return size + len(digits)/2
}
