package dynamostore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/ddberror"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

func TestNewNamesEveryBadArgument(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"", "ab", "no spaces", strings.Repeat("a", 256), "arn:aws:dynamodb:eu-west-1:1:table/"} {
		_, err := New((*dynamodb.Client)(nil), table)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, "dynamostore: client: ") || !strings.Contains(text, "dynamostore: table: ") {
			t.Errorf("New(nil, %q): got error %v, want it to name client and table", table, err)
		}
	}
	for _, table := range []string{"abc", "my.table_1-x", "arn:aws:dynamodb:eu-west-1:123456789012:table/dedup"} {
		if _, err := New(&refusalCounter{}, table); err != nil {
			t.Errorf("New(client, %q): got error %v, want nil", table, err)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	str, num := ddbtypes.ScalarAttributeTypeS, ddbtypes.ScalarAttributeTypeN
	for _, c := range []struct {
		name  string
		keys  []ddbtypes.KeySchemaElement
		types map[string]ddbtypes.ScalarAttributeType
		ttl   string
		want  []error
	}{
		{"good", keys("id"), kinds{"id": str}, TTLAttribute, nil},
		{"no table", nil, nil, "", []error{ErrNoTable}},
		{"other name", keys("key"), kinds{"key": str}, TTLAttribute, []error{ddberror.ErrKeySchema}},
		{"number", keys("id"), kinds{"id": num}, TTLAttribute, []error{ddberror.ErrKeySchema}},
		{"sort key", keys("id", "sk"), kinds{"id": str, "sk": str}, TTLAttribute, []error{ddberror.ErrKeySchema}},
		{"no TTL", keys("id"), kinds{"id": str}, "", []error{ddberror.ErrTTL}},
		{"TTL on another attribute", keys("id"), kinds{"id": str}, "ttl", []error{ddberror.ErrTTL}},
		{"all of it", keys("pk"), kinds{"pk": str}, "ttl", []error{ddberror.ErrKeySchema, ddberror.ErrTTL}},
	} {
		runEmpty(t, c.name, func(t *testing.T, b *bed) {
			if c.keys != nil {
				b.table(c.keys, c.types, c.ttl)
			}
			err := b.store().Check(t.Context())
			if (err == nil) != (c.want == nil) {
				t.Errorf("Check: got %v, want %v", err, c.want)
			}
			for _, want := range c.want {
				if e, ok := errors.AsType[*tableError](err); !ok || e.Table != testTable || !errors.Is(err, want) {
					t.Errorf("Check: got %v, want a *tableError that matches %v", err, want)
				}
			}
		})
	}
}

type kinds = map[string]ddbtypes.ScalarAttributeType

func keys(names ...string) []ddbtypes.KeySchemaElement {
	var schema []ddbtypes.KeySchemaElement
	for i, n := range names {
		schema = append(schema, ddbtypes.KeySchemaElement{AttributeName: aws.String(n), KeyType: []ddbtypes.KeyType{"HASH", "RANGE"}[i]})
	}
	return schema
}

func (b *bed) table(schema []ddbtypes.KeySchemaElement, types kinds, ttl string) {
	b.Helper()
	in := &dynamodb.CreateTableInput{TableName: aws.String(testTable), KeySchema: schema, BillingMode: ddbtypes.BillingModePayPerRequest}
	for n, k := range types {
		in.AttributeDefinitions = append(in.AttributeDefinitions, ddbtypes.AttributeDefinition{AttributeName: aws.String(n), AttributeType: k})
	}
	c := b.client(b.srv)
	must.Get(c.CreateTable(b.Context(), in))(b)
	if ttl == "" {
		return
	}
	if _, err := c.UpdateTimeToLive(b.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String(testTable),
		TimeToLiveSpecification: &ddbtypes.TimeToLiveSpecification{AttributeName: aws.String(ttl), Enabled: aws.Bool(true)},
	}); err != nil {
		b.Fatal(err)
	}
}

func TestFirstUseOfABadTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		keys  []ddbtypes.KeySchemaElement
		types kinds
		want  error
	}{
		{"missing", nil, nil, ErrNoTable},
		{"other key", keys("pk"), kinds{"pk": "S"}, ddberror.ErrKeySchema},
		{"number", keys("id"), kinds{"id": "N"}, ddberror.ErrKeySchema},
		{"sort key", keys("id", "sk"), kinds{"id": "S", "sk": "S"}, ddberror.ErrKeySchema},
	} {
		runEmpty(t, c.name, func(t *testing.T, b *bed) {
			if c.keys != nil {
				b.table(c.keys, c.types, "")
			}
			s := b.store()
			_, errs := acquireAll(t.Context(), b.storeWithPeer(), claimsOf(2)) // in a batch
			if err := errs[0]; !errors.Is(err, c.want) || !errors.Is(err, sqsonce.ErrMisconfigured) || !errors.Is(err, sqsonce.ErrUnavailable) {
				t.Errorf("Acquire in a batch: got %v, want %v that matches ErrMisconfigured", err, c.want)
			}
			l := dedup.Lease{Key: testKey, Owner: "a", Fence: 1}
			for op, err := range map[string]error{
				"Acquire":  second(granted.Lease(s.Acquire(t.Context(), claim("a")))),
				"Renew":    second(s.Renew(t.Context(), l, lease)),
				"Complete": s.Complete(t.Context(), l, dedup.Result{}),
				"Release":  s.Release(t.Context(), l, nil),
				"Inspect":  second(s.Inspect(t.Context(), testKey)),
				"Delete":   s.Delete(t.Context(), testKey),
			} {
				if create := err != nil && strings.Contains(err.Error(), "aws dynamodb create-table --table-name "+testTable); create != (c.keys == nil) {
					t.Errorf("%s: %v; names the command that makes the table: %t", op, err, create)
				}
				if e, ok := errors.AsType[*tableError](err); !ok || e.Table != testTable || !errors.Is(err, c.want) {
					t.Errorf("%s: got %v, want a *tableError that matches %v", op, err, c.want)
				}
			}
		})
	}
}

