// Package memdynamodb is DynamoDB in memory, for tests and local runs: the JSON protocol over HTTP or as an
// http.RoundTripper under a real SDK client, with virtual time and faults.
//
// Every write is atomic and at once visible to every read, eventually consistent ones too. Tables and indexes are active
// from the moment they are made. TTL deletes only when [Server.SweepTTL] is called: AWS promises no more than "within a
// few days", so a test chooses the moment. What is not implemented is refused by name, never guessed.
package memdynamodb

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

// Options changes how a server behaves.
type Options struct {
	// Faults is what goes wrong. With FailEntries a BatchWriteItem or BatchGetItem leaves the entries unprocessed, a
	// TransactWriteItems or TransactGetItems is cancelled with the rule's Code as the reason of the entries (Default:
	// TransactionConflict), and a BatchExecuteStatement fails the statements with it. Default: nothing.
	Faults fault.Plan
	// Now is the server's clock: it decides about TTL and tokens and is the Date of answers. Default: time.Now.
	Now func() time.Time
}

// Server is one account in one region. It is safe for concurrent use. Create it inside the synctest bubble that uses it.
type Server struct {
	*awsjson.Server
	now func() time.Time

	// mu makes every operation one step: a transaction is seen whole or not at all, and a condition still holds when
	// its write is made. A lock for each table would need an order of locks for transactions, and buys nothing in tests.
	mu     sync.Mutex
	tables map[string]*table
	tokens tokens
}

// New starts a server.
func New(optFns ...func(*Options)) *Server {
	o := Options{Now: time.Now}
	for _, f := range optFns {
		f(&o)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{now: o.Now, tables: map[string]*table{}}
	s.Server = awsjson.New(awsjson.Service{
		Target:       "DynamoDB_20120810",
		Namespace:    "com.amazonaws.dynamodb.v20120810",
		InternalCode: "InternalServerError",
		CRC:          true,
		Operations:   s.operations(),
		Now:          o.Now,
	}, o.Faults)
	return s
}

func (s *Server) operations() map[string]awsjson.Operation {
	return map[string]awsjson.Operation{
		"CreateTable":           operation(s.createTable),
		"DescribeTable":         operation(s.describeTable),
		"DeleteTable":           operation(s.deleteTable),
		"ListTables":            operation(s.listTables),
		"UpdateTimeToLive":      operation(s.updateTimeToLive),
		"DescribeTimeToLive":    operation(s.describeTimeToLive),
		"GetItem":               operation(s.getItem),
		"PutItem":               operation(s.putItem),
		"UpdateItem":            operation(s.updateItem),
		"DeleteItem":            operation(s.deleteItem),
		"Query":                 operation(s.query),
		"Scan":                  operation(s.scan),
		"BatchGetItem":          operation(s.batchGetItem),
		"BatchWriteItem":        operation(s.batchWriteItem),
		"TransactWriteItems":    operation(s.transactWriteItems),
		"TransactGetItems":      operation(s.transactGetItems),
		"ExecuteStatement":      operation(s.executeStatement),
		"BatchExecuteStatement": operation(s.batchExecuteStatement),
	}
}

// call is one request under way: the fault that is its own business, and what it costs.
type call struct {
	rule *fault.Rule
	cost awsjson.Cost
}

// operation reads the request and turns what f returns into an answer.
func operation[In any](f func(*call, *In) (any, error)) awsjson.Operation {
	return func(_ context.Context, body []byte, rule *fault.Rule) (any, awsjson.Cost, error) {
		c := &call{rule: rule, cost: awsjson.Cost{Entries: 1}}
		in := new(In)
		if err := json.Unmarshal(body, in); err != nil {
			return nil, c.cost, answerError(err)
		}
		out, err := f(c, in)
		if err != nil {
			return nil, c.cost, answerError(err)
		}
		return out, c.cost, nil
	}
}

// Items returns the items of a table in the order of Scan, as they are on the wire: {"id":{"S":"a"}}. It is for
// assertions; a table that does not exist has none.
func (s *Server) Items(tableName string) []json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	var items []json.RawMessage
	if t := s.tables[tableName]; t != nil {
		for _, p := range t.ordered() {
			for _, item := range p.items {
				raw, _ := item.MarshalJSON() // cannot fail
				items = append(items, raw)
			}
		}
	}
	return items
}
