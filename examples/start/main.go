// Command start books orders in a ledger, once each, whatever happens to its process. docs/start.md explains it.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/sqsworker"
)

type order struct {
	ID    string
	Cents int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	commands := map[string]func(context.Context, aws.Config) error{"publish": publish, "work": work, "show": show}
	if len(os.Args) != 2 || commands[os.Args[1]] == nil {
		log.Fatal("usage: start publish | work | show")
	}
	if err := commands[os.Args[1]](ctx, cfg); err != nil {
		log.Fatal(err)
	}
}

// publish sends an order. A producer that got no answer calls it again, with the same ID.
func publish(ctx context.Context, cfg aws.Config) error {
	p, err := fifo.NewPublisher(sqs.NewFromConfig(cfg), os.Getenv("QUEUE_URL"), "orders")
	if err != nil {
		return err
	}
	_, err = p.Publish(ctx, fifo.Event{ID: "ord-42/v1", Body: `{"ID":"ord-42","Cents":1200}`})
	return err
}

// work handles orders until it is stopped.
func work(ctx context.Context, cfg aws.Config) error {
	store, err := dynamostore.New(dynamodb.NewFromConfig(cfg), "dedup") // the table of the records
	if err != nil {
		return err
	}
	if err := store.Check(ctx); err != nil {
		return err
	}
	inbox, err := dynamostore.NewInbox(store, "ledger") // the consumer's name
	if err != nil {
		return err
	}
	w, err := sqsworker.New(sqs.NewFromConfig(cfg), os.Getenv("QUEUE_URL"), report(inbox.Handler(book)))
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// book adds the order to the ledger. What it gives to tx is committed with the event's record, or not at all.
func book(ctx context.Context, m *sqsonce.Message, tx *dynamostore.Tx) error {
	o, err := sqsonce.Decode[order](m)
	if err != nil {
		return err
	}
	tx.Update(&ddbtypes.Update{
		TableName:        aws.String("ledger"),
		Key:              ledgerKey(o.ID),
		UpdateExpression: aws.String("ADD bookings :one, cents :cents"),
		ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{
			":one":   &ddbtypes.AttributeValueMemberN{Value: "1"},
			":cents": &ddbtypes.AttributeValueMemberN{Value: fmt.Sprint(o.Cents)},
		},
	})
	fmt.Println("booking", o.ID)
	select {
	case <-time.After(15 * time.Second): // slow work, so that there is time to kill the process
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// report prints which messages are done. The worker deletes them next.
func report(h sqsonce.Handler) sqsonce.Handler {
	return func(ctx context.Context, m *sqsonce.Message) error {
		err := h(ctx, m)
		if err == nil {
			fmt.Println("done: message", m.ID)
		}
		return err
	}
}

// show prints the order's line of the ledger.
func show(ctx context.Context, cfg aws.Config) error {
	out, err := dynamodb.NewFromConfig(cfg).GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String("ledger"), Key: ledgerKey("ord-42"), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return err
	}
	bookings, _ := out.Item["bookings"].(*ddbtypes.AttributeValueMemberN)
	cents, _ := out.Item["cents"].(*ddbtypes.AttributeValueMemberN)
	if bookings == nil || cents == nil {
		fmt.Println("ord-42: not booked")
		return nil
	}
	fmt.Printf("ord-42: bookings %s, cents %s\n", bookings.Value, cents.Value)
	return nil
}

func ledgerKey(id string) map[string]ddbtypes.AttributeValue {
	return map[string]ddbtypes.AttributeValue{"id": &ddbtypes.AttributeValueMemberS{Value: id}}
}
