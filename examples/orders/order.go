// Package orders is the example: one handler that books order events into a ledger and tells an outside system, run
// unchanged by every host. The commands below it are its mains: worker, publish and demo.
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
	ID       string    `json:"id"`      // of the event, not of the order: ord-10042/placed
	Type     string    `json:"type"`    // order.placed, order.refunded
	Account  string    `json:"account"` // whose ledger it is booked in, and the message group
	Order    string    `json:"order"`
	Amount   int64     `json:"amount"` // in cents; negative for a refund
	Currency string    `json:"currency"`
	At       time.Time `json:"at"`
	Review   string    `json:"review,omitempty"` // how long a person looks at it: a slow handler
	Lines    []Line    `json:"lines,omitempty"`
}

// Line is one article of an order.
type Line struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
	Price    int64  `json:"price"`
}

// Event is a line of a file of orders: the order and the very bytes to publish.
type Event struct {
	Order
	Body string
}

// ReadFile reads a file of orders, one JSON object a line.
func ReadFile(path string) ([]Event, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	var events []Event
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20) // the longest body SQS takes
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
