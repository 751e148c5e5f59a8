package endpoint

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

type server struct {
	cfg      Config
	sqs      *memsqs.Server
	dynamodb *memdynamodb.Server
	direct   *sqs.Client // in memory: neither delayed nor counted
	address  Address
	function *function

	connections, sqsRequests, dynamodbRequests atomic.Int64
	fed                                        atomic.Bool // everything was sent
}

// start listens, creates the queue and the table, and feeds the queue.
func start(ctx context.Context, cfg Config) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{cfg: cfg, address: Address{URL: "http://" + l.Addr().String()}}
	s.sqs = memsqs.New(func(o *memsqs.Options) {
		o.Seed, o.Faults, o.BaseURL, o.Duplicates = 1, cfg.Faults, s.address.URL, cfg.Duplicates
	})
	s.dynamodb = memdynamodb.New()
	s.direct = sqs.New(sqs.Options{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("bench", "bench", ""),
		BaseEndpoint: aws.String(s.address.URL), HTTPClient: &http.Client{Transport: s.sqs},
	})
	if err := s.create(ctx); err != nil {
		return nil, err
	}
	h := &http.Server{Handler: s.count(localstack.Handler(s.sqs, s.dynamodb)), ConnState: s.connState}
	// It serves until the process exits. If it fails, every request of the contestant fails, and so does the measurement.
	go func() { _ = h.Serve(l) }()
	if cfg.FeedLater {
		return s, nil
	}
	return s, s.feed(ctx)
}

// create creates the queue and the table, or the outbox, as a client would. There is no dead-letter queue: a message that is received many
// times stays.
func (s *server) create(ctx context.Context) error {
	name, attributes := "jobs", map[string]string{}
	if s.cfg.Visibility > 0 {
		attributes[string(sqstypes.QueueAttributeNameVisibilityTimeout)] = strconv.Itoa(s.cfg.Visibility)
	}
	if s.cfg.FIFO {
		// High throughput mode: deduplication and throughput limit apply to each group, not to the queue.
		name, attributes["FifoQueue"], attributes["DeduplicationScope"] = "jobs.fifo", "true", "messageGroup"
		attributes["FifoThroughputLimit"] = "perMessageGroupId"
	}
	out, err := s.direct.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(name), Attributes: attributes})
	if err != nil {
		return err
	}
	s.address.QueueURL = aws.ToString(out.QueueUrl)
	ddb := dynamodb.New(dynamodb.Options{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("bench", "bench", ""),
		BaseEndpoint: aws.String(s.address.URL), HTTPClient: &http.Client{Transport: s.dynamodb},
	})
	if s.cfg.OutboxGroups > 0 {
		return s.fillOutbox(ctx, ddb)
	}
	return dynamostore.CreateTable(ctx, ddb, Table)
}

// count counts requests and delays them. A client that cancels its request does not shorten the delay: the request still
// arrives, and the messages that it receives stay hidden.
func (s *server) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("X-Amz-Target"), "DynamoDB") {
			s.dynamodbRequests.Add(1)
		} else {
			s.sqsRequests.Add(1)
		}
		time.Sleep(s.cfg.Latency)
		next.ServeHTTP(w, r)
	})
}

func (s *server) connState(_ net.Conn, state http.ConnState) {
	if state == http.StateNew {
		s.connections.Add(1)
	}
}
