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

	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// The requests of a contestant are counted and delayed. Those of the bench itself are neither.
func TestCountsContestantsOnly(t *testing.T) {
	t.Parallel()
	const latency = 20 * time.Millisecond
	s := must.Get(start(t.Context(), Config{Latency: latency, Visibility: 30, Events: 25, BodySize: 256}))(t)
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
	must.Get(d.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(Table)}))(t)
	st := s.state()
	if st.SQSRequests != 1 || st.DynamoDBRequests != 1 || st.Connections != 1 {
		t.Errorf("got %d SQS and %d DynamoDB requests on %d connections, want one each on one", st.SQSRequests, st.DynamoDBRequests, st.Connections)
	}
	if len(st.Remaining) != 10 || !st.Remaining[0].InFlight {
		t.Errorf("remaining %+v, want the ten that were received", st.Remaining)
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	type in struct {
		n     int
		group string
	}
	for name, c := range map[string]struct {
		queue []in
		want  Order
	}{
		"in order":         {[]in{{0, "a"}, {1, "a"}, {2, "b"}, {3, "a"}}, Order{}},
		"groups mixed":     {[]in{{2, "b"}, {0, "a"}, {1, "a"}, {3, "a"}}, Order{}},
		"one behind":       {[]in{{1, "a"}, {0, "a"}, {2, "b"}, {3, "a"}}, Order{OutOfOrder: 1}},
		"two behind one":   {[]in{{3, "a"}, {0, "a"}, {1, "a"}, {2, "b"}}, Order{OutOfOrder: 2}},
		"twice":            {[]in{{0, "a"}, {1, "a"}, {0, "a"}, {2, "b"}, {3, "a"}}, Order{Doubled: 1}},
		"missing":          {[]in{{0, "a"}, {3, "a"}}, Order{Missing: 2}},
		"not of the bench": {[]in{{0, "a"}, {1, "a"}, {2, "b"}, {3, "a"}, {99, "a"}}, Order{}},
	} {
		var queue []memsqs.QueuedMessage
		for _, m := range c.queue {
			queue = append(queue, memsqs.QueuedMessage{Body: job.Body(m.n, 100), Group: m.group})
		}
		if got := orderOf(queue, 4); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
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
		"not yet fed": {Config{Events: 1, BodySize: 100, FeedLater: true}, false}, // an empty queue is not the end while more is to come
	} {
		s := must.Get(start(t.Context(), c.cfg))(t)
		got := must.Get(s.awaitEmpty(t.Context(), json.RawMessage("1000000")))(t)
		n := must.Get(s.depth(t.Context()))(t)
		if e := got.(Emptied); e.Empty != c.empty {
			t.Errorf("%s: got %+v with %d messages, want empty: %v", name, e, n, c.empty)
		}
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	s := &server{cfg: Config{Events: 100, Resend: 20}}
	seen := map[int]int{}
	for _, n := range s.events() {
		seen[n]++
	}
	twice := 0
	for n := range 100 {
		if seen[n] == 0 {
			t.Errorf("event %d is not sent", n)
		}
		if seen[n] == 2 {
			twice++
		}
	}
	if twice != 3 { // 0, 20 and 40
		t.Errorf("%d events are sent twice, want 3", twice)
	}
	if b := batchSize(64 << 10); b != 10 {
		t.Errorf("batches of %d messages of 64 KB, want 10", b)
	}
	if b := batchSize(512 << 10); b != 1 {
		t.Errorf("batches of %d messages of 512 KB, want 1", b)
	}
}
