package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/awserr"
)

// attempt is a call that cannot have an effect. That AWS refuses what it asks for shows that the caller may ask.
type attempt struct {
	action, on string
	call       func(context.Context) error
	expected   func(error) bool
}

// probe is I3: calls of a consumer that change nothing, as the caller. It has a finding for each.
func probe(ctx context.Context, e *examination) []Finding {
	if !e.Probe {
		return nil
	}
	var attempts []attempt
	var never []Finding // what no call can show
	if e.QueueURL != "" {
		never = append(never, Finding{
			ID: "I3", Verdict: Skip, Text: "sqs:ReceiveMessage and sqs:SendMessage are not probed, because they would receive and send messages: I2 simulates them",
		})
		if e.NoQueue != nil {
			never = append(never, unseen("I3", e.NoQueue))
		} else if e.SQS == nil {
			never = append(never, unseen("I3", errNoClient))
		} else {
			attempts = append(attempts, e.queueAttempts()...)
		}
	}
	if e.Table != "" {
		never = append(never, Finding{
			ID: "I3", Verdict: Skip, Text: "dynamodb:PartiQLInsert is not probed, because an insert could succeed: I2 simulates it",
		})
		if e.DynamoDB == nil {
			never = append(never, unseen("I3", errNoClient))
		} else {
			attempts = append(attempts, e.tableAttempts()...)
		}
	}
	var found []Finding
	for _, a := range attempts {
		found = append(found, a.make(ctx))
	}
	return append(found, never...)
}

func (e *examination) queueAttempts() []attempt {
	handle := aws.String("sqsonce-doctor-" + rand.Text())
	refused := func(err error) bool {
		_, ok := errors.AsType[*sqstypes.ReceiptHandleIsInvalid](err)
		return ok
	}
	queue := "queue " + e.QueueURL[strings.LastIndex(e.QueueURL, "/")+1:]
	return []attempt{
		{"sqs:DeleteMessage", queue, func(ctx context.Context) error {
			_, err := e.SQS.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &e.QueueURL, ReceiptHandle: handle})
			return err
		}, refused},
		{"sqs:ChangeMessageVisibility", queue, func(ctx context.Context) error {
			_, err := e.SQS.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: &e.QueueURL, ReceiptHandle: handle, VisibilityTimeout: 30})
			return err
		}, refused},
	}
}

func (e *examination) tableAttempts() []attempt {
	// A record's key begins with its consumer's name, which is not empty.
	id := &ddbtypes.AttributeValueMemberS{Value: "#sqsonce-doctor-" + rand.Text()}
	refused := func(err error) bool {
		_, ok := errors.AsType[*ddbtypes.ConditionalCheckFailedException](err)
		return ok
	}
	table := "table " + e.Table
	return []attempt{
		{"dynamodb:UpdateItem", table, func(ctx context.Context) error {
			_, err := e.DynamoDB.UpdateItem(ctx, &dynamodb.UpdateItemInput{
				TableName: &e.Table, Key: map[string]ddbtypes.AttributeValue{"id": id},
				UpdateExpression:          aws.String("SET #owner = :owner"),
				ConditionExpression:       aws.String("attribute_exists(#id) AND attribute_not_exists(#id)"),
				ExpressionAttributeNames:  map[string]string{"#id": "id", "#owner": "owner"},
				ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{":owner": id},
			})
			return err
		}, refused},
		// An UPDATE never makes an item.
		{"dynamodb:PartiQLUpdate", table, func(ctx context.Context) error {
			_, err := e.DynamoDB.ExecuteStatement(ctx, &dynamodb.ExecuteStatementInput{
				Statement:  aws.String(`UPDATE "` + e.Table + `" SET "status"=? WHERE "id"=? AND "owner"=?`),
				Parameters: []ddbtypes.AttributeValue{id, id, id},
			})
			return err
		}, refused},
		{"dynamodb:GetItem", table, func(ctx context.Context) error {
			_, err := e.DynamoDB.GetItem(ctx, &dynamodb.GetItemInput{TableName: &e.Table, Key: map[string]ddbtypes.AttributeValue{"id": id}})
			return err
		}, func(err error) bool { return err == nil }},
	}
}

func (a attempt) make(ctx context.Context) Finding {
	err := a.call(ctx)
	f := Finding{ID: "I3"}
	switch {
	case a.expected(err):
		f.Verdict, f.Text = OK, fmt.Sprintf("the caller has %s on %s", a.action, a.on)
	case err == nil:
		f.Verdict, f.Text = Unknown, fmt.Sprintf("could not look: %s on %s reports success for a call that cannot succeed, so it is not AWS", a.action, a.on)
	case awserr.Denied(err):
		api, _ := errors.AsType[smithy.APIError](err)
		f.Verdict, f.Text = Fail, fmt.Sprintf("the caller is denied %s on %s: %s", a.action, a.on, api.ErrorMessage())
		f.Fix = fmt.Sprintf("allow %s on %s in the caller's policy, or the KMS key that the error names; with --role ARN the fix of I2 is a command", a.action, a.on)
	default:
		return unseen("I3", err)
	}
	return f
}
