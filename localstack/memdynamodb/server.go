// Package memdynamodb is DynamoDB and its streams in memory, for tests and local runs. It speaks DynamoDB's JSON protocol over
// HTTP, or is the http.RoundTripper of a real SDK client. It works with virtual time and injects faults.
//
// Every write is atomic, and every later read sees it, eventually consistent reads too, except for a transaction that the fault
// HalfApplied delays. Tables and indexes are active from the moment they are created. Items expire only when you call
// [Server.SweepTTL]. AWS only promises "within a few days", so a test chooses the moment. The server keeps and describes
// throughput, encryption, table class and point-in-time recovery, without acting on them. It refuses operations and members of a
// request that it does not implement with an UnknownOperationException that names them. Error texts are those of October 2026, which
// some Regions do not have yet.
//
// A stream has its records at once, and keeps them for 24 hours by the clock. The order is that of AWS, by item only. Records of
// one transaction are in an order that Faults.Seed draws. A new stream has one shard, and [Server.ReplaceShards] makes others.
package memdynamodb

import (
	"cmp"
	"context"
	"encoding/json"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
	"github.com/sqsonce/sqsonce/localstack/internal/injector"
)

// Options configure [New].
type Options struct {
	// Faults are the faults to inject.
	//
	// FailEntries makes BatchWriteItem and BatchGetItem leave the entries unprocessed. It cancels TransactWriteItems and
	// TransactGetItems, with the rule's Code as the reason of the entries, and fails the statements of a BatchExecuteStatement
	// with that Code. Without a Code it is TransactionConflict.
	//
	// HalfApplied shows a transaction as AWS may show it between its decision and its last write. Query, Scan, GetItem and
	// BatchGetItem, consistent ones too, see the applied writes and not yet the rest. An item that is not yet applied, also one
	// that a Put is to create, refuses other writes and transactional reads with TransactionConflict. BatchWriteItem leaves it
	// unprocessed, and a repetition with the ClientRequestToken is a TransactionInProgressException. The time is that of Now.
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html
	//
	// Default: the empty plan.
	Faults fault.Plan
	// Now is the server's clock, for TTL, for ClientRequestTokens and for the Date of answers.
	// Default: time.Now.
	Now func() time.Time
	// Region is the Region in ARNs and stream records.
	// Default: "us-east-1".
	Region string
	// Account is the account ID in ARNs.
	// Default: "000000000000".
	Account string
	// NoRecord leaves Calls empty, for a server that runs for days.
	// Default: false.
	NoRecord bool
}

// Server is one AWS account in one region. It is safe for concurrent use. A test in a synctest bubble must call [New]
// inside the bubble.
type Server struct {
	*awsjson.Server
	now      func() time.Time
	region   string
	tableARN string // the part of its tables' ARNs before the name

	mu       sync.Mutex // of the two lists
	tables   map[string]*table
	streams  []*stream     // in the order of their creation
	sequence atomic.Uint64 // the last sequence number of a stream

	transactions sync.Mutex // one transaction writes at a time: it locks this after its tables
	tokens       tokens
	shuffle      *rand.Rand
}

const serviceName = "memdynamodb"

