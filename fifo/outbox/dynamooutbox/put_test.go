package dynamooutbox

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
)

// fullEvent has everything that an event can have.
func fullEvent() fifo.Event {
	return fifo.Event{
		ID: "ord-42/v1", Group: "ord-42", Body: `{"état":"payée"}`, Type: "paid", TraceHeader: "Root=1-5759e988-bd862e3fe1be46a994272793",
		Attributes: map[string]sqsonce.Attribute{
			"text": {Type: "String.json", String: "{}"}, "count": {Type: "Number", String: "42"}, "bytes": {Type: "Binary", Binary: []byte{0, 255}},
		},
	}
}

func TestNewChecksItsArguments(t *testing.T) {
	t.Parallel()
	c := testaws.DynamoDB(nil)
	for name, tt := range map[string]struct {
		client              Client
		table, name, source string
		want                string
	}{
		"good":             {c, "outbox", "a", "shop", ""},
		"ARN":              {c, "arn:aws:dynamodb:us-east-1:123456789012:table/outbox", "a/b_c.D-9", "a:b/c", ""},
		"longest":          {c, "outbox", strings.Repeat("n", 64), strings.Repeat("s", 48), ""},
		"name with #":      {c, "outbox", "a#b", "shop", "name"},
		"empty name":       {c, "outbox", "", "shop", "name"},
		"65 characters":    {c, "outbox", strings.Repeat("n", 65), "shop", "name"},
		"name and newline": {c, "outbox", "a\n", "shop", "name"},
		"no source":        {c, "outbox", "a", "", "source"},
		"long source":      {c, "outbox", "a", strings.Repeat("s", 49), "source"},
		"source with |":    {c, "outbox", "a", "a|b", "source"},
		"typed nil":        {(*dynamodb.Client)(nil), "outbox", "a", "shop", "client"},
		"all":              {nil, "x", "", "", "client table name source"},
	} {
		if _, err := New(tt.client, tt.table, tt.name, tt.source); fields(err) != tt.want {
			t.Errorf("%s: got %v, want FieldErrors of %q", name, err, tt.want)
		}
	}
}

// A relay sends under the publisher's namespace: what one takes the other takes.
func TestSourceIsANamespace(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "a", "A:b/c.d_e-9", "a|b", "a b", "é", strings.Repeat("s", 48), strings.Repeat("s", 49), "a\n"} {
		bad := fields(event("g", 1).Check(s)) != ""
		if sourceName.MatchString(s) == bad {
			t.Errorf("%q: fifo refuses it: %t, New takes it", s, bad)
		}
	}
}

// What SQS would refuse is refused before the commit, all of it at once.
func TestPutChecksItsArguments(t *testing.T) {
	t.Parallel()
	o := (&bed{T: t}).outbox(testaws.DynamoDB(nil), testBox)
	for name, tt := range map[string]struct {
		change func(*fifo.Event)
		seq    int64
		want   string
	}{
		"good":       {func(*fifo.Event) {}, 1, ""},
		"seq 0":      {func(*fifo.Event) {}, 0, "seq"},
		"no body":    {func(e *fifo.Event) { e.Body = "" }, 1, "Event.Body"},
		"over 1 MiB": {func(e *fifo.Event) { e.Body = strings.Repeat("b", 1<<20) }, 1, "Event.Body Event.Body"},
		"390 KB":     {func(e *fifo.Event) { e.Body = strings.Repeat("b", maxItem) }, 1, "Event.Body"},
		"389 KB":     {func(e *fifo.Event) { e.Body = strings.Repeat("b", 389<<10) }, 1, ""},
		"two fields": {func(e *fifo.Event) { e.ID, e.Body = "", "" }, 0, "Event.ID Event.Body seq"},
	} {
		e := event("g", 1)
		tt.change(&e)
		p, err := o.Put(e, tt.seq)
		if fields(err) != tt.want || (p == nil) != (tt.want != "") {
			t.Errorf("%s: got %v, want FieldErrors of %q", name, err, tt.want)
		}
	}
}

// The largest item that Put makes can still be parked with the longest reason.
func TestLargestItem(t *testing.T) {
	bubble(t, func(b *bed) {
		e := fullEvent()
		size := itemBytes(encode(b.box.partition(e.Group), 1, source, e, time.Now()))
		e.Body += strings.Repeat("b", maxItem-size)
		b.write(e, 1)
		must.Do(t, b.box.Park(b.Context(), outbox.Entry{Event: e, Seq: 1}, outbox.OnRefusedHalt, strings.Repeat("é", 500)))
		e.Body += "b"
		if _, err := b.box.Put(e, 2); fields(err) != "Event.Body" {
			t.Errorf("one byte more: got %v, want a OptionError of Event.Body", err)
		}
	})
}

// A seq that is in the outbox cancels the transaction.
func TestSeqInUse(t *testing.T) {
	bubble(t, func(b *bed) {
		b.put("g", 1)
		err := b.tryWrite(b.box, fifo.Event{ID: "other", Group: "g", Body: "other"}, 1)
		cancelled, ok := errors.AsType[*ddbtypes.TransactionCanceledException](err)
		if !ok || *cancelled.CancellationReasons[0].Code != "ConditionalCheckFailed" {
			t.Errorf("got %v, want that the condition failed", err)
		}
		es, _ := b.box.Read(b.Context(), outbox.Group{Name: "g"}, outbox.Known{}, 1)
		if len(es) != 1 || es[0].ID != "g/v1" {
			t.Errorf("the outbox has %v, want the first event", es)
		}
	})
}

// The caller may change its event before the transaction is sent.
func TestPutCopies(t *testing.T) {
	bubble(t, func(b *bed) {
		e := fullEvent()
		p := must.Get(b.box.Put(e, 1))(t)
		e.Attributes["bytes"].Binary[0] = 7
		e.Attributes["new"] = sqsonce.Attribute{Type: "String", String: "x"}
		got := must.Get(decode(p.Item, time.Now()))(t)
		if len(got.Attributes) != 3 || got.Attributes["bytes"].Binary[0] != 0 {
			t.Errorf("the item has %v", got.Attributes)
		}
	})
}

// Units are those of DynamoDB's prices: 2 for the write in a transaction and 1 for the delete, a KB each.
func TestUnits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		body        int
		put, remove float64
	}{
		"800 bytes": {800, 2, 1},
		"1 KB":      {1024, 4, 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bed) {
				e := event("ord-42", 1)
				e.Body = strings.Repeat("b", tt.body)
				if got := b.calls(func() { b.write(e, 1) })[0].Units; got != tt.put {
					t.Errorf("Put consumes %v units, want %v", got, tt.put)
				}
				if got := b.calls(func() { b.remove("ord-42", 1) })[0].Units; got != tt.remove {
					t.Errorf("Delete consumes %v units, want %v", got, tt.remove)
				}
			})
		})
	}
}
