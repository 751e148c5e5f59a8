package ddbtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

// Random requests go to memdynamodb and to dynoxide, which share no code: both must return the same, or AWS's text must say
// that memdynamodb is right.
func TestDifferences(t *testing.T) {
	t.Parallel()
	other := testserver.NewLine(testserver.Dynoxide.Shared(t).URL)
	met := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		program := genProgram.Draw(rt, "program")
		d := newDuel(other, program)
		defer d.close()
		for i, r := range program.requests {
			if err := d.compare(r, met); err != nil {
				rt.Fatalf("request %d: %v\n%s", i, err, r)
			}
		}
	})
	for _, e := range explained {
		t.Logf("%6d times: %s", met[e.name], e.name)
	}
}

// server calls an operation of one of the two servers.
type server func(op, body string) wireResult

// wireResult is a response whose parts can be compared.
type wireResult struct {
	code    string // "" for success
	message string // not compared
	fields  string // sorted
}

func (r wireResult) String() string {
	if r.code != "" {
		return r.code + ": " + r.message + " " + r.fields
	}
	return r.fields
}

// duel is the same table on both servers.
type duel struct {
	ours, other server
	srv         *memdynamodb.Server
	table       string
	key         []string
	over        bool   // dynoxide could not get the items of memdynamodb
	added       bool   // an index was added
	before      string // the items before the request
}

func newDuel(l *testserver.Line, p program) *duel {
	srv := memdynamodb.New()
	d := &duel{srv: srv, table: (&exam{}).newName()}
	d.ours = func(op, body string) wireResult {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://dynamodb.local/", strings.NewReader(body))
		if err != nil {
			panic(err) // a constant URL
		}
		r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
		r.Header.Set("Authorization", "x")
		resp, err := srv.RoundTrip(r)
		if err != nil {
			panic(err) // there are no faults here
		}
		raw, _ := io.ReadAll(resp.Body) // in memory
		return readResult(resp.StatusCode, raw)
	}
	d.other = func(op, body string) wireResult {
		status, raw, err := l.Call(op, []byte(body))
		if err != nil {
			return wireResult{code: "no response", message: err.Error()}
		}
		return readResult(status, raw)
	}
	elements, definitions := keySchema(p.table)
	for _, e := range elements {
		d.key = append(d.key, e["AttributeName"])
	}
	in := wire{"TableName": d.table, "BillingMode": "PAY_PER_REQUEST", "KeySchema": elements, "AttributeDefinitions": definitions}
	if p.indexes != nil {
		kinds := map[string]string{"a1": "S", "b1": "N"}
		for _, e := range p.indexes[0]["KeySchema"].([]map[string]string) {
			name := e["AttributeName"]
			definitions = append(definitions, map[string]string{"AttributeName": name, "AttributeType": kinds[name]})
		}
		in["AttributeDefinitions"], in["GlobalSecondaryIndexes"] = definitions, p.indexes
	}
	d.both("CreateTable", in)
	return d
}

func (d *duel) both(op string, in any) {
	body, _ := json.Marshal(in) // maps and strings
	d.ours(op, string(body))
	d.other(op, string(body))
}

func (d *duel) close() {
	d.both("DeleteTable", map[string]any{"TableName": d.table})
	d.srv.Close()
}

// compare sends the request to both servers. After an explained difference, dynoxide gets the items of memdynamodb.
func (d *duel) compare(r wireRequest, met map[string]int) error {
	if d.over {
		return nil
	}
	body := r.body(d.table)
	ours, other := d.ours(r.op, body), d.other(r.op, body)
	stored := "\n" + d.items(d.ours)
	theirs := "\n" + d.items(d.other)
	misfits := d.added && (misfits(d.before) || misfits(stored))
	d.added, d.before = d.added || r.op == "UpdateTable" && ours.code == "", stored
	if ours.code == other.code && ours.fields == other.fields && stored == theirs {
		return nil
	}
	for _, e := range explained {
		if e.applies(difference{r, ours, other, stored, theirs, misfits}) {
			met[e.name]++
			if stored != theirs {
				d.equalise()
				d.over = d.items(d.ours) != d.items(d.other) // an item that is older than an index, and could not be put again
			}
			return nil
		}
	}
	return fmt.Errorf("memdynamodb returns\n%s%s\ndynoxide returns\n%s%s", ours, stored, other, theirs)
}

