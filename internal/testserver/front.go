package testserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sqsonce/sqsonce/localstack/fault"
)

// Front adds to a DynamoDB emulator what tests need of one: fault plans, a record of calls, and the clock of the bubble
// that it is made in, for the Date of responses and for [Front.SweepTTL]. It has the methods of memdynamodb.Server, so that
// one test runs on both. What an operation does is the emulator's.
//
// The emulator's tables are shared: two fronts that use the same name one after another use the same table. Close deletes
// the tables that were created through the front.
type Front struct {
	*fault.Injector
	line *Line

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	calls  sync.WaitGroup
	nextID atomic.Uint64

	mu     sync.Mutex
	tables map[string]bool // created through the front
}

// NewFront returns a front of the emulator at the other end of the line. Make it inside the bubble that uses it.
func NewFront(l *Line) *Front {
	f := &Front{Injector: fault.NewInjector(fault.Plan{}), line: l, tables: map[string]bool{}}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// Close ends the delays of the fault plan, waits for the calls that are under way, and deletes the front's tables.
func (f *Front) Close() {
	f.cancel()
	f.calls.Wait()
	for _, name := range f.own() {
		f.must("DeleteTable", map[string]any{"TableName": name}, &struct{}{})
	}
}

// RoundTrip makes the front the transport of an SDK client. As with AWS, a call that has begun goes on when its client has
// left.
func (f *Front) RoundTrip(r *http.Request) (*http.Response, error) {
	// The call does not read r: its client may use it again.
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close() // all of it is read
	if err := cmp.Or(r.Context().Err(), err); err != nil {
		return nil, err
	}
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	done := make(chan *http.Response, 1)
	f.calls.Go(func() { done <- f.call(op, body) })
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case resp := <-done:
		if resp == nil {
			return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
		}
		resp.Request = r
		return resp, nil
	}
}

// call performs a call and what the fault plan says of it. nil: the connection broke.
func (f *Front) call(op string, body []byte) *http.Response {
	rule := f.Next(op)
	units := 0.0
	defer func() { f.Record(fault.Call{Op: op, Entries: 1, Units: units, Fault: rule}) }()
	var do fault.Kind // zero: nothing
	if rule != nil {
		do = rule.Do
	}
	switch {
	case do == fault.Error && !rule.After:
		return f.injected(rule)
	case do == fault.Reset && !rule.After:
		return nil
	case do == fault.Delay:
		f.sleep(rule.Delay)
	case do == fault.FailEntries && op == "TransactWriteItems":
		return f.cancelled(body, rule)
	}
	status, response, err := f.pass(op, body)
	if err != nil {
		status, response = http.StatusInternalServerError, errorBody("InternalServerError", err.Error(), nil)
	}
	units = consumed(response)
	switch do {
	case fault.Error:
		return f.injected(rule)
	case fault.LoseReply, fault.Reset:
		return nil
	case fault.Replay:
		f.replay(op, body, rule)
	}
	return f.respond(status, response)
}

// replay performs the call once more, as a copy of its packet that the network delivers late.
func (f *Front) replay(op string, body []byte, rule *fault.Rule) {
	f.calls.Go(func() {
		if !f.sleep(rule.Delay) {
			return
		}
		_, response, _ := f.pass(op, body) // nobody waits for the response
		f.Record(fault.Call{Op: op, Entries: 1, Units: consumed(response), Fault: rule})
	})
}

func (f *Front) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-f.ctx.Done():
		return false
	}
}

// injected is the response of a rule that says Error.
func (f *Front) injected(rule *fault.Rule) *http.Response {
	const internal = "InternalServerError"
	code, status := cmp.Or(rule.Code, internal), http.StatusBadRequest
	if code == internal {
		status = http.StatusInternalServerError
	}
	return f.respond(status, errorBody(code, "injected fault", nil))
}

// cancelled is the response of a transaction that is cancelled because of the rule's entries.
func (f *Front) cancelled(body []byte, rule *fault.Rule) *http.Response {
	var in struct{ TransactItems []json.RawMessage }
	_ = json.Unmarshal(body, &in) // the SDK wrote it
	reasons := make([]map[string]string, len(in.TransactItems))
	for i := range reasons {
		reasons[i] = map[string]string{"Code": "None"}
		if rule.Hits(i) {
			reasons[i] = map[string]string{"Code": cmp.Or(rule.Code, "TransactionConflict"), "Message": "injected fault"}
		}
	}
	return f.respond(http.StatusBadRequest, errorBody("TransactionCanceledException",
		"Transaction cancelled, please refer cancellation reasons for specific reasons", map[string]any{"CancellationReasons": reasons}))
}

func errorBody(code, message string, fields map[string]any) []byte {
	out := map[string]any{"__type": "com.amazonaws.dynamodb.v20120810#" + code, "message": message}
	maps.Copy(out, fields)
	raw, _ := json.Marshal(out) // maps and strings
	return raw
}

func (f *Front) respond(status int, body []byte) *http.Response {
	return &http.Response{
		Status: strconv.Itoa(status) + " " + http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"Content-Type":     {"application/x-amz-json-1.0"},
			"Date":             {time.Now().UTC().Format(http.TimeFormat)},
			"X-Amzn-Requestid": {fmt.Sprintf("00000000-0000-4000-8000-%012x", f.nextID.Add(1))},
		},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// pass sends a call to the emulator. It asks for the consumed capacity in any case, for the record.
func (f *Front) pass(op string, body []byte) (status int, response []byte, err error) {
	var in map[string]json.RawMessage
	if json.Unmarshal(body, &in) == nil && in["ReturnConsumedCapacity"] == nil && !strings.Contains(op, "Table") && !strings.Contains(op, "TimeToLive") {
		in["ReturnConsumedCapacity"] = json.RawMessage(`"TOTAL"`)
		body, _ = json.Marshal(in) // it was JSON before
	}
	status, response, err = f.line.Call(op, body)
	if err == nil && status < 300 {
		f.follow(op, body)
	}
	return status, response, err
}

// follow records which tables are the front's.
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

func (f *Front) own() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.tables))
}

// consumed returns the capacity units of a response: of one table or of several.
func consumed(response []byte) (sum float64) {
	type capacity struct{ CapacityUnits float64 }
	var out struct{ ConsumedCapacity json.RawMessage }
	var one capacity
	var several []capacity
	if json.Unmarshal(response, &out) != nil || json.Unmarshal(out.ConsumedCapacity, &one) != nil && json.Unmarshal(out.ConsumedCapacity, &several) != nil {
		return 0
	}
	for _, c := range append(several, one) {
		sum += c.CapacityUnits
	}
	return sum
}

// must performs a call of the front's own, without faults and record. An error is the emulator's, not the test's.
func (f *Front) must(op string, in, out any) {
	body, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	status, response, err := f.line.Call(op, body)
	if err == nil && status >= 300 {
		err = fmt.Errorf("status %d: %s", status, response)
	}
	if err == nil {
		err = json.Unmarshal(response, out)
	}
	if err != nil {
		panic(fmt.Sprintf("testserver: %s: %v", op, err))
	}
}

// Items returns the items of a table in DynamoDB's JSON.
func (f *Front) Items(table string) []json.RawMessage {
	if !slices.Contains(f.own(), table) {
		return nil
	}
	var out struct{ Items []json.RawMessage }
	f.must("Scan", map[string]any{"TableName": table, "ConsistentRead": true}, &out)
	return out.Items
}

// SweepTTL deletes the items whose time to live has ended by the front's clock, and returns how many.
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
			_ = json.Unmarshal(raw, &i) // an item always has this form
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
