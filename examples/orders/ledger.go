package orders

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce"
)

// booking returns the write that books an order. The ledger has one item for each account: its balance, and an entry for
// each booking. Neither is idempotent, on purpose: an order that is booked twice counts twice, and its entry shows it.
func booking(table string, o Order) *ddbtypes.Update {
	return &ddbtypes.Update{
		TableName:        aws.String(table),
		Key:              map[string]ddbtypes.AttributeValue{"account": text(o.Account)},
		UpdateExpression: aws.String("SET entries = list_append(if_not_exists(entries, :none), :entry) ADD balance :amount"),
		ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{
			":none":   &ddbtypes.AttributeValueMemberL{},
			":entry":  &ddbtypes.AttributeValueMemberL{Value: []ddbtypes.AttributeValue{text(o.ID)}},
			":amount": &ddbtypes.AttributeValueMemberN{Value: strconv.FormatInt(o.Amount, 10)},
		},
	}
}

// BookOnce books an order where no record commits with the booking. The condition of the write refuses an entry that is
// there already: where the record is in another system, an effect must be idempotent by itself.
//
// Where DynamoDB is away the error matches [sqsonce.ErrUnavailable]: the host keeps the message, and does not count a try.
func BookOnce(ctx context.Context, ddb *dynamodb.Client, table string, o Order) error {
	b := booking(table, o)
	b.ExpressionAttributeValues[":id"] = text(o.ID)
	_, err := ddb.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: b.TableName, Key: b.Key, UpdateExpression: b.UpdateExpression, ExpressionAttributeValues: b.ExpressionAttributeValues,
		ConditionExpression: aws.String("attribute_not_exists(entries) OR NOT contains(entries, :id)"),
	})
	if _, booked := errors.AsType[*ddbtypes.ConditionalCheckFailedException](err); booked {
		return nil
	}
	// What the SDK retries has no order as its reason: a broken connection, throttling, a failure of the service.
	if retry.IsErrorRetryables(retry.DefaultRetryables).IsErrorRetryable(err) == aws.TrueTernary {
		return sqsonce.Unavailable(err)
	}
	return err
}

func text(s string) ddbtypes.AttributeValue { return &ddbtypes.AttributeValueMemberS{Value: s} }

// CreateLedger creates the table, unless it exists, and waits until it can be used.
func CreateLedger(ctx context.Context, ddb *dynamodb.Client, table string) error {
	_, err := ddb.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String(table),
		BillingMode:          ddbtypes.BillingModePayPerRequest,
		KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: aws.String("account"), KeyType: ddbtypes.KeyTypeHash}},
		AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String("account"), AttributeType: ddbtypes.ScalarAttributeTypeS}},
	})
	if _, exists := errors.AsType[*ddbtypes.ResourceInUseException](err); err != nil && !exists {
		return err
	}
	return dynamodb.NewTableExistsWaiter(ddb).Wait(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(table)}, time.Minute)
}

// Account is the ledger's item of an account.
type Account struct {
	Balance int64    // in cents
	Entries []string // IDs of the booked events, in the order of the bookings
}

// ReadLedger returns every account, by name.
func ReadLedger(ctx context.Context, ddb *dynamodb.Client, table string) (map[string]Account, error) {
	accounts := map[string]Account{}
	pages := dynamodb.NewScanPaginator(ddb, &dynamodb.ScanInput{TableName: aws.String(table), ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			name, a, err := account(item)
			if err != nil {
				return nil, err
			}
			accounts[name] = a
		}
	}
	return accounts, nil
}

func account(item map[string]ddbtypes.AttributeValue) (string, Account, error) {
	name, isText := item["account"].(*ddbtypes.AttributeValueMemberS)
	balance, isNumber := item["balance"].(*ddbtypes.AttributeValueMemberN)
	entries, isList := item["entries"].(*ddbtypes.AttributeValueMemberL)
	if !isText || !isNumber || !isList {
		return "", Account{}, fmt.Errorf("orders: item of the ledger without account, balance or entries: %v", item)
	}
	a := Account{}
	var err error
	if a.Balance, err = strconv.ParseInt(balance.Value, 10, 64); err != nil {
		return "", Account{}, fmt.Errorf("orders: balance of %s: %w", name.Value, err)
	}
	for _, e := range entries.Value {
		id, ok := e.(*ddbtypes.AttributeValueMemberS)
		if !ok {
			return "", Account{}, fmt.Errorf("orders: entry of %s is a %T, want a string", name.Value, e)
		}
		a.Entries = append(a.Entries, id.Value)
	}
	return name.Value, a, nil
}