func (d *duel) items(of server) string {
	return of("Scan", `{"TableName":"`+d.table+`","ConsistentRead":true}`).fields
}

func (d *duel) equalise() {
	var scan struct{ Items []map[string]json.RawMessage }
	raw := d.other("Scan", `{"TableName":"`+d.table+`","ConsistentRead":true}`).fields
	_ = json.Unmarshal([]byte(raw), &scan) // what readResult wrote
	for _, i := range scan.Items {
		key := map[string]json.RawMessage{}
		for _, name := range d.key {
			key[name] = i[name]
		}
		body, _ := json.Marshal(map[string]any{"TableName": d.table, "Key": key})
		d.other("DeleteItem", string(body))
	}
	for _, i := range d.srv.Items(d.table) {
		d.other("PutItem", `{"TableName":"`+d.table+`","Item":`+string(i)+`}`)
	}
}

// readResult sorts what has no order: sets, and the items of a scan.
func readResult(status int, raw []byte) wireResult {
	var a wireResult
	var in map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if err := decoder.Decode(&in); err != nil {
		return wireResult{code: fmt.Sprintf("status %d", status), message: string(raw)}
	}
	if kind, _ := in["__type"].(string); kind != "" {
		_, a.code, _ = strings.Cut(kind, "#")
	}
	for _, name := range []string{"message", "Message"} {
		if text, ok := in[name].(string); ok {
			a.message = text
		}
		delete(in, name)
	}
	delete(in, "__type")
	delete(in, "TableDescription") // of UpdateTable: cases of its own look at it
	if reasons, ok := in["CancellationReasons"].([]any); ok {
		for _, r := range reasons {
			r := r.(map[string]any)
			text, _ := r["Message"].(string)
			a.message += "\n" + text
			delete(r, "Message")
		}
	}
	if items, ok := in["Items"].([]any); ok && in["ScannedCount"] != nil && in["ConsumedCapacity"] == nil { // a scan
		slices.SortFunc(items, func(x, y any) int { return strings.Compare(canonical(x), canonical(y)) })
	}
	a.fields = canonical(in)
	return a
}

// canonical returns JSON with the members of sets sorted.
func canonical(v any) string {
	ordered(v)
	raw, _ := json.Marshal(v) // it was JSON before
	return string(raw)
}

func ordered(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if set, ok := inner.([]any); ok && len(v) == 1 && (name == "SS" || name == "NS" || name == "BS") {
				slices.SortFunc(set, func(x, y any) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) })
				continue
			}
			ordered(inner)
		}
	case []any:
		for _, inner := range v {
			ordered(inner)
		}
	}
}

// difference is a request to which the two servers respond differently.
type difference struct {
	wireRequest
	ours, other    wireResult
	stored, theirs string
	misfits        bool // an item has an attribute that cannot be the key of an index that was added
}

// weRefuse reports whether memdynamodb returns one of the texts, in an error or in a cancellation reason.
func (d difference) weRefuse(texts ...string) bool {
	for _, t := range texts {
		if (d.ours.code == invalid || d.ours.code == cancelled) && strings.Contains(d.ours.message, t) {
			return true
		}
	}
	return false
}

