package dynamooutbox

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

// problems are those of a table that an error matches.
func problems(err error) (names string) {
	for _, p := range []struct {
		err  error
		name string
	}{{errKeySchema, "key "}, {errTTL, "TTL "}, {errStream, "stream "}, {errInactive, "inactive "}, {outbox.ErrDenied, "denied "}} {
		if errors.Is(err, p.err) {
			names += p.name
		}
	}
	if names == "" && err != nil {
		return "other"
	}
	return names
}

// tableAs makes a table of a key "NAME TYPE", and a range key if it has one.
func tableAs(b *bed, hash, hashType, sort, sortType string, stream ddbtypes.StreamViewType, ttl string) {
	b.Helper()
	in := &dynamodb.CreateTableInput{
		TableName: aws.String(testTable), BillingMode: ddbtypes.BillingModePayPerRequest,
		AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String(hash), AttributeType: ddbtypes.ScalarAttributeType(hashType)}},
		KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: aws.String(hash), KeyType: ddbtypes.KeyTypeHash}},
	}
	if sort != "" {
		in.AttributeDefinitions = append(in.AttributeDefinitions, ddbtypes.AttributeDefinition{AttributeName: aws.String(sort), AttributeType: ddbtypes.ScalarAttributeType(sortType)})
		in.KeySchema = append(in.KeySchema, ddbtypes.KeySchemaElement{AttributeName: aws.String(sort), KeyType: ddbtypes.KeyTypeRange})
	}
	if stream != "" {
		in.StreamSpecification = &ddbtypes.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: stream}
	}
	must.Get(b.ddb.CreateTable(b.Context(), in))(b)
	if ttl == "" {
		return
	}
	must.Get(b.ddb.UpdateTimeToLive(b.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName: aws.String(testTable), TimeToLiveSpecification: &ddbtypes.TimeToLiveSpecification{AttributeName: aws.String(ttl), Enabled: aws.Bool(true)},
	}))(b)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	const keys, all = ddbtypes.StreamViewTypeKeysOnly, ddbtypes.StreamViewTypeNewAndOldImages
	for name, c := range map[string]struct {
		make   func(b *bed)
		check  string
		create string // of CreateTable, which cannot see a TTL
	}{
		"good":            {func(b *bed) { tableAs(b, "pk", "S", "seq", "N", keys, "") }, "", ""},
		"images":          {func(b *bed) { tableAs(b, "pk", "S", "seq", "N", all, "") }, "", ""},
		"no stream":       {func(b *bed) { tableAs(b, "pk", "S", "seq", "N", "", "") }, "stream ", "stream "},
		"TTL":             {func(b *bed) { tableAs(b, "pk", "S", "seq", "N", keys, "expiration") }, "TTL ", ""},
		"TTL, no stream":  {func(b *bed) { tableAs(b, "pk", "S", "seq", "N", "", "created_at") }, "TTL stream ", "stream "},
		"no range key":    {func(b *bed) { tableAs(b, "pk", "S", "", "", keys, "") }, "key ", "key "},
		"seq is a string": {func(b *bed) { tableAs(b, "pk", "S", "seq", "S", keys, "") }, "key ", "key "},
		"other names":     {func(b *bed) { tableAs(b, "id", "S", "n", "N", "", "ttl") }, "key TTL stream ", "key stream "},
		"missing":         {func(*bed) {}, "denied ", ""},
	} {
		must.RunParallel(t, name, func(t *testing.T) {
			b := &bed{T: t, srv: memdynamodb.New()}
			t.Cleanup(b.srv.Close)
			b.ddb = testaws.DynamoDB(b.srv)
			b.box = b.outbox(b.ddb, testBox)
			c.make(b)
			if err := b.box.Check(b.Context()); problems(err) != c.check {
				b.Errorf("Check: got %v, want %q", err, c.check)
			}
			if err := CreateTable(b.Context(), b.ddb, testTable); problems(err) != c.create {
				b.Errorf("CreateTable: got %v, want %q", err, c.create)
			}
		})
	}
}

