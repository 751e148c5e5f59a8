package ddbtest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

// Front stands before a DynamoDB that someone else wrote and adds what tests need of one: fault plans, a record of
// calls, and the clock of the bubble it is made in, for the Date of answers and for [Front.SweepTTL]. It is used as
// memdynamodb.Server is, so that one test runs on both; what an operation does is the other's alone.
//
// The other's tables are everyone's: a name that two fronts use belongs to one of them at a time. Close deletes the
// tables that were created through the front.
type Front struct {
	*awsjson.Server
	line *Line

	mu     sync.Mutex
	tables map[string]bool // created through the front
}

// operations are those that a Front passes on.
var operations = []string{
	"CreateTable", "DescribeTable", "DeleteTable", "ListTables", "UpdateTimeToLive", "DescribeTimeToLive", "GetItem", "PutItem", "UpdateItem", "DeleteItem",
	"Query", "Scan", "BatchGetItem", "BatchWriteItem", "TransactWriteItems", "TransactGetItems", "ExecuteStatement", "BatchExecuteStatement",
}

// NewFront returns a front for the server at the other end of the line. Make it inside the bubble that uses it.
func NewFront(l *Line) *Front {
	f := &Front{line: l, tables: map[string]bool{}}
	s := awsjson.Service{Target: "DynamoDB_20120810", Namespace: "com.amazonaws.dynamodb.v20120810", InternalCode: "InternalServerError", CRC: true, Operations: map[string]awsjson.Operation{}}
	for _, op := range operations {
		s.Operations[op] = func(_ context.Context, body []byte, rule *fault.Rule) (any, awsjson.Cost, error) {
			if op == "TransactWriteItems" && rule != nil && rule.Do == fault.FailEntries {
				return nil, awsjson.Cost{}, cancel(body, rule)
			}
			return f.pass(op, body)
		}
	}
	f.Server = awsjson.New(s, fault.Plan{})
	return f
}

// Close ends the calls that are waiting, and deletes the front's tables.
func (f *Front) Close() {
	f.Server.Close()
	for _, name := range f.own() {
		f.must("DeleteTable", map[string]any{"TableName": name}, &struct{}{})
	}
}

func (f *Front) own() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.tables))
}

// follow keeps account of the tables.
func (f *Front) follow(op string, body []byte) {
	var in struct{ TableName string }
	if json.Unmarshal(body, &in) != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch op {
	case "CreateTable":
		f.tables[in.TableName] = true
	case "DeleteTable":
		delete(f.tables, in.TableName)
	}
}

// pass sends the request on and takes the answer apart. The capacity it consumed is always asked for: it is recorded.
func (f *Front) pass(op string, body []byte) (any, awsjson.Cost, error) {
	cost := awsjson.Cost{Entries: 1}
	var in map[string]json.RawMessage
	if json.Unmarshal(body, &in) == nil && in["ReturnConsumedCapacity"] == nil && !strings.Contains(op, "Table") && !strings.Contains(op, "TimeToLive") {
		in["ReturnConsumedCapacity"] = json.RawMessage(`"TOTAL"`)
		body, _ = json.Marshal(in) // it was JSON before
	}
	status, answer, err := f.line.call(op, body)
	if err != nil {
		return nil, cost, err
	}
	if status >= 300 {
		return nil, cost, refusal(status, answer)
	}
	f.follow(op, body)
	var out struct{ ConsumedCapacity json.RawMessage }
	_ = json.Unmarshal(answer, &out) // an answer that is no JSON is passed on as it is
	cost.Units = consumed(out.ConsumedCapacity)
	return json.RawMessage(answer), cost, nil
}

func consumed(raw json.RawMessage) (sum float64) {
	type capacity struct{ CapacityUnits float64 }
	var one capacity
	var many []capacity
	if json.Unmarshal(raw, &one) != nil && json.Unmarshal(raw, &many) != nil {
		return 0
	}
	for _, c := range append(many, one) {
		sum += c.CapacityUnits
	}
	return sum
}

// refusal is an error answer, to be encoded again as it was.
func refusal(status int, answer []byte) error {
	var fields map[string]any
	if err := json.Unmarshal(answer, &fields); err != nil {
		return fmt.Errorf("ddbtest: answer with status %d: %w", status, err)
	}
	e := &awsjson.Error{Status: status, Fields: fields}
	text, _ := fields["__type"].(string)
	_, e.Code, _ = strings.Cut(text, "#")
	for name, v := range fields {
		if s, ok := v.(string); ok && strings.EqualFold(name, "message") {
			e.Message = s
		}
	}
	maps.DeleteFunc(fields, func(name string, _ any) bool { return name == "__type" || strings.EqualFold(name, "message") })
	return e
}

// cancel is a transaction cancelled for the rule's reason.
func cancel(body []byte, rule *fault.Rule) error {
	var in struct{ TransactItems []json.RawMessage }
	if err := json.Unmarshal(body, &in); err != nil {
		return err
	}
	reasons := make([]map[string]string, len(in.TransactItems))
	for i := range reasons {
		reasons[i] = map[string]string{"Code": "None"}
		if rule.Hits(i) {
			reasons[i] = map[string]string{"Code": cmp.Or(rule.Code, "TransactionConflict"), "Message": "injected fault"}
		}
	}
	return &awsjson.Error{Code: cancelled, Message: "Transaction cancelled, please refer cancellation reasons for specific reasons", Fields: map[string]any{"CancellationReasons": reasons}}
}

// must performs a call of the front's own, past faults and record. What fails is the emulator, not what is tested.
func (f *Front) must(op string, in, out any) {
	body, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	status, answer, err := f.line.call(op, body)
	if err == nil && status >= 300 {
		err = refusal(status, answer)
	}
	if err == nil {
		err = json.Unmarshal(answer, out)
	}
	if err != nil {
		panic(fmt.Sprintf("ddbtest: %s: %v", op, err))
	}
}

// Items returns the items of a table as they are on the wire.
func (f *Front) Items(table string) []json.RawMessage {
	if !slices.Contains(f.own(), table) {
		return nil
	}
	var out struct{ Items []json.RawMessage }
	f.must("Scan", map[string]any{"TableName": table, "ConsistentRead": true}, &out)
	return out.Items
}

// SweepTTL deletes the items whose time to live is over by the front's clock, and returns how many.
func (f *Front) SweepTTL() int {
	swept := 0
	for _, table := range f.own() {
		var ttl struct {
			TimeToLiveDescription struct{ TimeToLiveStatus, AttributeName string }
		}
		f.must("DescribeTimeToLive", map[string]any{"TableName": table}, &ttl)
		var described struct {
			Table struct {
				KeySchema []struct{ AttributeName string }
			}
		}
		f.must("DescribeTable", map[string]any{"TableName": table}, &described)
		if ttl.TimeToLiveDescription.TimeToLiveStatus != "ENABLED" {
			continue
		}
		for _, raw := range f.Items(table) {
			var i map[string]map[string]any
			_ = json.Unmarshal(raw, &i) // a wire item is always of this form
			text, _ := i[ttl.TimeToLiveDescription.AttributeName]["N"].(string)
			if expires, err := strconv.ParseInt(text, 10, 64); err != nil || expires >= time.Now().Unix() {
				continue
			}
			key := map[string]any{}
			for _, k := range described.Table.KeySchema {
				key[k.AttributeName] = i[k.AttributeName]
			}
			f.must("DeleteItem", map[string]any{"TableName": table, "Key": key}, &struct{}{})
			swept++
		}
	}
	return swept
}
