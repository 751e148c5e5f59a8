package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack"
)

// client returns the services as a client with a Region and an access key sees them.
func client(t *testing.T, url, region, accessKey string) *localstack.Stack {
	t.Setenv("AWS_REGION", region)
	t.Setenv("AWS_ACCESS_KEY_ID", accessKey)
	return must.Get(localstack.Start(t.Context(), func(o *localstack.Options) { o.Endpoint = url }))(t)
}

func codeOf(err error) string {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return e.ErrorCode()
	}
	return ""
}

// A deployment with a wrong Region or account fails as on AWS. The queues and tables of the flags are where the flags say, whatever
// localaws' own environment says.
func TestRegionsAndAccountsAreApart(t *testing.T) {
	t.Setenv("AWS_REGION", "ap-south-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "333333333333")
	at, _ := started(t, "-region", "eu-west-1", "-queues", "jobs", "-tables", "records")
	home, table := client(t, at, "eu-west-1", "AKIAIOSFODNN7EXAMPLE"), aws.String("records")
	jobs := must.Get(home.SQS.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("jobs")}))(t).QueueUrl
	if want := at + "/000000000000/jobs"; *jobs != want {
		t.Errorf("the queue of the flags is %s, want %s", *jobs, want)
	}
	arn := must.Get(home.DynamoDB.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: table}))(t).Table.TableArn
	if want := "arn:aws:dynamodb:eu-west-1:000000000000:table/records"; *arn != want {
		t.Errorf("the table of the flags is %s, want %s", *arn, want)
	}

	for _, p := range []struct{ region, key, account string }{
		{"us-east-1", "local", "000000000000"}, {"eu-west-1", "111122223333", "111122223333"},
	} {
		c := client(t, at, p.region, p.key)
		_, err := c.SQS.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: jobs, MessageBody: aws.String("a")})
		if got, want := codeOf(err), "AWS.SimpleQueueService.NonExistentQueue"; got != want {
			t.Errorf("%v, a send to the queue of the flags: %v, want %s", p, err, want)
		}
		for _, name := range []*string{table, arn} {
			_, err = c.DynamoDB.Scan(t.Context(), &dynamodb.ScanInput{TableName: name})
			if got, want := codeOf(err), "ResourceNotFoundException"; got != want {
				t.Errorf("%v, a scan of %s: %v, want %s", p, *name, err, want)
			}
		}
		made := must.Get(c.SQS.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("jobs")}))(t).QueueUrl
		if want := at + "/" + p.account + "/jobs"; *made != want {
			t.Errorf("%v: the queue is %s, want %s", p, *made, want)
		}
		must.Get(c.SQS.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: made, MessageBody: aws.String("a")}))(t)
		attrs := must.Get(c.SQS.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: made, AttributeNames: []sqstypes.QueueAttributeName{"QueueArn"}}))(t)
		if got, want := attrs.Attributes["QueueArn"], "arn:aws:sqs:"+p.region+":"+p.account+":jobs"; got != want {
			t.Errorf("%v: the queue is %s, want %s", p, got, want)
		}
		query := "?" + url.Values{"region": {p.region}, "account": {p.account}}.Encode()
		_, body := do(t, http.MethodGet, at+"/_localaws/queues/jobs/messages"+query, nil, nil)
		if strings.Count(body, `"ID"`) != 1 {
			t.Errorf("%v: the queue has the messages %s, want one", p, body)
		}
		if _, page := do(t, http.MethodGet, at, nil, nil); !strings.Contains(page, p.region+", account "+p.account) {
			t.Errorf("the page lacks %v", p)
		}
	}
	if n := states(t, at); len(n) != 0 {
		t.Errorf("the queue of the flags has messages: %v", n)
	}

	var health struct {
		Places []struct{ Region, Account string }
	}
	_, body := do(t, http.MethodGet, at+"/_localaws/health", nil, nil)
	must.Do(t, json.Unmarshal([]byte(body), &health))
	var got []string
	for _, p := range health.Places {
		got = append(got, p.Account+" "+p.Region)
	}
	if want := []string{"000000000000 eu-west-1", "000000000000 us-east-1", "111122223333 eu-west-1"}; !reflect.DeepEqual(got, want) {
		t.Errorf("health has %q, want %q: places without queues and tables are none", got, want)
	}
	if status, _ := do(t, http.MethodGet, at+"/_localaws/queues/jobs/messages?region=ap-south-1", nil, nil); status != http.StatusNotFound {
		t.Errorf("messages of a Region without queues: %d, want 404", status)
	}
}
