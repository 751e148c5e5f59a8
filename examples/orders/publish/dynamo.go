package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/examples/orders/publishing"
	"github.com/sqsonce/sqsonce/fifo/outbox/dynamooutbox"
)

// placed is the table of orders. An order and its event are one transaction, which also counts the account's events: that number
// is the event's place in its group.
type placed struct {
	db    *dynamodb.Client
	table string
	box   *dynamooutbox.Outbox
}

func openOutbox(cfg aws.Config) (*dynamooutbox.Outbox, error) {
	return dynamooutbox.New(dynamodb.NewFromConfig(cfg), os.Getenv("OUTBOX_TABLE"), cmp.Or(os.Getenv("OUTBOX"), "orders"), publishing.Namespace())
}

func openOrders(_ context.Context, cfg aws.Config) (publishing.Outbox, error) {
	box, err := openOutbox(cfg)
	if err != nil {
		return publishing.Outbox{}, err
	}
	p := &placed{db: dynamodb.NewFromConfig(cfg), table: os.Getenv("ORDERS_TABLE"), box: box}
	if p.table == "" {
		return publishing.Outbox{}, errors.New("environment variable ORDERS_TABLE is empty")
	}
	return publishing.Outbox{Store: box, Commit: p.commit}, nil
}

// errAgain says that the transaction has changed nothing, and would be another one now.
var errAgain = errors.New("orders: the account has changed since it was read")

// commit places orders of one account. Those that were placed before are left out.
func (p *placed) commit(ctx context.Context, account string, events []orders.Event) error {
	for {
		there, version, err := p.read(ctx, account, events)
		if err != nil {
			return err
		}
		todo := slices.DeleteFunc(slices.Clone(events), func(e orders.Event) bool { return there[e.ID] })
		if len(todo) == 0 {
			return nil
		}
		if err := p.place(ctx, account, version, todo); !errors.Is(err, errAgain) {
			return err
		}
	}
}

// read returns which of the orders are placed, and how many events the account has.
func (p *placed) read(ctx context.Context, account string, events []orders.Event) (there map[string]bool, version int64, err error) {
	get := func(id string) types.TransactGetItem {
		return types.TransactGetItem{Get: &types.Get{TableName: &p.table, Key: key(id)}}
	}
	in := &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{get(accountID(account))}}
	for _, e := range events {
		in.TransactItems = append(in.TransactItems, get(e.ID))
	}
	out, err := p.db.TransactGetItems(ctx, in)
	if err != nil {
		return nil, 0, err
	}
	there = map[string]bool{}
	for i, r := range out.Responses {
		switch n, _ := r.Item["version"].(*types.AttributeValueMemberN); {
		case i > 0:
			there[events[i-1].ID] = r.Item != nil
		case n != nil:
			if version, err = strconv.ParseInt(n.Value, 10, 64); err != nil {
				return nil, 0, fmt.Errorf("version of %s: %w", account, err)
			}
		}
	}
	return there, version, nil
}

func (p *placed) place(ctx context.Context, account string, version int64, events []orders.Event) error {
	number := func(n int64) types.AttributeValue {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
	}
	update := &types.Update{
		TableName: &p.table, Key: key(accountID(account)), UpdateExpression: aws.String("SET version = :new"),
		ConditionExpression:       aws.String("version = :old"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":old": number(version), ":new": number(version + int64(len(events)))},
	}
	if version == 0 {
		update.ConditionExpression = aws.String("attribute_not_exists(id)")
		delete(update.ExpressionAttributeValues, ":old")
	}
	items := []types.TransactWriteItem{{Update: update}}
	for i, e := range events {
		item := key(e.ID)
		item["body"] = &types.AttributeValueMemberS{Value: e.Body}
		event, err := p.box.Put(publishing.EventOf(e), version+int64(i)+1)
		if err != nil {
			return err
		}
		items = append(items,
			types.TransactWriteItem{Put: &types.Put{TableName: &p.table, Item: item, ConditionExpression: aws.String("attribute_not_exists(id)")}},
			types.TransactWriteItem{Put: event})
	}
	_, err := p.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items})
	// The account has more events now; or the answer of the same transaction was lost, and the SDK has sent it again.
	if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok && slices.ContainsFunc(cancelled.CancellationReasons, isCondition) {
		return errAgain
	}
	return err
}

func isCondition(r types.CancellationReason) bool {
	return aws.ToString(r.Code) == "ConditionalCheckFailed"
}

func key(id string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}
}

// accountID is the key of an account, which is no order's.
func accountID(account string) string { return "account " + account }
