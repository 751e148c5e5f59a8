package dynamooutbox_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/fifo/outbox/dynamooutbox"
)

// Not every version of the order has an event: the order counts its events in a number of its own.
func ExampleOutbox_Put_ownNumber() {
	ctx := context.Background()
	c, box := newShop(ctx)

	n := c.number(ctx, "orders", "ord-42", "events") // read with the order
	event, err := box.Put(fifo.Event{ID: fmt.Sprintf("ord-42/e%d", n+1), Group: "ord-42", Body: `{"shipped":true}`}, n+1)
	if err != nil {
		log.Fatal(err)
	}
	_, err = c.ddb.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []ddbtypes.TransactWriteItem{
		{Update: setNumber("orders", "ord-42", "events", n, n+1)}, // events = n + 1 IF events = n
		{Put: event},
	}})
	if err != nil {
		log.Fatal(err)
	}

	c.drain(ctx, box, "ord-42")
	// Output: ord-42 shop|ord-42/e1 {"shipped":true}
}

// Several events of one transaction have consecutive numbers, in the order in which they are published.
func ExampleOutbox_Put_severalEvents() {
	ctx := context.Background()
	c, box := newShop(ctx)

	n := c.number(ctx, "orders", "ord-42", "events")
	paid, err := box.Put(fifo.Event{ID: fmt.Sprintf("ord-42/e%d", n+1), Group: "ord-42", Body: `{"paid":true}`}, n+1)
	if err != nil {
		log.Fatal(err)
	}
	shipped, err := box.Put(fifo.Event{ID: fmt.Sprintf("ord-42/e%d", n+2), Group: "ord-42", Body: `{"shipped":true}`}, n+2)
	if err != nil {
		log.Fatal(err)
	}
	_, err = c.ddb.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []ddbtypes.TransactWriteItem{
		{Update: setNumber("orders", "ord-42", "events", n, n+2)}, // events = n + 2 IF events = n
		{Put: paid},
		{Put: shipped},
	}})
	if err != nil {
		log.Fatal(err)
	}

	c.drain(ctx, box, "ord-42")
	// Output:
	// ord-42 shop|ord-42/e1 {"paid":true}
	// ord-42 shop|ord-42/e2 {"shipped":true}
}

// Nothing that the transaction writes has a number: the group gets an item for it. Who loses the race for a number reads it again.
func ExampleOutbox_Put_noAggregate() {
	ctx := context.Background()
	c, box := newShop(ctx)

	emit := func(receipt string) error {
		for try := 1; ; try++ {
			n := c.number(ctx, "orders", "number of till-7", "events")
			event, err := box.Put(fifo.Event{ID: receipt, Group: "till-7", Body: `{"cents":4200}`}, n+1)
			if err != nil {
				return err
			}
			_, err = c.ddb.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []ddbtypes.TransactWriteItem{
				{Update: setNumber("orders", "number of till-7", "events", n, n+1)},
				{Put: event},
			}})
			if _, raced := errors.AsType[*ddbtypes.TransactionCanceledException](err); !raced || try == 10 {
				return err
			}
		}
	}
	for _, receipt := range []string{"receipt-1", "receipt-2"} {
		if err := emit(receipt); err != nil {
			log.Fatal(err)
		}
	}

	c.drain(ctx, box, "till-7")
	// Output:
	// till-7 shop|receipt-1 {"cents":4200}
	// till-7 shop|receipt-2 {"cents":4200}
}

// An event that has no order against any other is a group of its own, and its number is 1.
func ExampleOutbox_Put_noOrder() {
	ctx := context.Background()
	c, box := newShop(ctx)

	event, err := box.Put(fifo.Event{ID: "mail-9", Group: "mail-9", Body: `{"to":"ann"}`}, 1)
	if err != nil {
		log.Fatal(err)
	}
	_, err = c.ddb.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []ddbtypes.TransactWriteItem{
		{Update: setNumber("orders", "ord-42", "mails", 0, 1)}, // the business write, under a condition that holds once
		{Put: event},
	}})
	if err != nil {
		log.Fatal(err)
	}

	c.drain(ctx, box, "mail-9")
	// Output: mail-9 shop|mail-9 {"to":"ann"}
}

func newShop(ctx context.Context) (*clients, *dynamooutbox.Outbox) {
	c := newClients(ctx)
	box, err := dynamooutbox.New(c.ddb, "outbox", "orders", "shop")
	if err != nil {
		log.Fatal(err)
	}
	return c, box
}

// drain publishes the group, and prints the queue.
func (c *clients) drain(ctx context.Context, box *dynamooutbox.Outbox, group string) {
	relay, err := outbox.NewRelay(box, c.publisher("shop"))
	if err != nil {
		log.Fatal(err)
	}
	if err := relay.Drain(ctx, group); err != nil {
		log.Fatal(err)
	}
	for _, m := range c.queue.Messages(c.url) {
		fmt.Println(m.Group, m.DedupID, m.Body)
	}
}

// number returns an item's number, 0 without one.
func (c *clients) number(ctx context.Context, table, id, name string) int64 {
	out, err := c.ddb.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(table), ConsistentRead: aws.Bool(true),
		Key: map[string]ddbtypes.AttributeValue{"id": &ddbtypes.AttributeValueMemberS{Value: id}},
	})
	if err != nil {
		log.Fatal(err)
	}
	a, ok := out.Item[name].(*ddbtypes.AttributeValueMemberN)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(a.Value, 10, 64)
	if err != nil {
		log.Fatal(err)
	}
	return n
}

// setNumber is the write of an item's number under the condition that it is still the one that was read.
func setNumber(table, id, name string, read, next int64) *ddbtypes.Update {
	number := func(n int64) ddbtypes.AttributeValue {
		return &ddbtypes.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
	}
	u := &ddbtypes.Update{
		TableName:                 aws.String(table),
		Key:                       map[string]ddbtypes.AttributeValue{"id": &ddbtypes.AttributeValueMemberS{Value: id}},
		UpdateExpression:          aws.String("SET #n = :next"),
		ConditionExpression:       aws.String("#n = :read"),
		ExpressionAttributeNames:  map[string]string{"#n": name},
		ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{":next": number(next), ":read": number(read)},
	}
	if read == 0 {
		u.ConditionExpression = aws.String("attribute_not_exists(#n)")
		delete(u.ExpressionAttributeValues, ":read")
	}
	return u
}