// CreateTable makes what Check wants, and can be repeated, also after a lost reply.
func TestCreateTable(t *testing.T) {
	bubble(t, func(b *bed) {
		must.Do(b, CreateTable(b.Context(), b.ddb, testTable))
		b.faults(fault.Rule{Op: "CreateTable", Nth: 1, Do: fault.LoseReply})
		must.Do(b, CreateTable(b.Context(), b.ddb, "other"))
		must.Do(b, b.box.Check(b.Context()))
		out, err := b.ddb.DescribeTable(b.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("other")})
		if err != nil || out.Table.StreamSpecification.StreamViewType != ddbtypes.StreamViewTypeKeysOnly {
			b.Errorf("got %v, %v, want a stream of keys", out, err)
		}
		b.faults(fault.Rule{Op: "CreateTable", Prob: 1, Do: fault.Error, Code: "AccessDeniedException"})
		if err := CreateTable(b.Context(), b.ddb, "third"); !errors.Is(err, outbox.ErrDenied) {
			b.Errorf("got %v, want ErrDenied", err)
		}
	})
	for name, err := range map[string]error{
		"client": CreateTable(t.Context(), nil, testTable),
		"table":  CreateTable(t.Context(), testaws.DynamoDB(nil), "x"),
	} {
		if fields(err) != name {
			t.Errorf("got %v, want a OptionError of %s", err, name)
		}
	}
}

// describeLens is a client whose descriptions a test gives.
type describeLens struct {
	Client
	table *dynamodb.DescribeTableOutput
	ttl   *dynamodb.DescribeTimeToLiveOutput
}

func (l *describeLens) DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return l.table, nil
}

func (l *describeLens) DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	return l.ttl, nil
}

// What the server in memory does not show: tables that are being made, and answers that are none.
func TestCheckOfOtherAnswers(t *testing.T) {
	t.Parallel()
	table := func(status ddbtypes.TableStatus) *dynamodb.DescribeTableOutput {
		return &dynamodb.DescribeTableOutput{Table: &ddbtypes.TableDescription{
			TableStatus:          status,
			StreamSpecification:  &ddbtypes.StreamSpecification{StreamEnabled: aws.Bool(true)},
			KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: "HASH"}, {AttributeName: aws.String("seq"), KeyType: "RANGE"}},
			AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String("seq"), AttributeType: "N"}, {AttributeName: aws.String("pk"), AttributeType: "S"}},
		}}
	}
	ttl := func(status ddbtypes.TimeToLiveStatus) *dynamodb.DescribeTimeToLiveOutput {
		return &dynamodb.DescribeTimeToLiveOutput{TimeToLiveDescription: &ddbtypes.TimeToLiveDescription{TimeToLiveStatus: status}}
	}
	off := table("ACTIVE")
	off.Table.StreamSpecification.StreamEnabled = aws.Bool(false)
	for name, c := range map[string]struct {
		table *dynamodb.DescribeTableOutput
		ttl   *dynamodb.DescribeTimeToLiveOutput
		want  string
	}{
		"active":       {table("ACTIVE"), ttl("DISABLED"), ""},
		"updating":     {table("UPDATING"), ttl("DISABLED"), ""},
		"creating":     {table("CREATING"), ttl("DISABLED"), "inactive "},
		"no key":       {table("INACCESSIBLE_ENCRYPTION_CREDENTIALS"), ttl("DISABLED"), "inactive "},
		"enabling":     {table("ACTIVE"), ttl("ENABLING"), "TTL "},
		"disabling":    {table("ACTIVE"), ttl("DISABLING"), "TTL "},
		"stream off":   {off, ttl("DISABLED"), "stream "},
		"nil table":    {nil, ttl("DISABLED"), "other"},
		"empty table":  {&dynamodb.DescribeTableOutput{}, ttl("DISABLED"), "other"},
		"nil TTL":      {table("ACTIVE"), nil, "other"},
		"no TTL":       {table("ACTIVE"), &dynamodb.DescribeTimeToLiveOutput{}, "other"},
		"both missing": {&dynamodb.DescribeTableOutput{}, &dynamodb.DescribeTimeToLiveOutput{}, "other"},
	} {
		o := (&bed{T: t}).outbox(&describeLens{testaws.DynamoDB(nil), c.table, c.ttl}, testBox)
		if err := o.Check(t.Context()); problems(err) != c.want {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// A relay drains a table that has no stream.
func TestDrainWithoutAStream(t *testing.T) {
	onRig(t, func(x *rig) {
		must.Get(x.ddb.DeleteTable(x.Context(), &dynamodb.DeleteTableInput{TableName: aws.String(testTable)}))(x)
		tableAs(x.bed, "pk", "S", "seq", "N", "", "")
		x.mustCommit("g", 0, 3)
		time.Sleep(time.Minute)
		if _, err := x.relay(x.box).Sweep(x.Context()); err != nil {
			x.Error(err)
		}
		if p := x.problem("g", 3); p != "" {
			x.Error(p)
		}
	})
}
