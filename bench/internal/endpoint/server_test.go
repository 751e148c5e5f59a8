package endpoint

import (
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// The requests of a contestant are counted and delayed. Those of the bench itself are neither.
func TestCountsContestantsOnly(t *testing.T) {
	t.Parallel()
	const latency = 20 * time.Millisecond
	s, err := start(t.Context(), Config{Latency: latency, Visibility: 30, Events: 25, BodySize: 256})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.depth(t.Context()); err != nil || n != 25 {
		t.Errorf("the queue holds %d, %v, want 25", n, err)
	}
	if st := s.state(); st.SQSRequests != 0 || st.DynamoDBRequests != 0 || st.Connections != 0 || len(st.Remaining) != 0 {
		t.Errorf("before the contestant's first request: %+v, want nothing", st)
	}

	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	creds := credentials.NewStaticCredentialsProvider("bench", "bench", "")
	q := sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: aws.String(s.address.URL), Credentials: creds, HTTPClient: &http.Client{Transport: transport}})
	d := dynamodb.New(dynamodb.Options{Region: "us-east-1", BaseEndpoint: aws.String(s.address.URL), Credentials: creds, HTTPClient: &http.Client{Transport: transport}})

	begin := time.Now()
	out, err := q.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(s.address.QueueURL), MaxNumberOfMessages: 10})
	if err != nil || len(out.Messages) != 10 {
		t.Fatalf("got %v, %v, want ten messages", out, err)
	}
	if took := time.Since(begin); took < latency {
		t.Errorf("the response took %s, want at least %s", took, latency)
	}
	if _, err := d.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(Table)}); err != nil {
		t.Error(err)
	}
	st := s.state()
	if st.SQSRequests != 1 || st.DynamoDBRequests != 1 || st.Connections != 1 {
		t.Errorf("got %d SQS and %d DynamoDB requests on %d connections, want one each on one", st.SQSRequests, st.DynamoDBRequests, st.Connections)
	}
	if len(st.Remaining) != 10 || !st.Remaining[0].InFlight {
		t.Errorf("remaining %+v, want the ten that were received", st.Remaining)
	}
}
