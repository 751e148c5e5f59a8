package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// tableWait bounds how long CreateTable waits for the table. DynamoDB takes seconds.
const tableWait = 2 * time.Minute

// CreateTable creates a table for a [Store], billed on demand, waits until it is active and enables TTL on it. A table
// of that name that is there already is used where it has the right key, and gets TTL where it has none: the call can be
// repeated. A table that cannot be used is a [*TableError].
//
// Production tables are better made by the infrastructure's own tool: see the package documentation for the schema.
func CreateTable(ctx context.Context, client *dynamodb.Client, table string) error {
	s, err := New(client, table)
	if err != nil {
		return err
	}
	_, err = client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String(table),
		BillingMode:          ddbtypes.BillingModePayPerRequest,
		AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String(attrID), AttributeType: ddbtypes.ScalarAttributeTypeS}},
		KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: aws.String(attrID), KeyType: ddbtypes.KeyTypeHash}},
	})
	// In use: another process was first, or the SDK repeated a call whose reply was lost.
	if _, exists := errors.AsType[*ddbtypes.ResourceInUseException](err); err != nil && !exists {
		return s.explain("create table", err)
	}
	waiter := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 200*time.Millisecond, 5*time.Second
	})
	if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(table)}, tableWait); err != nil {
		return s.explain("wait for table", err)
	}
	if err := s.Check(ctx); !errors.Is(err, ErrTTL) || errors.Is(err, ErrKeySchema) {
		return err
	}
	_, err = client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String(table),
		TimeToLiveSpecification: &ddbtypes.TimeToLiveSpecification{AttributeName: aws.String(TTLAttribute), Enabled: aws.Bool(true)},
	})
	if err != nil {
		// Two processes that found it off at once: the second is told that it is on.
		if s.Check(ctx) == nil {
			return nil
		}
		return &TableError{Table: table, Problem: ErrTTL, Detail: "it cannot be enabled", Err: err}
	}
	return s.Check(ctx)
}

// Check asks DynamoDB whether the table can be used: it exists, its key is the string attribute id alone, and TTL is
// enabled on [TTLAttribute]. Without TTL records would be respected as they should be and never be deleted. The error
// joins one [*TableError] per problem. It needs dynamodb:DescribeTable and dynamodb:DescribeTimeToLive, which nothing
// else does: call it at start, or in a deployment's test.
func (s *Store) Check(ctx context.Context) error {
	var (
		table *dynamodb.DescribeTableOutput
		ttl   *dynamodb.DescribeTimeToLiveOutput
	)
	err := s.retry(ctx, func(ctx context.Context, single func(*dynamodb.Options)) (err error) {
		table, err = s.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(s.table)}, single)
		return err
	})
	if err != nil {
		return s.explain("describe table", err)
	}
	err = s.retry(ctx, func(ctx context.Context, single func(*dynamodb.Options)) (err error) {
		ttl, err = s.client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(s.table)}, single)
		return err
	})
	if err != nil {
		return s.explain("describe TTL", err)
	}
	return errors.Join(s.checkKeySchema(table.Table), s.checkTTL(ttl.TimeToLiveDescription))
}

func (s *Store) checkKeySchema(t *ddbtypes.TableDescription) error {
	if t == nil {
		return &TableError{Table: s.table, Problem: ErrKeySchema, Detail: "no description"}
	}
	var found []string
	ok := len(t.KeySchema) == 1
	for _, k := range t.KeySchema {
		name, kind := aws.ToString(k.AttributeName), ddbtypes.ScalarAttributeType("?")
		for _, a := range t.AttributeDefinitions {
			if aws.ToString(a.AttributeName) == name {
				kind = a.AttributeType
			}
		}
		ok = ok && name == attrID && k.KeyType == ddbtypes.KeyTypeHash && kind == ddbtypes.ScalarAttributeTypeS
		found = append(found, fmt.Sprintf("%s %s %s", name, kind, k.KeyType))
	}
	if ok {
		return nil
	}
	return &TableError{Table: s.table, Problem: ErrKeySchema, Detail: fmt.Sprintf("found %q", found)}
}

func (s *Store) checkTTL(d *ddbtypes.TimeToLiveDescription) error {
	e := &TableError{Table: s.table, Problem: ErrTTL}
	if d == nil {
		return e
	}
	on := d.TimeToLiveStatus == ddbtypes.TimeToLiveStatusEnabled || d.TimeToLiveStatus == ddbtypes.TimeToLiveStatusEnabling
	if on && aws.ToString(d.AttributeName) == TTLAttribute {
		return nil
	}
	e.Detail = string(d.TimeToLiveStatus)
	if d.AttributeName != nil {
		e.Detail += " on " + *d.AttributeName
	}
	return e
}
