// Package orders is an example: a handler that books order events in a ledger and calls an external system. The commands in
// its folders run it: worker and lambda with records in DynamoDB, sqlorders and redisorders with another store. The command
// publish sends the events, and demo runs them all.
package orders

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Order is the body of an event.
type Order struct {
	ID       string    `json:"id"`      // the event's ID, not the order's: ord-10042/placed
	Type     string    `json:"type"`    // order.placed, order.refunded
	Account  string    `json:"account"` // account of the ledger, and message group
	Order    string    `json:"order"`
	Amount   int64     `json:"amount"` // in cents; negative for a refund
	Currency string    `json:"currency"`
	At       time.Time `json:"at"`
	Review   string    `json:"review,omitempty"` // how long a person reviews it, as time.Duration prints it
	Lines    []Line    `json:"lines,omitempty"`
}

// Line is one article of an order.
type Line struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
	Price    int64  `json:"price"`
}

// Event is a line of a file of orders: the order, and the line as the body to publish.
type Event struct {
	Order
	Body string
}

// ReadFile reads a file of orders, one JSON object on each line.
func ReadFile(path string) ([]Event, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // it is only read
	var events []Event
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20) // the largest body that SQS accepts
	for lines.Scan() {
		e := Event{Body: lines.Text()}
		if err := json.Unmarshal(lines.Bytes(), &e.Order); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, len(events)+1, err)
		}
		events = append(events, e)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return events, nil
}
