package dynamooutbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// sweep follows the cursors to the end.
func (b *bed) sweep(o *Outbox, limit int) (all []outbox.Group, pages int) {
	b.Helper()
	after := ""
	for {
		found, next, err := o.Groups(b.Context(), after, limit)
		if err != nil {
			b.Fatalf("Groups after %q: %v", after, err)
		}
		if len(found) > limit {
			b.Fatalf("Groups returned %d groups, want at most %d", len(found), limit)
		}
		all = append(all, found...)
		if pages++; next == "" {
			return all, pages
		}
		after = next
	}
}

func names(groups []outbox.Group) string {
	var all []string
	for _, g := range groups {
		all = append(all, g.Name)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// A group costs a sweep one page, however many events it has, and so does one of another outbox.
func TestLongGroupCostsAPage(t *testing.T) {
	bubble(t, func(b *bed) {
		const events = 500 // a page has 64
		other := b.outbox(b.ddb, "other")
		for _, o := range []*Outbox{b.box, other} {
			for n := range events {
				b.set(encode(o.partition("long"), int64(n+1), source, event("long", n+1), time.Now()))
			}
		}
		b.put("short", 1)
		calls := b.calls(func() {
			if all, _ := b.sweep(b.box, 64); names(all) != "long short" {
				b.Errorf("got %s", names(all))
			}
		})
		if len(calls) > 4 {
			b.Errorf("%d Scans, want at most 4: %d events", len(calls), 2*events)
		}
	})
}

// A sweep of an empty table is one request.
func TestIdleSweep(t *testing.T) {
	bubble(t, func(b *bed) { b.wantOps("Scan", func() { b.sweep(b.box, 64) }) })
}

// A call reads a bounded number of pages, and goes on where it ended.
func TestGroupsIsBounded(t *testing.T) {
	bubble(t, func(b *bed) {
		other := b.outbox(b.ddb, "other")
		for n := range 100 {
			must.Do(b, b.tryWrite(other, event(fmt.Sprint("g", n), 1), 1))
		}
		b.put("mine", 1)
		most := 0
		after, found := "", ""
		for {
			var next string
			n := len(b.calls(func() {
				gs, to, err := b.box.Groups(b.Context(), after, 2)
				if err != nil {
					b.Fatal(err)
				}
				found, next = found+names(gs), to
			}))
			if most = max(most, n); next == "" {
				break
			}
			after = next
		}
		if most != mostScans || found != "mine" {
			b.Errorf("at most %d Scans in a call, and %q found, want %d and mine", most, found, mostScans)
		}
	})
}

// scanLens is a client whose Scan a test answers.
type scanLens struct {
	Client
	scan func(*dynamodb.ScanInput) (*dynamodb.ScanOutput, error)
}

func (l *scanLens) Scan(_ context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return l.scan(in)
}

func TestGroupsFails(t *testing.T) {
	t.Parallel()
	for name, scan := range map[string]func(*dynamodb.ScanInput) (*dynamodb.ScanOutput, error){
		"neither": func(*dynamodb.ScanInput) (*dynamodb.ScanOutput, error) { return nil, nil },
		"panic":   func(*dynamodb.ScanInput) (*dynamodb.ScanOutput, error) { panic("wrapper") },
		"another outbox": func(*dynamodb.ScanInput) (*dynamodb.ScanOutput, error) {
			return &dynamodb.ScanOutput{Items: []item{keyOf("x#g", 1)}}, nil
		},
		"nil item": func(*dynamodb.ScanInput) (*dynamodb.ScanOutput, error) {
			return &dynamodb.ScanOutput{Items: []item{nil}}, nil
		},
		"the same page for ever": func(*dynamodb.ScanInput) (*dynamodb.ScanOutput, error) {
			return &dynamodb.ScanOutput{LastEvaluatedKey: keyOf("x#g", 1)}, nil
		},
		"no end": func(*dynamodb.ScanInput) (*dynamodb.ScanOutput, error) {
			return &dynamodb.ScanOutput{LastEvaluatedKey: item{attrPK: (*ddbtypes.AttributeValueMemberS)(nil)}}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bed) {
				o := b.outbox(&scanLens{b.ddb, scan}, testBox)
				if found, next, err := o.Groups(b.Context(), "", 64); err == nil || found != nil || next != "" {
					b.Errorf("Groups: got %v, %q, %v, want an error alone", found, next, err)
				}
				if found, err := o.Parked(b.Context(), 64); err == nil || found != nil {
					b.Errorf("Parked: got %v, %v, want an error alone", found, err)
				}
			})
		})
	}
	inBubble(t, func(b *bed) {
		for code, want := range map[string]string{"AccessDeniedException": "denied", "ResourceNotFoundException": "denied", "InternalServerError": "error", "ThrottlingException": "error", "ExpiredTokenException": "error"} {
			b.faults(fault.Rule{Prob: 1, Do: fault.Error, Code: code})
			_, _, err := b.box.Groups(b.Context(), "", 64)
			if got := describe(nil, err); got != want {
				b.Errorf("%s: got %v, want %s", code, err, want)
			}
		}
		b.faults()
		for _, limit := range []int{0, -1} {
			if _, _, err := b.box.Groups(b.Context(), "", limit); fields(err) != "limit" {
				b.Errorf("limit %d: got %v, want a OptionError", limit, err)
			}
			b.wantRead("g", outbox.Known{}, limit, "bad argument")
			if _, err := b.box.Parked(b.Context(), limit); fields(err) != "limit" {
				b.Errorf("limit %d: got %v, want a OptionError", limit, err)
			}
		}
	})
}

