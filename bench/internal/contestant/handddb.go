package contestant

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/bench/internal/job"
)

// handDDB is hand with the protocol of Powertools for AWS Lambda written out: a conditional put before the handler, an
// update after it. Neither update nor takeover knows an owner, as there.
func handDDB(ctx context.Context, j job.Job, l *Ledger) error {
	client, records := sqsClient(j, httpClient()), &handRecords{client: dynamodbClient(j, httpClient()), job: j}
	return handLoop(ctx, client, j, func(m sqstypes.Message) error {
		key := "bench#" + job.EventID(job.Number(aws.ToString(m.Body)))
		switch fresh, completed, err := records.begin(key); {
		case err != nil:
			return err
		case completed:
			return handDelete(client, j, m)
		case !fresh:
			return nil // in progress elsewhere: the message comes back when its visibility timeout ends
		}
		l.Handle(aws.ToString(m.Body), j.HandlerTime())
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

// begin is Powertools' condition. The lease is as long as the message is hidden.
func (r *handRecords) begin(key string) (fresh, completed bool, err error) {
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
