package ddbtest

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/internal/suite"
)

func (x *exam) describe(table string) (*ddbtypes.TableDescription, error) {
	out, err := x.client().DescribeTable(x.ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		return nil, err
	}
	return out.Table, nil
}

// tryCreate creates a table that should be refused.
func (x *exam) tryCreate(change func(*dynamodb.CreateTableInput)) error {
	in := &dynamodb.CreateTableInput{TableName: aws.String(x.newName()), BillingMode: "PAY_PER_REQUEST"}
	in.KeySchema, in.AttributeDefinitions = schema("id:S")
	change(in)
	_, err := x.client().CreateTable(x.ctx, in)
	return err
}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

var tableCases = []testCase{
	{name: "table/described as created", run: func(x *exam) {
		name := x.use("id:S", "pos:N")
		t := suite.Get(x.describe(name))
		equal(x, "name", aws.ToString(t.TableName), name)
		equal(x, "status", t.TableStatus, ddbtypes.TableStatusActive)
		equal(x, "items", aws.ToInt64(t.ItemCount), 0)
		equal(x, "hash key", aws.ToString(t.KeySchema[0].AttributeName)+" "+string(t.KeySchema[0].KeyType), "id HASH")
		equal(x, "range key", aws.ToString(t.KeySchema[1].AttributeName)+" "+string(t.KeySchema[1].KeyType), "pos RANGE")
		equal(x, "attributes", len(t.AttributeDefinitions), 2)
		if id := aws.ToString(t.TableId); !uuid.MatchString(id) {
			x.fatalf("ID %q, want a UUID", id)
		}
		equal(x, "decreases", aws.ToInt64(t.ProvisionedThroughput.NumberOfDecreasesToday), 0)
		equal(x, "billing", t.BillingModeSummary.BillingMode, ddbtypes.BillingModePayPerRequest)
		if !strings.HasSuffix(aws.ToString(t.TableArn), ":table/"+name) {
			x.fatalf("ARN: got %s, want one that ends in the name", aws.ToString(t.TableArn))
		}
	}},
	// Table names are unique in a Region of an account.
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html
	{name: "table/of another Region", run: func(x *exam) {
		name := x.use("id:S")
		elsewhere := dynamodb.New(x.client().Options(), func(o *dynamodb.Options) {
			if o.Region = "us-east-1"; x.client().Options().Region == o.Region {
				o.Region = "us-west-2"
			}
		})
		_, err := elsewhere.DescribeTable(x.ctx, &dynamodb.DescribeTableInput{TableName: &name})
		x.refused(err, "ResourceNotFoundException")
		_, err = elsewhere.Scan(x.ctx, &dynamodb.ScanInput{TableName: &name})
		x.refused(err, "ResourceNotFoundException")
	}},
	{name: "table/exists already", run: func(x *exam) {
		name := x.use("id:S")
		err := x.tryCreate(func(in *dynamodb.CreateTableInput) { in.TableName = &name })
		x.refused(err, "ResourceInUseException")
	}},
	{name: "table/refused", run: func(x *exam) {
		for what, change := range map[string]func(*dynamodb.CreateTableInput){
			"a short name":            func(in *dynamodb.CreateTableInput) { in.TableName = aws.String("ab") },
			"a long name":             func(in *dynamodb.CreateTableInput) { in.TableName = aws.String(strings.Repeat("n", 256)) },
			"a bad character":         func(in *dynamodb.CreateTableInput) { in.TableName = aws.String("dots and blanks") },
			"a key not defined":       func(in *dynamodb.CreateTableInput) { _, in.AttributeDefinitions = schema("other:S") },
			"a definition not used":   func(in *dynamodb.CreateTableInput) { _, in.AttributeDefinitions = schema("id:S", "more:S") },
			"a type no key has":       func(in *dynamodb.CreateTableInput) { in.KeySchema, in.AttributeDefinitions = schema("id:M") },
			"no hash key":             func(in *dynamodb.CreateTableInput) { in.KeySchema[0].KeyType = "RANGE" },
			"one attribute for both":  func(in *dynamodb.CreateTableInput) { in.KeySchema, _ = schema("id:S", "id:S") },
			"an empty key schema":     func(in *dynamodb.CreateTableInput) { in.KeySchema = []ddbtypes.KeySchemaElement{} },
			"an unknown billing mode": func(in *dynamodb.CreateTableInput) { in.BillingMode = "DOG" },
			"throughput billed twice": func(in *dynamodb.CreateTableInput) { in.ProvisionedThroughput = unitsOf(1, 1) },
			"no throughput":           func(in *dynamodb.CreateTableInput) { in.BillingMode = "PROVISIONED" },
			"no read units":           func(in *dynamodb.CreateTableInput) { in.BillingMode, in.ProvisionedThroughput = "", unitsOf(0, 1) },
			"negative write units":    func(in *dynamodb.CreateTableInput) { in.BillingMode, in.ProvisionedThroughput = "", unitsOf(1, -1) },
			"too many units": func(in *dynamodb.CreateTableInput) {
				in.BillingMode, in.ProvisionedThroughput = "", unitsOf(1, 1_000_000_000_001)
			},
		} {
			x.refusedAs(what, x.tryCreate(change), invalid)
		}
	}},
	{name: "table/deleted with its items", run: func(x *exam) {
		name := x.use("id:S")
		x.fill(m{"id": "a"})
		suite.Get(x.client().DeleteTable(x.ctx, &dynamodb.DeleteTableInput{TableName: &name}))
		wait := dynamodb.NewTableNotExistsWaiter(x.client(), func(o *dynamodb.TableNotExistsWaiterOptions) {
			o.MinDelay, o.MaxDelay = 20*time.Millisecond, time.Second
		})
		x.ok(wait.Wait(x.ctx, &dynamodb.DescribeTableInput{TableName: &name}, time.Minute))
		x.create(&dynamodb.CreateTableInput{TableName: &name}, "id:S")
		x.stored(m{"id": "a"}, nil)
	}},
	{name: "table/unknown", run: func(x *exam) {
		name := x.newName()
		_, err := x.describe(name)
		x.refused(err, notFound)
		if _, typed := errors.AsType[*ddbtypes.ResourceNotFoundException](err); !typed {
			x.fatalf("the error is not typed: %v", err)
		}
		_, err = x.client().DeleteTable(x.ctx, &dynamodb.DeleteTableInput{TableName: &name})
		x.refused(err, notFound)
	}},
	{name: "table/listed in order, page by page", run: func(x *exam) {
		want := []string{x.use("id:S"), x.use("id:S"), x.use("id:S")}
		slices.Sort(want)
		var got []string
		pages := dynamodb.NewListTablesPaginator(x.client(), &dynamodb.ListTablesInput{Limit: aws.Int32(2)})
		for pages.HasMorePages() {
			page := suite.Get(pages.NextPage(x.ctx))
			if len(page.TableNames) > 2 {
				x.fatalf("a page of 2 has %d names", len(page.TableNames))
			}
			got = append(got, page.TableNames...)
		}
		if !slices.IsSorted(got) {
			x.fatalf("got %q, want them sorted", got)
		}
		got = slices.DeleteFunc(got, func(name string) bool { return !slices.Contains(want, name) })
		equal(x, "names", strings.Join(got, " "), strings.Join(want, " "))
	}},
	{name: "table/named by its ARN", run: func(x *exam) {
		t := suite.Get(x.describe(x.use("id:S")))
		x.table = aws.ToString(t.TableArn)
		x.fill(m{"id": "a"})
		x.stored(m{"id": "a"}, m{"id": "a"})
	}},
}

