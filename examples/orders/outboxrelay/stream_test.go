package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"gopkg.in/yaml.v3"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/esm"
)

// doorbell is the mapping of template.yaml.
func doorbell(t *testing.T, arn string) esm.StreamConfig {
	t.Helper()
	var template struct {
		Resources struct {
			OutboxRelayFunction struct {
				Properties struct {
					Timeout int `yaml:"Timeout"`
					Events  struct {
						Committed struct {
							Properties struct {
								BatchSize int  `yaml:"BatchSize"`
								Factor    int  `yaml:"ParallelizationFactor"`
								Retries   int  `yaml:"MaximumRetryAttempts"`
								Age       int  `yaml:"MaximumRecordAgeInSeconds"`
								Bisects   bool `yaml:"BisectBatchOnFunctionError"`
								Filter    struct {
									Filters []struct {
										Pattern string `yaml:"Pattern"`
									} `yaml:"Filters"`
								} `yaml:"FilterCriteria"`
							} `yaml:"Properties"`
						} `yaml:"Committed"`
					} `yaml:"Events"`
				} `yaml:"Properties"`
			} `yaml:"OutboxRelayFunction"`
		} `yaml:"Resources"`
	}
	must.Do(t, yaml.Unmarshal(readFile(t, "../../../template.yaml"), &template))
	f := template.Resources.OutboxRelayFunction.Properties
	p := f.Events.Committed.Properties
	if len(p.Filter.Filters) != 1 {
		t.Fatalf("template.yaml has %d filters", len(p.Filter.Filters))
	}
	return esm.StreamConfig{
		StreamARN: arn, BatchSize: p.BatchSize, ParallelizationFactor: p.Factor, BisectOnError: p.Bisects, MaximumRetryAttempts: p.Retries,
		MaximumRecordAge: time.Duration(p.Age) * time.Second, ReportBatchItemFailures: true, Filters: []string{p.Filter.Filters[0].Pattern},
		FunctionTimeout: time.Duration(f.Timeout) * time.Second, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
}

// The stream alone publishes what is committed, in the order of each group, and a group that SQS refuses holds nobody up.
func TestStreamIsADoorbell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		must.Get(b.SQS.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{
			QueueUrl: aws.String(b.QueueURL["orders.fifo"]), Attributes: map[string]string{string(sqstypes.QueueAttributeNameMaximumMessageSize): "2048"},
		}))(b)
		table := must.Get(b.DynamoDB.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("outbox")}))(b)
		streams := dynamodbstreams.New(dynamodbstreams.Options{
			Region: "us-east-1", BaseEndpoint: b.DynamoDB.Options().BaseEndpoint, Credentials: b.DynamoDB.Options().Credentials,
			HTTPClient: &http.Client{Transport: b.MemDynamoDB()},
		})
		b.commit("refused", 1, strings.Repeat("x", 3_000))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- esm.RunStream(ctx, streams, doorbell(t, aws.ToString(table.Table.LatestStreamArn)), func(ctx context.Context, event []byte) ([]byte, error) {
				answer, err := b.handler(ctx, event)
				if err != nil {
					return nil, err
				}
				return json.Marshal(answer)
			})
		}()
		for seq := range int64(5) {
			for _, group := range []string{"a", "b"} {
				b.commit(group, seq+1, fmt.Sprint(group, "/", seq+1))
			}
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Second)
		stop()
		b.must(<-ended)
		var ids []string
		for _, m := range b.MemSQS().Messages("orders.fifo") {
			if m.Group == "a" {
				ids = append(ids, m.Body)
			}
		}
		if want := []string{"a/1", "a/2", "a/3", "a/4", "a/5"}; !slices.Equal(ids, want) {
			t.Errorf("the queue has %v of group a, want %v", ids, want)
		}
		if n := len(b.MemSQS().Messages("orders.fifo")); n != 10 {
			t.Errorf("%d messages, want 10", n)
		}
		for _, c := range b.MemDynamoDB().Calls() {
			if c.Op == "Scan" {
				t.Error("a sweep has looked for the groups: the stream was not shown to be enough")
			}
		}
	})
}
