package dynamostore

import (
	"errors"
	"fmt"
	"sync"

	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// MaxWrites is how many writes a [Tx] takes: DynamoDB's limit of 100 for a transaction, less the event's record.
const MaxWrites = 99

// What can be wrong with the writes of a [Tx]. Each is found before the call, but for ErrSameItem between two Puts into
// a table of which no other write names the key: that one DynamoDB refuses.
var (
	ErrTooManyWrites = errors.New("a transaction takes 99 writes")
	ErrSameItem      = errors.New("the transaction has another write of the same item")
	ErrNoWrite       = errors.New("the write is nil or names no table or key")
)

// WriteError says which write of a [Tx] cannot be sent. Nothing was written.
type WriteError struct {
	Index int // in the order of the calls, from 0; -1 where DynamoDB did not say which
	Err   error
}

func (e *WriteError) Error() string {
	if e.Index < 0 {
		return fmt.Sprintf("dynamostore: transaction: %v", e.Err)
	}
	return fmt.Sprintf("dynamostore: transaction: write %d: %v", e.Index, e.Err)
}

func (e *WriteError) Unwrap() error { return e.Err }

// Tx collects the writes that a handler wants to have their effect exactly once. Nothing is sent, and nothing can fail,
// before the handler has returned nil. A write's expressions are the handler's own; its item, key and values must not be
// changed after the call. It is safe for concurrent use while the handler runs.
type Tx struct {
	mu     sync.Mutex
	writes []ddbtypes.TransactWriteItem
	closed bool
	late   func() // told of a write that came after the handler had returned
}

// Put adds a PutItem.
func (t *Tx) Put(p *ddbtypes.Put) { t.add(ddbtypes.TransactWriteItem{Put: own(p)}) }

// Update adds an UpdateItem.
func (t *Tx) Update(u *ddbtypes.Update) { t.add(ddbtypes.TransactWriteItem{Update: own(u)}) }

// Delete adds a DeleteItem.
func (t *Tx) Delete(d *ddbtypes.Delete) { t.add(ddbtypes.TransactWriteItem{Delete: own(d)}) }

// ConditionCheck adds a condition on an item that is not written.
func (t *Tx) ConditionCheck(c *ddbtypes.ConditionCheck) {
	t.add(ddbtypes.TransactWriteItem{ConditionCheck: own(c)})
}

// own copies a caller's struct, which may be used again for the next write, and into which the answer's options go.
func own[T any](p *T) *T {
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
		t.late()
		return
	}
	t.writes = append(t.writes, w)
}

// close returns what the handler has collected. What a goroutine that it left behind adds later is in no transaction.
func (t *Tx) close() []ddbtypes.TransactWriteItem {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	return t.writes
}
