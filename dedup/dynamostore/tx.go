package dynamostore

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// maxWrites is the most writes of a [Tx]. DynamoDB's limit for a transaction is 100, and the event's record is one of them.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
const maxWrites = 99

// These errors are the problems of the writes of a [Tx]. The inbox finds each before it sends the request, with one
// exception: if two Puts write the same item of a table, and the transaction's other writes don't name that table's key,
// DynamoDB finds errSameItem.
var (
	errTooManyWrites = errors.New("a transaction takes at most 99 writes")
	errSameItem      = errors.New("the transaction has another write of the same item")
	errNoWrite       = errors.New("the write is nil, or has no table or key")
)

// writeError says which write of a [Tx] can't be sent. The transaction was not written.
type writeError struct {
	Index int // in the order of the calls to the Tx, from 0, or -1 if DynamoDB doesn't say which write it is
	Err   error
}

func (e *writeError) Error() string {
	if e.Index < 0 {
		return fmt.Sprintf("dynamostore: transaction: %v", e.Err)
	}
	return fmt.Sprintf("dynamostore: transaction: write %d: %v", e.Index, e.Err)
}

func (e *writeError) Unwrap() error { return e.Err }

// Tx collects the writes of a handler that have their effect exactly once. The inbox sends them after the handler has
// returned nil, so the methods of Tx can't fail. Don't change the item, key and values of a write after the call. Tx is
// safe for concurrent use while the handler runs. It ignores and logs a write that comes later.
type Tx struct {
	mu     sync.Mutex
	writes []ddbtypes.TransactWriteItem
	closed bool
	onLate func() // logs a write that came after the handler had returned
}

// Put adds a PutItem.
func (t *Tx) Put(p *ddbtypes.Put) { t.add(ddbtypes.TransactWriteItem{Put: copyOf(p)}) }

// Update adds an UpdateItem.
func (t *Tx) Update(u *ddbtypes.Update) { t.add(ddbtypes.TransactWriteItem{Update: copyOf(u)}) }

// Delete adds a DeleteItem.
func (t *Tx) Delete(d *ddbtypes.Delete) { t.add(ddbtypes.TransactWriteItem{Delete: copyOf(d)}) }

// ConditionCheck adds a condition on an item that isn't written.
func (t *Tx) ConditionCheck(c *ddbtypes.ConditionCheck) {
	t.add(ddbtypes.TransactWriteItem{ConditionCheck: copyOf(c)})
}

// copyOf copies a caller's struct: the caller may use it again for the next write, and addressOf changes the copy.
func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

func (t *Tx) add(w ddbtypes.TransactWriteItem) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		t.onLate()
		return
	}
	t.writes = append(t.writes, w)
}

// close returns the collected writes. A write that a goroutine of the handler adds later is in no transaction.
func (t *Tx) close() []ddbtypes.TransactWriteItem {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	return t.writes
}

// address is the item that a write is about.
type address struct {
	table string
	key   map[string]ddbtypes.AttributeValue // nil for a Put
	item  map[string]ddbtypes.AttributeValue // of a Put
}

// addressOf returns the item of a write, and false if the write has none. It makes the write return the item if its
// condition fails, unless the caller has chosen otherwise.
func addressOf(w ddbtypes.TransactWriteItem) (address, bool) {
	const allOld = ddbtypes.ReturnValuesOnConditionCheckFailureAllOld
	var a address
	var returns *ddbtypes.ReturnValuesOnConditionCheckFailure
	switch {
	case w.Put != nil:
		a, returns = address{table: aws.ToString(w.Put.TableName), item: w.Put.Item}, &w.Put.ReturnValuesOnConditionCheckFailure
	case w.Update != nil:
		a, returns = address{table: aws.ToString(w.Update.TableName), key: w.Update.Key}, &w.Update.ReturnValuesOnConditionCheckFailure
	case w.Delete != nil:
		a, returns = address{table: aws.ToString(w.Delete.TableName), key: w.Delete.Key}, &w.Delete.ReturnValuesOnConditionCheckFailure
	case w.ConditionCheck != nil:
		a, returns = address{table: aws.ToString(w.ConditionCheck.TableName), key: w.ConditionCheck.Key}, &w.ConditionCheck.ReturnValuesOnConditionCheckFailure
	default:
		return address{}, false
	}
	if *returns == "" {
		*returns = allOld
	}
	return a, a.table != "" && len(a.key)+len(a.item) > 0
}

// checkWrites checks the writes against each other and against the event's record, which is one more item of the
// transaction.
func (s *Store) checkWrites(key string, writes []ddbtypes.TransactWriteItem) error {
	if len(writes) > maxWrites {
		return &writeError{Index: maxWrites, Err: errTooManyWrites}
	}
	items := make([]address, len(writes))
	keyNames := map[string][]string{s.table: {attrID}}
	for i, w := range writes {
		var ok bool
		if items[i], ok = addressOf(w); !ok {
			return &writeError{Index: i, Err: errNoWrite}
		}
		if a := items[i]; a.key != nil {
			keyNames[a.table] = slices.Sorted(maps.Keys(a.key))
		}
	}
	// The key of a Put is part of its item: another write of the same table says which attributes are the key.
	seen := map[string]bool{identity(address{table: s.table, key: values{attrID: text(key)}}, keyNames): true}
	for i, a := range items {
		id := identity(a, keyNames)
		if id == "" {
			continue
		}
		if seen[id] {
			return &writeError{Index: i, Err: errSameItem}
		}
		seen[id] = true
	}
	return nil
}

// identity is the same for two writes of the same item, and "" if it is not known.
func identity(a address, keyNames map[string][]string) string {
	if keyNames[a.table] == nil {
		return ""
	}
	from := a.key
	if from == nil {
		from = a.item
	}
	id := fmt.Sprintf("%q", a.table)
	for _, name := range keyNames[a.table] {
		switch v := from[name].(type) {
		case *ddbtypes.AttributeValueMemberS:
			id += fmt.Sprintf(" %q=S%q", name, v.Value)
		case *ddbtypes.AttributeValueMemberN:
			id += fmt.Sprintf(" %q=N%q", name, v.Value)
		case *ddbtypes.AttributeValueMemberB:
			id += fmt.Sprintf(" %q=B%q", name, v.Value)
		default:
			return ""
		}
	}
	return id
}