// explained are the differences in which AWS's text says that memdynamodb is right.
var explained = []struct {
	name    string
	applies func(difference) bool
}{
	{
		// AWS, API_Condition, of LT, LE, GT, GE and BETWEEN: operands "of type String, Number, or Binary (not a set type)",
		// and of BETWEEN: "the same type, either String, Number, or Binary".
		"the types of values are checked without an item",
		func(d difference) bool {
			return d.weRefuse("Incorrect operand type for operator or function", "The BETWEEN operator requires same data type")
		},
	},
	{
		// AWS, API_Condition, of BETWEEN: "the second value ... greater than or equal to" the first: bounds in the wrong order
		// are refused, not empty.
		"bounds in the wrong order are refused",
		func(d difference) bool { return d.weRefuse("The BETWEEN operator requires upper bound") },
	},
	{
		// AWS returns this text for a comparison of a path with itself.
		"a path is not compared with itself",
		func(d difference) bool { return d.weRefuse("The first operand must be distinct") },
	},
	{
		// AWS, API_AttributeValueUpdate, DELETE where no item has the key: "Causes nothing to happen; there is no attribute to
		// delete."
		"an update that only removes makes no item",
		func(d difference) bool {
			return d.ours.code == "" && d.other.code == "" && d.stored != d.theirs && slices.ContainsFunc(d.updates(), removes)
		},
	},
	{
		// AWS, API_UpdateItem, ReturnValues, ALL_OLD: "all of the attributes of the item, as they appeared before": there was
		// no item.
		"ALL_OLD of no item is nothing",
		func(d difference) bool {
			return d.in["ReturnValues"] == "ALL_OLD" && d.stored == d.theirs && !strings.Contains(d.ours.fields, "Attributes") && strings.Contains(d.other.fields, "Attributes")
		},
	},
	{
		// AWS, API_TransactWriteItems: "The document path provided in the update expression is invalid for update."
		"a path that does not exist is refused also in REMOVE",
		func(d difference) bool {
			return d.weRefuse("The document path provided in the update expression is invalid for update")
		},
	},
	{
		// AWS, API_UpdateItem, ReturnValues: "UPDATED_NEW - Returns only the updated attributes": an element of a list is one.
		"of a list only the updated elements are returned",
		func(d difference) bool {
			returns, _ := d.in["ReturnValues"].(string)
			return strings.HasPrefix(returns, "UPDATED_") && d.stored == d.theirs && strings.Contains(d.updates()[0], "[")
		},
	},
	{
		// AWS does not say which faults of a transaction it looks for first.
		"a key of an index and another fault",
		func(d difference) bool {
			return d.ours.code == cancelled && d.other.code != "" && d.weRefuse(" for Index Key ", "a secondary index key") && d.stored == d.theirs
		},
	},
	{
		// Recorded by architect/dynalite, test/getItem.js and test/query.js, "should return ValidationException for non-scalar index
		// access".
		"no path leads into a key",
		func(d difference) bool { return d.weRefuse("Key attributes must be scalars") },
	},
	{
		// scylladb/scylladb test_gsi_updatetable.py, test_gsi_backfill, which ran on AWS: items whose value has the wrong type are
		// not in an index that is added. So they cost nothing there.
		"an added index has the items that fit",
		func(d difference) bool {
			return d.misfits && (d.in["IndexName"] != nil || d.ours.code == d.other.code && d.stored == d.theirs)
		},
	},
	{
		// AWS, Expressions.UpdateExpressions: "If the element doesn't already exist, SET appends the new element at the end of
		// the list."
		"an element set beyond a list's end is appended",
		func(d difference) bool {
			return d.ours.code == "" && d.other.code == "" && strings.Contains(d.theirs, `{"NULL":true}`) && strings.Contains(strings.Join(d.updates(), " "), "]")
		},
	},
}

func removes(update string) bool {
	return !strings.Contains(update, "SET ") && !strings.Contains(update, "ADD ")
}

// updates are the update expressions of the request.
func (d difference) updates() []string {
	var all []string
	if update, ok := d.in["UpdateExpression"].(string); ok {
		all = append(all, update)
	}
	actions, _ := d.in["TransactItems"].([]map[string]map[string]any)
	for _, a := range actions {
		if update, ok := a["Update"]["UpdateExpression"].(string); ok {
			all = append(all, update)
		}
	}
	return all
}