// New returns a server without tables. Close it to end the calls that wait in it.
func New(optFns ...func(*Options)) *Server {
	o := Options{Now: time.Now}
	for _, f := range optFns {
		f(&o)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Region, o.Account = cmp.Or(o.Region, "us-east-1"), cmp.Or(o.Account, "000000000000")
	s := &Server{
		now: o.Now, region: o.Region,
		tableARN: "arn:aws:dynamodb:" + o.Region + ":" + o.Account + ":table/",
		tables:   map[string]*table{}, shuffle: rand.New(rand.NewPCG(o.Faults.Seed, 0x73747265)),
	}
	s.Server = awsjson.New(awsjson.Service{
		Name:         serviceName,
		Target:       "DynamoDB_20120810",
		Namespace:    "com.amazonaws.dynamodb.v20120810",
		InternalCode: "InternalServerError",
		CRC:          true,
		Operations:   s.operations(),
		Others:       map[string]map[string]awsjson.Operation{"DynamoDBStreams_20120810": s.streamOperations()},
		Now:          o.Now,
		NoRecord:     o.NoRecord,
		State:        awsjson.State{Save: s.save, Load: s.load},
	}, o.Faults)
	return s
}

func (s *Server) operations() map[string]awsjson.Operation {
	return map[string]awsjson.Operation{
		"CreateTable":               operation(s.createTable),
		"UpdateTable":               operation(s.updateTable),
		"DescribeTable":             operation(s.describeTable),
		"DeleteTable":               operation(s.deleteTable),
		"ListTables":                operation(s.listTables),
		"UpdateTimeToLive":          operation(s.updateTimeToLive),
		"DescribeTimeToLive":        operation(s.describeTimeToLive),
		"TagResource":               operation(s.tagResource),
		"UntagResource":             operation(s.untagResource),
		"ListTagsOfResource":        operation(s.listTags),
		"UpdateContinuousBackups":   operation(s.updateContinuousBackups),
		"DescribeContinuousBackups": operation(s.describeContinuousBackups),
		"GetItem":                   operation(s.getItem),
		"PutItem":                   operation(s.putItem),
		"UpdateItem":                operation(s.updateItem),
		"DeleteItem":                operation(s.deleteItem),
		"Query":                     operation(s.query),
		"Scan":                      operation(s.scan),
		"BatchGetItem":              operation(s.batchGetItem),
		"BatchWriteItem":            operation(s.batchWriteItem),
		"TransactWriteItems":        operation(s.transactWriteItems),
		"TransactGetItems":          operation(s.transactGetItems),
		"ExecuteStatement":          operation(s.executeStatement),
		"BatchExecuteStatement":     operation(s.batchExecuteStatement),
	}
}

func (s *Server) streamOperations() map[string]awsjson.Operation {
	return map[string]awsjson.Operation{
		"ListStreams":      operation(s.listStreams),
		"DescribeStream":   operation(s.describeStream),
		"GetShardIterator": operation(s.getShardIterator),
		"GetRecords":       operation(s.getRecords),
	}
}

// call is one request, with the fault rule that applies to it, or nil, and its consumption.
type call struct {
	ctx  context.Context // ends when the server is closed
	rule *fault.Rule
	cost awsjson.Cost
}

// fails reports whether the call's fault rule fails the entry. Entries count from 0.
func (c *call) fails(entry int) bool {
	return c.rule != nil && c.rule.Do == fault.FailEntries && injector.Hits(c.rule, entry)
}

// operation reads the request for f, and gives the errors of f the codes that they have in DynamoDB.
func operation[In any](f func(*call, *In) (any, error)) awsjson.Operation {
	decode := decoder[In]()
	return func(ctx context.Context, r awsjson.Request, rule *fault.Rule) (any, awsjson.Cost, error) {
		c := &call{ctx: ctx, rule: rule, cost: awsjson.Cost{Entries: 1}}
		in := new(In)
		err := decode(r.Body, in)
		if err != nil {
			if _, one := any(in).(*writeInput); one {
				err = enveloped(err)
			}
			return nil, c.cost, toAWS(err)
		}
		out, err := f(c, in)
		if err != nil {
			return nil, c.cost, toAWS(err)
		}
		return out, c.cost, nil
	}
}

// decoder returns a function that reads a JSON object, and refuses members that the server does not have.
func decoder[In any]() func(body []byte, in *In) error {
	members := awsjson.MembersOf[In]()
	return func(body []byte, in *In) error {
		if known, err := members.Decode(body, in); known || err != nil {
			return err
		}
		if unknown := members.Unknown(body); unknown != "" {
			return unimplemented("the member " + unknown)
		}
		return nil
	}
}

// Items returns the items of a table in the order of Scan, for assertions. Each is in DynamoDB's JSON form: {"id":{"S":"a"}}. For
// a table that does not exist it returns nil, and for an empty table an empty slice.
func (s *Server) Items(tableName string) []json.RawMessage {
	t, err := s.table(tableName)
	if err != nil {
		return nil
	}
	defer t.mu.Unlock()
	items := make([]json.RawMessage, 0, t.rows.count)
	for e := range t.rows.all() {
		raw, _ := e.item.MarshalJSON() // returns no errors
		items = append(items, raw)
	}
	return items
}