func (x *exam) setTTL(attribute string, enabled bool) error {
	_, err := x.client().UpdateTimeToLive(x.ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: &x.table, TimeToLiveSpecification: &ddbtypes.TimeToLiveSpecification{AttributeName: &attribute, Enabled: &enabled},
	})
	return err
}

func (x *exam) ttl() string {
	out := suite.Get(x.client().DescribeTimeToLive(x.ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &x.table}))
	d := out.TimeToLiveDescription
	return strings.TrimSpace(strings.Replace(string(d.TimeToLiveStatus), "ENABLING", "ENABLED", 1) + " " + aws.ToString(d.AttributeName))
}

// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html
var ttlCases = []testCase{
	{name: "ttl/enabled and described", keys: "id:S", run: func(x *exam) {
		equal(x, "before", x.ttl(), "DISABLED")
		x.ok(x.setTTL("expires", true))
		equal(x, "after", x.ttl(), "ENABLED expires")
		x.refused(x.setTTL("expires", true), invalid)
		x.refused(x.setTTL("other", true), invalid)
	}},
	{name: "ttl/disabled already", keys: "id:S", run: func(x *exam) {
		x.refused(x.setTTL("expires", false), invalid)
	}},
	{name: "ttl/an expired item stands until it is deleted", keys: "id:S", run: func(x *exam) {
		x.ok(x.setTTL("expires", true))
		old := m{"id": "a", "expires": int(time.Now().Unix()) - 1000}
		x.fill(old)
		x.stored(m{"id": "a"}, old)
		x.refused(x.put(m{"id": "a"}, args{condition: isNew}).err, conditionFailed)
	}},
	{name: "ttl/deletes what is expired and nothing else", keys: "id:S", run: func(x *exam) {
		x.ok(x.setTTL("expires", true))
		now := int(time.Now().Unix())
		keep := []m{
			{"id": "later", "expires": now + 1000}, {"id": "never"}, {"id": "a string", "expires": "1"}, {"id": "another attribute", "expired": now - 1000},
			{"id": "over five years ago", "expires": now - 6*365*86400}, {"id": "milliseconds", "expires": now * 1000},
		}
		x.fill(keep...)
		x.fill(m{"id": "expired", "expires": now - 1000})
		x.sweep()
		for _, i := range keep {
			x.stored(m{"id": i["id"]}, i)
		}
		x.stored(m{"id": "expired"}, nil)
	}},
}
