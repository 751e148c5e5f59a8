package dynamooutbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// tableWait limits how long CreateTable waits for the table. DynamoDB takes seconds.
const tableWait = 2 * time.Minute

// The problems of a table, see [Outbox.Check].
var (
	errKeySchema = errors.New("the table's key is not the string pk and the number seq")
	errTTL       = errors.New("the table's TTL is on: it may delete events that were never published")
	errStream    = errors.New("the table has no stream: only the schedule and Drain publish its events")
	errInactive  = errors.New("the table takes no requests")
)

// CreateTable makes the table, with the key pk (S) and seq (N), on-demand billing, a stream of KEYS_ONLY, and without a TTL. It
// waits at most 2 min until the table is active. You can repeat it. It uses a table that exists, and returns an error if that has
// another key or no stream. It doesn't see a TTL, but [Outbox.Check] does.
//
// Create production tables with the tool of your infrastructure. The package documentation has the schema.
func CreateTable(ctx context.Context, c *dynamodb.Client, table string) error {
	if err := errors.Join(checkTarget(c, table)...); err != nil {
		return err
	}
	o := &Outbox{table: table} // describes the table
	_, err := call(ctx, &o.caller, c.CreateTable, &dynamodb.CreateTableInput{
		TableName:   aws.String(table),
		BillingMode: ddbtypes.BillingModePayPerRequest,
		AttributeDefinitions: []ddbtypes.AttributeDefinition{
			{AttributeName: aws.String(attrPK), AttributeType: ddbtypes.ScalarAttributeTypeS},
			{AttributeName: aws.String(attrSeq), AttributeType: ddbtypes.ScalarAttributeTypeN},
		},
		KeySchema: []ddbtypes.KeySchemaElement{
			{AttributeName: aws.String(attrPK), KeyType: ddbtypes.KeyTypeHash},
			{AttributeName: aws.String(attrSeq), KeyType: ddbtypes.KeyTypeRange},
		},
		StreamSpecification: &ddbtypes.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: ddbtypes.StreamViewTypeKeysOnly},
	})
	// In use: another process was first, or the SDK repeated a request whose reply was lost.
	if _, exists := errors.AsType[*ddbtypes.ResourceInUseException](err); err != nil && !exists {
		return o.explain("CreateTable", err)
	}
	waiter := dynamodb.NewTableExistsWaiter(c, func(w *dynamodb.TableExistsWaiterOptions) {
		w.MinDelay, w.MaxDelay = 200*time.Millisecond, 5*time.Second
	})
	if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(table)}, tableWait); err != nil {
		return o.explain("CreateTable", err)
	}
	return o.checkTable(ctx, c)
}

// Check reports the problems of the table. The error joins one error per problem: another key, a TTL, no stream, a table
// that takes no requests. A relay that a schedule or the committing process calls works without a stream. A missing table is
// [outbox.ErrDenied].
//
// Check needs the permissions dynamodb:DescribeTable and dynamodb:DescribeTimeToLive, which the other methods don't need. Call
// it at start, or in a test of the deployment.
func (o *Outbox) Check(ctx context.Context) error {
	ttl, err := call(ctx, &o.caller, o.client.DescribeTimeToLive, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(o.table)})
	if err != nil {
		return o.explain("DescribeTimeToLive", err)
	}
	problems := []error{o.checkTable(ctx, o.client)}
	if d := ttl.TimeToLiveDescription; d == nil {
		problems = append(problems, o.explain("DescribeTimeToLive", errAnswer))
	} else if d.TimeToLiveStatus != ddbtypes.TimeToLiveStatusDisabled {
		problems = append(problems, o.explain("Check", fmt.Errorf("%w (%s on %s)", errTTL, d.TimeToLiveStatus, aws.ToString(d.AttributeName))))
	}
	return errors.Join(problems...)
}

// describer is the part of both clients that describes a table.
type describer interface {
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
}

func (o *Outbox) checkTable(ctx context.Context, c describer) error {
	out, err := call(ctx, &o.caller, c.DescribeTable, &dynamodb.DescribeTableInput{TableName: aws.String(o.table)})
	if err != nil {
		return o.explain("DescribeTable", err)
	}
	t := out.Table
	if t == nil {
		return o.explain("DescribeTable", errAnswer)
	}
	var problems []error
	if t.TableStatus != ddbtypes.TableStatusActive && t.TableStatus != ddbtypes.TableStatusUpdating {
		problems = append(problems, fmt.Errorf("%w (%s)", errInactive, t.TableStatus))
	}
	if found := keySchema(t); found != wantKeySchema {
		problems = append(problems, fmt.Errorf("%w (found %s)", errKeySchema, found))
	}
	if s := t.StreamSpecification; s == nil || !aws.ToBool(s.StreamEnabled) {
		problems = append(problems, errStream)
	}
	return o.explain("Check", errors.Join(problems...))
}

const wantKeySchema = "pk S HASH, seq N RANGE"

func keySchema(t *ddbtypes.TableDescription) (found string) {
	for i, k := range t.KeySchema {
		if i > 0 {
			found += ", "
		}
		kind := ddbtypes.ScalarAttributeType("?")
		for _, a := range t.AttributeDefinitions {
			if aws.ToString(a.AttributeName) == aws.ToString(k.AttributeName) {
				kind = a.AttributeType
			}
		}
		found += fmt.Sprintf("%s %s %s", aws.ToString(k.AttributeName), kind, k.KeyType)
	}
	return found
}
