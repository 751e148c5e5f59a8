package contestant

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/bench/internal/job"
)

// hand is the worker that many people write: receive ten messages, start a goroutine for each, delete the message when its
// handler has returned. It is a good one: several receivers, a limit on handlers, deletes that a stop does not cancel, and
// a stop that waits for the handlers.
func hand(ctx context.Context, j job.Job, effects *Effects) error {
	client := sqsClient(j, httpClient())
	return handLoop(ctx, client, j, func(m sqstypes.Message) error {
		effects.Handle(aws.ToString(m.Body), j.HandlerTime())
		return handDelete(client, j, m)
	})
}

// handLoop runs handle for each message, at most j.Slots at once.
func handLoop(ctx context.Context, client *sqs.Client, j job.Job, handle func(sqstypes.Message) error) error {
	slots := make(chan struct{}, j.Slots)
	var receiving, handling sync.WaitGroup
	for range max(1, j.Slots/10) {
		receiving.Go(func() {
			for ctx.Err() == nil {
				out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
					QueueUrl: aws.String(j.QueueURL), MaxNumberOfMessages: 10, WaitTimeSeconds: 20,
				})
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					fmt.Fprintln(os.Stderr, j.Contestant+":", err)
					time.Sleep(time.Second)
					continue
				}
				for _, m := range out.Messages {
					slots <- struct{}{}
					handling.Go(func() {
						defer func() { <-slots }()
						if err := handle(m); err != nil {
							fmt.Fprintln(os.Stderr, j.Contestant+":", err)
						}
					})
				}
			}
		})
	}
	receiving.Wait()
	handling.Wait()
	return nil
}

func handDelete(client *sqs.Client, j job.Job, m sqstypes.Message) error {
	_, err := client.DeleteMessage(context.Background(), &sqs.DeleteMessageInput{
		QueueUrl: aws.String(j.QueueURL), ReceiptHandle: m.ReceiptHandle,
	})
	return err
}

// handDDB is hand with the protocol of Powertools for AWS Lambda: a conditional put before the handler, an update after
// it. As in Powertools, the record has no owner, and the update has no condition.
func handDDB(ctx context.Context, j job.Job, effects *Effects) error {
	client, records := sqsClient(j, httpClient()), &handRecords{client: dynamodbClient(j, httpClient()), job: j}
	return handLoop(ctx, client, j, func(m sqstypes.Message) error {
		key := "bench#" + job.EventID(job.Number(aws.ToString(m.Body)))
		switch acquired, completed, err := records.acquire(key); {
		case err != nil:
			return err
		case completed:
			return handDelete(client, j, m)
		case !acquired:
			return nil // in progress elsewhere: the message is visible again when its visibility timeout ends
		}
		effects.Handle(aws.ToString(m.Body), j.HandlerTime())
		if err := records.complete(key); err != nil {
			return err
		}
		return handDelete(client, j, m)
	})
}

type handRecords struct {
	client *dynamodb.Client
	job    job.Job
}

// handRetention is Powertools' default.
const handRetention = time.Hour

// acquire writes the record under Powertools' condition. The record lease is as long as the visibility timeout.
func (r *handRecords) acquire(key string) (acquired, completed bool, err error) {
	now := time.Now()
	_, err = r.client.PutItem(context.Background(), &dynamodb.PutItemInput{
		TableName: aws.String(r.job.Table),
		Item: map[string]ddbtypes.AttributeValue{
			"id":                     &ddbtypes.AttributeValueMemberS{Value: key},
			"status":                 &ddbtypes.AttributeValueMemberS{Value: "INPROGRESS"},
			"expiration":             decimal(now.Add(handRetention).Unix()),
			"in_progress_expiration": decimal(now.Add(time.Duration(r.job.Visibility) * time.Second).UnixMilli()),
		},
		ConditionExpression: aws.String("attribute_not_exists(#id) OR #expiry < :now OR " +
			"(#status = :inprogress AND attribute_exists(#in_progress_expiry) AND #in_progress_expiry < :now_in_millis)"),
		ExpressionAttributeNames: map[string]string{
			"#id": "id", "#expiry": "expiration", "#status": "status", "#in_progress_expiry": "in_progress_expiration",
		},
		ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{
			":now": decimal(now.Unix()), ":now_in_millis": decimal(now.UnixMilli()),
			":inprogress": &ddbtypes.AttributeValueMemberS{Value: "INPROGRESS"},
		},
		ReturnValuesOnConditionCheckFailure: ddbtypes.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if refused, ok := errors.AsType[*ddbtypes.ConditionalCheckFailedException](err); ok {
		status, _ := refused.Item["status"].(*ddbtypes.AttributeValueMemberS)
		return false, status != nil && status.Value == "COMPLETED", nil
	}
	return err == nil, false, err
}

func (r *handRecords) complete(key string) error {
	_, err := r.client.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{
		TableName:                aws.String(r.job.Table),
		Key:                      map[string]ddbtypes.AttributeValue{"id": &ddbtypes.AttributeValueMemberS{Value: key}},
		UpdateExpression:         aws.String("SET #expiry = :expiry, #status = :status"),
		ExpressionAttributeNames: map[string]string{"#expiry": "expiration", "#status": "status"},
		ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{
			":expiry": decimal(time.Now().Add(handRetention).Unix()),
			":status": &ddbtypes.AttributeValueMemberS{Value: "COMPLETED"},
		},
	})
	return err
}

func decimal(n int64) *ddbtypes.AttributeValueMemberN {
	return &ddbtypes.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
