package ddbtest

import (
	"context"
	"crypto/rand"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce/internal/suite"
)

// exam is one run of a case on one account. Its methods end the case at the first result that is not as documented.
type exam struct {
	t       *testing.T
	ctx     context.Context
	account Account
	prefix  string // of table names
	table   string // of the calls that name no other
}

func (x *exam) fatalf(format string, args ...any) { suite.Failf(format, args...) }

func (x *exam) client() *dynamodb.Client { return x.account.Client }

// advance lets d pass: at once in a bubble.
func (x *exam) advance(d time.Duration) { time.Sleep(d) }

// sweep deletes the items whose time to live has ended.
func (x *exam) sweep() {
	if x.account.SweepTTL == nil {
		suite.Unsupported("TTL deletes in the background only")
	}
	x.ok(x.account.SweepTTL())
}

// newName returns a table name that nothing else uses.
func (x *exam) newName() string { return x.prefix + "ddbtest-" + rand.Text() }

// use creates a table with the key attributes, written "id:S" and "pos:N". It is the table of later calls.
func (x *exam) use(keys ...string) string { return x.create(&dynamodb.CreateTableInput{}, keys...) }

// addGlobal adds a global index to a table that is to be created.
func addGlobal(in *dynamodb.CreateTableInput, name string, p ddbtypes.Projection, keys ...string) {
	elements, definitions := schema(keys...)
	in.AttributeDefinitions = append(in.AttributeDefinitions, definitions...)
	in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, ddbtypes.GlobalSecondaryIndex{IndexName: &name, KeySchema: elements, Projection: &p})
}

func schema(keys ...string) (elements []ddbtypes.KeySchemaElement, definitions []ddbtypes.AttributeDefinition) {
	for i, k := range keys {
		name, kind, _ := strings.Cut(k, ":")
		role := []ddbtypes.KeyType{"HASH", "RANGE"}[i]
		elements = append(elements, ddbtypes.KeySchemaElement{AttributeName: &name, KeyType: role})
		definitions = append(definitions, ddbtypes.AttributeDefinition{AttributeName: &name, AttributeType: ddbtypes.ScalarAttributeType(kind)})
	}
	return elements, definitions
}

// create creates a table, by default billed on demand under a random name, waits until it exists, and deletes it when the case
// ends. It is the table of later calls. Key attributes that in does not have are written as in use.
func (x *exam) create(in *dynamodb.CreateTableInput, keys ...string) string {
	if len(keys) > 0 {
		in.KeySchema, in.AttributeDefinitions = schema(keys...)
	}
	if in.TableName == nil {
		in.TableName = aws.String(x.newName())
	}
	if in.BillingMode == "" {
		in.BillingMode = ddbtypes.BillingModePayPerRequest
	}
	suite.Get(x.client().CreateTable(x.ctx, in))
	x.table = *in.TableName
	x.t.Cleanup(func() {
		// The test's own context has ended. Its error is of no use: nobody else uses the name.
		_, _ = x.client().DeleteTable(context.WithoutCancel(x.ctx), &dynamodb.DeleteTableInput{TableName: in.TableName})
	})
	wait := dynamodb.NewTableExistsWaiter(x.client(), func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 20*time.Millisecond, time.Second
	})
	x.ok(wait.Wait(x.ctx, &dynamodb.DescribeTableInput{TableName: in.TableName}, time.Minute))
	return x.table
}

// until waits for what a service does in the background.
func (x *exam) until(what string, done func() bool) {
	for i := range 15 * 60 {
		if done() {
			return
		}
		if i > 0 {
			x.advance(time.Second)
		}
	}
	x.fatalf("never %s", what)
}

// ok expects a call to have succeeded.
func (x *exam) ok(err error) {
	if err != nil {
		x.fatalf("got error %v, want success", err)
	}
}

// refused expects an error with the code, and with the text if one is given.
func (x *exam) refused(err error, code string, text ...string) {
	if err == nil {
		x.fatalf("got success, want %s", code)
	}
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok || api.ErrorCode() != code {
		x.fatalf("got error %v, want %s", err, code)
	}
	for _, t := range text {
		if !strings.Contains(api.ErrorMessage(), t) {
			x.fatalf("got %s with %q, want %q", code, api.ErrorMessage(), t)
		}
	}
}

// refusedAs is refused for one of several calls.
func (x *exam) refusedAs(what string, err error, code string) {
	if err == nil {
		x.fatalf("%s: got success, want %s", what, code)
	}
	x.refused(err, code)
}

const (
	invalid         = "ValidationException"
	conditionFailed = "ConditionalCheckFailedException"
	notFound        = "ResourceNotFoundException"
)

// same expects an item; nil is none.
func (x *exam) same(what string, got item, want m) {
	if g, w := showItem(got), showItem(attributes(want)); g != w {
		x.fatalf("%s: got %s, want %s", what, g, w)
	}
}

// list expects items in this order.
func (x *exam) list(what string, got []item, want ...m) {
	var all []item
	for _, i := range want {
		all = append(all, attributes(i))
	}
	if g, w := showItems(got), showItems(all); g != w {
		x.fatalf("%s:\ngot\n%s\nwant\n%s", what, g, w)
	}
}

func equal[T comparable](x *exam, what string, got, want T) {
	if got != want {
		x.fatalf("%s: got %v, want %v", what, got, want)
	}
}

// stored expects the item of the key in the table; nil is none.
func (x *exam) stored(key, want m) {
	out := suite.Get(x.client().GetItem(x.ctx, &dynamodb.GetItemInput{TableName: &x.table, Key: attributes(key), ConsistentRead: aws.Bool(true)}))
	x.same("stored", out.Item, want)
}

var placeholder = regexp.MustCompile(`[:#]\w+`)

// used returns the placeholders that the expressions name: DynamoDB refuses unused ones.
func used[T any](all map[string]T, expressions ...string) map[string]T {
	var out map[string]T
	for _, e := range expressions {
		for _, p := range placeholder.FindAllString(e, -1) {
			if v, ok := all[p]; ok {
				if out == nil {
					out = map[string]T{}
				}
				out[p] = v
			}
		}
	}
	return out
}
