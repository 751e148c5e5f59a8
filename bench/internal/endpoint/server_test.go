package endpoint

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// What a contestant does is counted and late; what the bench itself does is neither.
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
	if st := s.state(); st.SQSRequests != 0 || st.DynamoDBRequests != 0 || st.Connections != 0 || len(st.Left) != 0 {
		t.Errorf("before the contestant began: %+v, want nothing", st)
	}

	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	creds := credentials.NewStaticCredentialsProvider("bench", "bench", "")
	q := sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: aws.String(s.place.URL), Credentials: creds, HTTPClient: &http.Client{Transport: transport}})
	d := dynamodb.New(dynamodb.Options{Region: "us-east-1", BaseEndpoint: aws.String(s.place.URL), Credentials: creds, HTTPClient: &http.Client{Transport: transport}})

	begin := time.Now()
	out, err := q.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(s.place.QueueURL), MaxNumberOfMessages: 10})
	if err != nil || len(out.Messages) != 10 {
		t.Fatalf("got %v, %v, want ten messages", out, err)
	}
	if took := time.Since(begin); took < latency {
		t.Errorf("the answer took %s, want at least %s", took, latency)
	}
	if _, err := d.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(Table)}); err != nil {
		t.Error(err)
	}
	st := s.state()
	if st.SQSRequests != 1 || st.DynamoDBRequests != 1 || st.Connections != 1 {
		t.Errorf("got %d SQS and %d DynamoDB requests on %d connections, want one each on one", st.SQSRequests, st.DynamoDBRequests, st.Connections)
	}
	if len(st.Left) != 10 || !st.Left[0].InFlight {
		t.Errorf("left %+v, want the ten that were received", st.Left)
	}
}

func TestAwaitEmpty(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg   Config
		empty bool
	}{
		"empty":       {Config{}, true},
		"full":        {Config{Events: 1, BodySize: 100}, false},
		"not yet fed": {Config{Events: 1, BodySize: 100, Hold: true}, false}, // an empty queue is not the end while more is to come
	} {
		s, err := start(t.Context(), c.cfg)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.awaitEmpty(t.Context(), json.RawMessage("1000000"))
		if err != nil {
			t.Fatal(err)
		}
		n, err := s.depth(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e := got.(Emptied); e.Empty != c.empty {
			t.Errorf("%s: got %+v with %d messages, want empty: %v", name, e, n, c.empty)
		}
	}
}