func TestCreateTableCanBeRepeated(t *testing.T) {
	onBed(t, func(t *testing.T, b *bed) {
		c := b.client(b.srv)
		if err := CreateTable(t.Context(), c, testTable); err != nil {
			t.Errorf("a second time: got error %v, want nil", err)
		}
		b.faults(fault.Rule{Op: "CreateTable", Nth: 1, Do: fault.LoseReply}, fault.Rule{Op: "UpdateTimeToLive", Nth: 1, Do: fault.LoseReply})
		if err := CreateTable(t.Context(), c, "other"); err != nil {
			t.Errorf("with replies lost: got error %v, want nil", err)
		}
	})
}

func TestCreateTableRefusesAnothersTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, key, ttl string
		want           error
	}{
		{"key", "pk", "", ddberror.ErrKeySchema},
		{"TTL", "id", "ttl", ddberror.ErrTTL},
	} {
		runEmpty(t, c.name, func(t *testing.T, b *bed) {
			b.table(keys(c.key), kinds{c.key: "S"}, c.ttl)
			if err := CreateTable(t.Context(), b.client(b.srv), testTable); !errors.Is(err, c.want) {
				t.Errorf("CreateTable: got %v, want %v", err, c.want)
			}
			if err := b.store().Check(t.Context()); !errors.Is(err, c.want) {
				t.Errorf("Check afterwards: got %v, want %v", err, c.want)
			}
		})
	}
}

func TestCreateTableChecksItsArguments(t *testing.T) {
	t.Parallel()
	client := (&bed{}).client(nil)
	for name, err := range map[string]error{
		"client":  CreateTable(t.Context(), nil, testTable),
		"pointer": CreateTable(t.Context(), (*dynamodb.Client)(nil), testTable),
		"table":   CreateTable(t.Context(), client, "x"),
	} {
		if e, ok := errors.AsType[*sqsonce.OptionError](err); !ok || e.Field != strings.Replace(name, "pointer", "client", 1) {
			t.Errorf("CreateTable with a bad %s: got error %v, want a *OptionError that names it", name, err)
		}
	}
}

// OnStoreDownRunAnyway is for a store that is away. A misspelt table is not: without this every event would run unguarded, for ever.
func TestRunAnywayNeedsATable(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"missing": "", "other key": "pk"} {
		synctest.Test(t, func(t *testing.T) {
			b := &bed{T: t, srv: memdynamodb.New()}
			t.Cleanup(b.srv.Close)
			if key != "" {
				b.table(keys(key), kinds{key: "S"}, "")
			}
			once := must.Get(dedup.New(b.store(), "billing", func(o *dedup.Options) { o.OnStoreDown = dedup.OnStoreDownRunAnyway }))(t)
			h := once.Handler(func(context.Context, *sqsonce.Message) error { t.Errorf("%s: the handler ran", name); return nil })
			var wg sync.WaitGroup
			for i := range 3 { // singly, and in a batch
				wg.Go(func() {
					m := order(i)
					m.Attributes = nil
					err := h(t.Context(), m)
					if e, ok := errors.AsType[*tableError](err); !ok || !errors.Is(err, sqsonce.ErrMisconfigured) || e.Table != testTable {
						t.Errorf("%s: got error %v, want *tableError that matches ErrMisconfigured", name, err)
					}
				})
			}
			wg.Wait()
		})
	}
}

// A TTL that is being enabled is good, and one that nothing is known of is not.
func TestTTLStatus(t *testing.T) {
	t.Parallel()
	s := &Store{table: testTable}
	none, _ := errors.AsType[*tableError](s.checkTTL(nil))
	if !errors.Is(none, ddberror.ErrTTL) || slices.Contains(none.Unwrap(), nil) {
		t.Errorf("no description: got %v, which unwraps to %v, want ddberror.ErrTTL and no nil", none, none.Unwrap())
	}
	for status, want := range map[ddbtypes.TimeToLiveStatus]error{
		ddbtypes.TimeToLiveStatusEnabled: nil, ddbtypes.TimeToLiveStatusEnabling: nil,
		ddbtypes.TimeToLiveStatusDisabling: ddberror.ErrTTL, ddbtypes.TimeToLiveStatusDisabled: ddberror.ErrTTL,
	} {
		err := s.checkTTL(&ddbtypes.TimeToLiveDescription{TimeToLiveStatus: status, AttributeName: aws.String(TTLAttribute)})
		if !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), string(status)+" on "+TTLAttribute) {
			t.Errorf("%s: got %v, want %v, with the status and the attribute", status, err, want)
		}
	}
}

func TestCreateTableWithoutTheRightToEnableTTL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{T: t, srv: memdynamodb.New()}
		t.Cleanup(b.srv.Close)
		b.faults(fault.Rule{Op: "UpdateTimeToLive", Nth: 1, Do: fault.Error, Code: "AccessDeniedException"})
		err := CreateTable(t.Context(), b.client(b.srv), testTable)
		if !errors.Is(err, ddberror.ErrTTL) || !strings.Contains(err.Error(), "it cannot be enabled") || !strings.Contains(err.Error(), "AccessDenied") {
			t.Errorf("got %v, want that TTL cannot be enabled, and why", err)
		}
	})
}
