//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testlog"
	"github.com/sqsonce/sqsonce/localstack"
)

// recorded runs localaws as started does, and returns all that it says.
func recorded(t *testing.T, args ...string) (url string, said *testlog.Book) {
	t.Helper()
	o := must.Get(parse(append([]string{"-addr", "127.0.0.1:0"}, args...), io.Discard))(t)
	ctx, cancel := context.WithCancel(context.Background())
	in, out := io.Pipe()
	said = &testlog.Book{}
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, out, said, o) }()
	t.Cleanup(func() {
		cancel()
		must.Do(t, <-ended)
	})
	return strings.TrimSpace(must.Get(bufio.NewReader(in).ReadString('\n'))(t)), said
}

func setStream(t *testing.T, s *localstack.Stack, table string, on bool) {
	t.Helper()
	spec := &ddbtypes.StreamSpecification{StreamEnabled: &on}
	if on {
		spec.StreamViewType = ddbtypes.StreamViewTypeNewImage
	}
	must.Get(s.DynamoDB.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: &table, StreamSpecification: spec}))(t)
}

// The mapping of a stream that you disable waits. It reads the stream that the table gets later.
func TestDisabledStream(t *testing.T) {
	t.Parallel()
	url, said := recorded(t, "-config", written(t, "local.yaml", `
tables: {items: {key: id, stream: NEW_IMAGE}}
functions: {any: {bootstrap: `+program(t, "any")+`, Events: [{table: items}]}}
`))
	s, c := connected(t, url), lambdaClient(url)
	problem := func() string {
		return aws.ToString(must.Get(c.ListEventSourceMappings(t.Context(), &lambda.ListEventSourceMappingsInput{}))(t).EventSourceMappings[0].LastProcessingResult)
	}
	setStream(t, s, "items", false)
	eventually(t, "the mapping says that its stream has ended", func() bool { return problem() != "" })
	time.Sleep(2*retryPause + retryPause/2)
	if n := strings.Count(said.String(), "does not poll"); n != 1 || problem() == "" {
		t.Errorf("said %d times that the mapping does not poll, which is %q, want once", n, problem())
	}
	setStream(t, s, "items", true)
	eventually(t, "the mapping polls again", func() bool { return problem() == "" })
}

// Of two updates at once, each has its effect or is refused.
func TestConcurrentUpdates(t *testing.T) {
	t.Parallel()
	url, _ := started(t, "-config", written(t, "local.yaml", "queues: {jobs: }\nfunctions: {idle: {Events: [{queue: jobs}]}}\n"))
	c := lambdaClient(url, func(o *lambda.Options) { o.RetryMaxAttempts = 1 })
	list := func() []lambdatypes.EventSourceMappingConfiguration {
		return must.Get(c.ListEventSourceMappings(t.Context(), &lambda.ListEventSourceMappingsInput{FunctionName: aws.String("idle")}))(t).EventSourceMappings
	}
	id := list()[0].UUID
	for i := range int32(100) {
		size, most := 1+i%10, 2+i
		errs := make(chan error, 2)
		for _, in := range []*lambda.UpdateEventSourceMappingInput{
			{UUID: id, BatchSize: &size}, {UUID: id, ScalingConfig: &lambdatypes.ScalingConfig{MaximumConcurrency: &most}},
		} {
			go func() {
				for {
					_, err := c.UpdateEventSourceMapping(t.Context(), in)
					if code(err) == "ResourceInUseException" {
						continue
					}
					errs <- err
					return
				}
			}()
		}
		must.Do(t, errors.Join(<-errs, <-errs))
		if m := list()[0]; *m.BatchSize != size || *m.ScalingConfig.MaximumConcurrency != most {
			t.Fatalf("BatchSize is %d, MaximumConcurrency %d, want %d and %d", *m.BatchSize, *m.ScalingConfig.MaximumConcurrency, size, most)
		}
	}
}

// Variables of a template have the ARNs that it names: of tables, with and without a stream, and of streams, with their labels.
func TestVariablesWithARNs(t *testing.T) {
	t.Parallel()
	url, _ := started(t, "-bootstrap", "F="+program(t, "any"), "-template", written(t, "template.yaml", `
Resources:
  Plain: {Type: AWS::Serverless::SimpleTable}
  Streamed:
    Type: AWS::DynamoDB::Table
    Properties:
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
      StreamSpecification: {StreamViewType: NEW_IMAGE}
  F:
    Type: AWS::Serverless::Function
    Properties: {Timeout: 30, Environment: {Variables: {PLAIN: !GetAtt Plain.Arn, STREAMED: !GetAtt Streamed.Arn, STREAM: !GetAtt Streamed.StreamArn}}}
`))
	s, c := connected(t, url), lambdaClient(url)
	describe := func(table string) *ddbtypes.TableDescription {
		return must.Get(s.DynamoDB.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table}))(t).Table
	}
	for name, want := range map[string]*string{"PLAIN": describe("Plain").TableArn, "STREAMED": describe("Streamed").TableArn, "STREAM": describe("Streamed").LatestStreamArn} {
		out := must.Get(c.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("F"), Payload: []byte(`{"Do":"getenv","Value":"` + name + `"}`)}))(t)
		if !strings.Contains(string(out.Payload), `"Value":"`+*want+`"`) {
			t.Errorf("%s: %s, want %s", name, out.Payload, *want)
		}
	}
}

// A table that exists and differs from the file stays, and localaws says so.
func TestChangedTable(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]int{
		"tables: {records: {key: id}}": 0, "tables: {records: {key: id, stream: NEW_IMAGE}}": 1, "tables: {records: {key: other}}": 1,
	} {
		_, said := recorded(t, "-tables", "records", "-config", written(t, "local.yaml", config))
		if got := strings.Count(said.String(), "keeps the table records"); got != want {
			t.Errorf("%s: said %d times that the table differs, want %d: %s", config, got, want, said.String())
		}
	}
}
