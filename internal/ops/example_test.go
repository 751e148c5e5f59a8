package ops_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// What lies in the dead-letter queue, and what to do with it.
func Example() {
	ctx := context.Background()
	client, dlqURL, store := exampleQueues()

	// The consumer's name and options, as it has them.
	once, err := dedup.New(store, "billing")
	if err != nil {
		log.Fatal(err)
	}
	dlq, err := ops.Open(ctx, client, dlqURL, func(o *ops.Options) { o.Key, o.Store = once.Key, store })
	if err != nil {
		log.Fatal(err)
	}
	listing, err := dlq.List(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range listing.Messages {
		fmt.Printf("%s: %s, %s\n", m.RecordKey, m.State, m.Class.Text)
	}
	// Output:
	// billing#orders|ord-42: released, card provider: status *
}

// A consumer with a key function of its own: the same options make the same keys.
func ExampleOptions_key() {
	ctx := context.Background()
	client, dlqURL, store := exampleQueues()

	once, err := dedup.New(store, "shipping", func(o *dedup.Options) {
		o.Key = func(m *sqsonce.Message) (string, error) { return sqsonce.EventKey("shop", m.Body) }
	})
	if err != nil {
		log.Fatal(err)
	}
	dlq, err := ops.Open(ctx, client, dlqURL, func(o *ops.Options) { o.Key, o.Store = once.Key, store })
	if err != nil {
		log.Fatal(err)
	}
	listing, err := dlq.List(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range listing.Messages {
		fmt.Printf("%s: %s\n", m.RecordKey, m.State)
	}
	// Output:
	// shipping#shop|order-42: unknown
}

// A message leaves the dead-letter queue when its line is on the disk, and comes back as the same event.
func ExampleDLQ_Delete() {
	ctx := context.Background()
	client, dlqURL, store := exampleQueues()
	once, err := dedup.New(store, "billing")
	if err != nil {
		log.Fatal(err)
	}
	dlq, err := ops.Open(ctx, client, dlqURL, func(o *ops.Options) { o.Key, o.Store = once.Key, store })
	if err != nil {
		log.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "orders-dlq.jsonl")

	report, err := dlq.Delete(ctx, path, func(o *ops.ExportOptions) { o.States = []dedup.RecordState{dedup.StateReleased} })
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Count(ops.ActionDeleted), "deleted")

	file, err := os.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	for m, err := range ops.ReadArchive(file) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(m.RecordKey, m.State, m.Body)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		log.Fatal(err)
	}
	report, err = dlq.Restore(ctx, file)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Count(ops.ActionRestored), "restored")
	// Output:
	// 1 deleted
	// billing#orders|ord-42 released order-42
	// 1 restored
}

// An event that was done wrongly runs again. It takes 65 s, and more.
func ExampleDLQ_Replay() {
	ctx := context.Background()
	client, dlqURL, store := exampleQueues()

	once, err := dedup.New(store, "billing")
	if err != nil {
		log.Fatal(err)
	}
	dlq, err := ops.Open(ctx, client, dlqURL, func(o *ops.Options) { o.Key, o.Store = once.Key, store })
	if err != nil {
		log.Fatal(err)
	}
	listing, err := dlq.List(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range listing.Messages {
		if m.RecordKey != "billing#orders|ord-42" || m.State != dedup.StateCompleted {
			continue
		}
		result, err := dlq.Replay(ctx, m, "charged in the wrong currency, refunded by hand", func(o *ops.ReplayOptions) {
			o.Again = m.Record.Fence // the run that was looked at, and no later one
			o.Progress = func(sent bool, left time.Duration) { fmt.Println(sent, left.Round(time.Second)) }
		})
		if errors.Is(err, ops.ErrReopened) {
			log.Fatal(err) // the same call goes on
		}
		fmt.Println(result.Action, result.After, err)
	}
}

// exampleQueues returns a dead-letter queue in memory with one event, which has failed in the consumer billing.
func exampleQueues() (*sqs.Client, string, *memstore.Store) {
	ctx := context.Background()
	client := sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://sqs.local"), HTTPClient: &http.Client{Transport: memsqs.New()},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
		}),
	})
	dlq, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("orders-dlq")})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("orders"), Attributes: map[string]string{
		"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:orders-dlq","maxReceiveCount":5}`,
	}}); err != nil {
		log.Fatal(err)
	}
	text := func(s string) sqstypes.MessageAttributeValue {
		return sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: &s}
	}
	if _, err := client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: dlq.QueueUrl, MessageBody: aws.String("order-42"),
		MessageAttributes: map[string]sqstypes.MessageAttributeValue{
			sqsonce.AttrEventID: text("ord-42"), sqsonce.AttrEventSource: text("orders"),
		}}); err != nil {
		log.Fatal(err)
	}
	store := memstore.New()
	once, err := dedup.New(store, "billing")
	if err != nil {
		log.Fatal(err)
	}
	_ = once.Handler(func(context.Context, *sqsonce.Message) error { return errors.New("card provider: status 503") })(ctx, &sqsonce.Message{
		Attributes: map[string]sqsonce.Attribute{
			sqsonce.AttrEventID: {Type: "String", String: "ord-42"}, sqsonce.AttrEventSource: {Type: "String", String: "orders"},
		},
	})
	return client, *dlq.QueueUrl, store
}
