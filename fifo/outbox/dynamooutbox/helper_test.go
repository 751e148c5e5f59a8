package dynamooutbox

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

const (
	testTable = "outbox"
	testBox   = "orders"
	source    = "shop"
)

// bed is DynamoDB in memory with a table, in the bubble of the test that makes it.
type bed struct {
	*testing.T
	srv *memdynamodb.Server
	ddb *dynamodb.Client
	box *Outbox
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{T: t, srv: memdynamodb.New()}
	t.Cleanup(b.srv.Close)
	b.ddb = testaws.DynamoDB(b.srv)
	must.Do(t, CreateTable(t.Context(), b.ddb, testTable))
	b.box = b.outbox(b.ddb, testBox)
	return b
}

// bubble runs a test with a bed in virtual time, beside other tests.
func bubble(t *testing.T, f func(b *bed)) {
	t.Helper()
	t.Parallel()
	inBubble(t, f)
}

// inBubble runs a part of a test with a bed in virtual time.
func inBubble(t *testing.T, f func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(newBed(t)) })
}

func (b *bed) outbox(c Client, name string) *Outbox {
	b.Helper()
	o := must.Get(New(c, testTable, name, source))(b)
	return o
}

func event(group string, n int) fifo.Event {
	return fifo.Event{ID: fmt.Sprintf("%s/v%d", group, n), Group: group, Body: fmt.Sprint("body ", n)}
}

// put commits events with the given seqs, each in a transaction of its own.
func (b *bed) put(group string, seqs ...int) {
	b.Helper()
	for _, n := range seqs {
		b.write(event(group, n), int64(n))
	}
}

// write commits one event.
func (b *bed) write(e fifo.Event, seq int64) {
	b.Helper()
	must.Do(b, b.tryWrite(b.box, e, seq))
}

func (b *bed) tryWrite(o *Outbox, e fifo.Event, seq int64) error {
	p, err := o.Put(e, seq)
	if err != nil {
		return err
	}
	_, err = b.ddb.TransactWriteItems(b.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []ddbtypes.TransactWriteItem{{Put: p}}})
	return err
}

// set puts an item as it is: one that Put would not write.
func (b *bed) set(it item) {
	b.Helper()
	must.Get(b.ddb.PutItem(b.Context(), &dynamodb.PutItemInput{TableName: aws.String(testTable), Item: it}))(b)
}

func (b *bed) park(group string, p outbox.RefusedPolicy, seqs ...int) {
	b.Helper()
	for _, n := range seqs {
		must.Do(b, b.box.Park(b.Context(), outbox.Entry{Event: event(group, n), Seq: int64(n)}, p, "refused"))
	}
}

func (b *bed) remove(group string, seqs ...int) {
	b.Helper()
	if left, err := b.box.Delete(b.Context(), entries(group, seqs...)); err != nil || len(left) > 0 {
		b.Fatalf("Delete: got %d left, %v", len(left), err)
	}
}

func entries(group string, seqs ...int) []outbox.Entry {
	es := make([]outbox.Entry, len(seqs))
	for i, n := range seqs {
		es[i] = outbox.Entry{Event: event(group, n), Seq: int64(n)}
	}
	return es
}

// read is what Read returns: the seqs, with the first letter of a mark, and the error's kind.
func (b *bed) read(group string, known outbox.Known, limit int) string {
	b.Helper()
	es, err := b.box.Read(b.Context(), outbox.Group{Name: group}, known, limit)
	return describe(es, err)
}

func describe(es []outbox.Entry, err error) string {
	var words []string
	for _, e := range es {
		words = append(words, fmt.Sprintf("%d%.1s", e.Seq, strings.ToLower(policies[e.Parked])))
	}
	broken := errors.Is(err, outbox.ErrBroken)
	_, field := errors.AsType[*sqsonce.OptionError](err)
	switch {
	case errors.Is(err, outbox.ErrUnsettled):
		words = append(words, "unsettled")
	case errors.Is(err, outbox.ErrManySkipped):
		words = append(words, "many skipped")
	case errors.Is(err, outbox.ErrDenied):
		words = append(words, "denied")
	case broken:
		words = append(words, "broken")
	case field:
		words = append(words, "bad argument")
	case err != nil:
		words = append(words, "error")
	}
	return strings.Join(words, " ")
}

func (b *bed) wantRead(group string, known outbox.Known, limit int, want string) {
	b.Helper()
	if got := b.read(group, known, limit); got != want {
		b.Errorf("Read of %s: got %q, want %q", group, got, want)
	}
}

// stored are the keys of the table's items, "group seq", in the order of groups and seqs.
func (b *bed) stored() string {
	b.Helper()
	type key struct {
		pk  string
		seq int
	}
	var keys []key
	for _, raw := range b.srv.Items(testTable) {
		var it struct {
			PK  struct{ S string } `json:"pk"`
			Seq struct{ N string } `json:"seq"`
		}
		must.Do(b, json.Unmarshal(raw, &it))
		n, _ := strconv.Atoi(it.Seq.N)
		keys = append(keys, key{it.PK.S, n})
	}
	slices.SortFunc(keys, func(x, y key) int { return cmp.Or(cmp.Compare(x.pk, y.pk), cmp.Compare(x.seq, y.seq)) })
	var words []string
	for _, k := range keys {
		words = append(words, fmt.Sprintf("%s %d", k.pk, k.seq))
	}
	return strings.Join(words, ", ")
}

func (b *bed) wantStored(want string) {
	b.Helper()
	if got := b.stored(); got != want {
		b.Errorf("the table has %q, want %q", got, want)
	}
}

// faults starts a plan: its rules count calls from here on.
func (b *bed) faults(rules ...fault.Rule) { b.srv.Set(fault.Plan{Seed: 1, Rules: rules}) }

// calls are the operations that f calls, in their order.
func (b *bed) calls(f func()) []fault.Call {
	n := len(b.srv.Calls())
	f()
	return b.srv.Calls()[n:]
}

func ops(calls []fault.Call) string {
	var names []string
	for _, c := range calls {
		names = append(names, c.Op)
	}
	return strings.Join(names, " ")
}

func (b *bed) wantOps(want string, f func()) {
	b.Helper()
	if got := ops(b.calls(f)); got != want {
		b.Errorf("calls: got %q, want %q", got, want)
	}
}

// fields are the names of the bad fields that an error has.
func fields(err error) string { return strings.Join(testaws.Fields(err), " ") }
