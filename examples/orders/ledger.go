package orders

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The ledger has one item an account: its balance, and one appended entry for every booking. Neither is idempotent, on
// purpose: booked twice, an order counts twice and is seen twice.

// booking is the write that books an order.
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

func text(s string) ddbtypes.AttributeValue { return &ddbtypes.AttributeValueMemberS{Value: s} }

// CreateLedger creates the table where there is none.
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

// Account is an item of the ledger.
type Account struct {
	Balance int64
	Entries []string // event IDs, in the order they were booked
}

// ReadLedger returns every account.
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
		return "", Account{}, fmt.Errorf("orders: not an item of the ledger: %v", item)
	}
	a := Account{}
	var err error
	if a.Balance, err = strconv.ParseInt(balance.Value, 10, 64); err != nil {
		return "", Account{}, fmt.Errorf("orders: balance of %s: %w", name.Value, err)
	}
	for _, e := range entries.Value {
		id, ok := e.(*ddbtypes.AttributeValueMemberS)
		if !ok {
			return "", Account{}, fmt.Errorf("orders: entry of %s is a %T", name.Value, e)
		}
		a.Entries = append(a.Entries, id.Value)
	}
	return name.Value, a, nil
}