// A page that fails does not lose those before it.
func TestGroupsBeforeAFailure(t *testing.T) {
	bubble(t, func(b *bed) {
		for n := range 3 {
			b.put(fmt.Sprint("g", n), many(9)...)
		}
		b.faults(fault.Rule{Op: "Scan", Nth: 2, Times: 2 * sdkAttempts, Do: fault.Error})
		found, next, err := b.box.Groups(b.Context(), "", 3)
		if err != nil || len(found) != 1 || next != b.box.partition(found[0].Name) {
			b.Fatalf("got %v, %q, %v, want the first group", found, next, err)
		}
		if _, _, err := b.box.Groups(b.Context(), next, 3); err == nil {
			b.Error("the next call: got nil, want the error")
		}
		b.faults()
		if rest, _, err := b.box.Groups(b.Context(), next, 3); err != nil || len(rest) != 2 {
			b.Errorf("got %v, %v, want two groups", rest, err)
		}
	})
}

// sdkAttempts is how often the SDK's client sends a request.
const sdkAttempts = 3

// Two outboxes of a table have groups of the same name, and one name is the beginning of the other.
func TestOutboxesShareATable(t *testing.T) {
	bubble(t, func(b *bed) {
		for _, name := range []string{"orders", "order", "orders-eu"} {
			o := b.outbox(b.ddb, name)
			must.Do(b, b.tryWrite(o, fifo.Event{ID: name, Group: "g", Body: "{}"}, 1))
			must.Do(b, o.Park(b.Context(), outbox.Entry{Event: fifo.Event{ID: name, Group: "g"}, Seq: 1}, outbox.OnRefusedHalt, ""))
		}
		for _, name := range []string{"orders", "order", "orders-eu"} {
			o := b.outbox(b.ddb, name)
			es, err := o.Read(b.Context(), outbox.Group{Name: "g"}, outbox.Known{}, 9)
			parked, err2 := o.Parked(b.Context(), 9)
			groups, _ := b.sweep(o, 9)
			if err != nil || err2 != nil || len(es) != 1 || es[0].ID != name || len(parked) != 1 || parked[0].ID != name || len(groups) != 1 {
				b.Errorf("%s: got %v, %v, %v, %v, %v", name, es, err, parked, err2, groups)
			}
		}
		b.remove("g", 1)
		b.wantStored("order#g 1, orders-eu#g 1")
	})
}
