package localstack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// Options configure [Start].
type Options struct {
	// Queues are the queues to create.
	// Default: empty.
	Queues []Queue
	// Tables are the names of idempotency tables to create, with the string key "id" and TTL on "expiration".
	// Default: empty.
	Tables []string
	// Endpoint is the URL of both services.
	// Default: from the environment, otherwise in memory. See [Start].
	Endpoint string
	// InMemory runs both services in memory whatever the environment says, for tests that use [Stack.MemSQS] and
	// [Stack.MemDynamoDB]. It excludes Endpoint.
	// Default: false.
	InMemory bool
	// HTTP makes the in-memory services also listen on a free port of 127.0.0.1, for other processes. It doesn't change a service
	// with an endpoint. Do not set it in a synctest bubble, where sockets do not work.
	// Default: false.
	HTTP bool
}

// Queue is a queue that [Start] creates.
type Queue struct {
	// Name is the name of the queue. With the suffix ".fifo" the queue and its dead-letter queue are FIFO queues.
	Name string
	// MaxReceiveCount is the number of receives after which SQS moves a message to the dead-letter queue. The name of that queue
	// is Name-dlq, with the suffix ".fifo" last. Negative: the queue is created without a dead-letter queue.
	// Default: 5.
	MaxReceiveCount int
	// Attributes are further queue attributes, such as VisibilityTimeout.
	// Default: empty.
	Attributes map[string]string
}

func (q Queue) maxReceiveCount() string {
	if q.MaxReceiveCount == 0 {
		return "5"
	}
	return strconv.Itoa(q.MaxReceiveCount)
}

// Stack is a running SQS and DynamoDB with the queues and tables of [Start].
type Stack struct {
	SQS      *sqs.Client
	DynamoDB *dynamodb.Client
	// QueueURL has the queue URLs by queue name, including dead-letter queues.
	QueueURL map[string]string
	// URL is the endpoint of both services for other processes. It is "" in memory without Options.HTTP, and if the two
	// services have different endpoints.
	URL string

	sqsEndpoint, dynamoEndpoint string         // "": the service runs in memory
	memSQS                      *memsqs.Server // nil with an endpoint
	memDynamoDB                 *memdynamodb.Server

	created []func(context.Context) error // undone by Close, last first
}

// MemSQS returns the SQS in memory, to inject faults and to read its state. It panics if SQS has an endpoint, so set
// Options.InMemory in a test that calls it.
func (s *Stack) MemSQS() *memsqs.Server {
	if s.memSQS == nil {
		panic(notInMemory("SQS", s.sqsEndpoint, "MemSQS"))
	}
	return s.memSQS
}

// MemDynamoDB returns the DynamoDB in memory, to inject faults and to read its state. It panics if DynamoDB has an endpoint, so
// set Options.InMemory in a test that calls it.
func (s *Stack) MemDynamoDB() *memdynamodb.Server {
	if s.memDynamoDB == nil {
		panic(notInMemory("DynamoDB", s.dynamoEndpoint, "MemDynamoDB"))
	}
	return s.memDynamoDB
}

func notInMemory(service, endpoint, method string) string {
	return fmt.Sprintf("localstack: %s has the endpoint %s: set Options.InMemory to use %s", service, endpoint, method)
}

// Start starts the services, or connects to them, and creates the queues and tables of the options that do not exist. It uses the
// first endpoint that is set: Options.Endpoint, then AWS_ENDPOINT_URL_SQS and AWS_ENDPOINT_URL_DYNAMODB, then AWS_ENDPOINT_URL. A
// service without an endpoint runs in memory, as both do with Options.InMemory. Before Start returns an error, it deletes the
// queues and tables that it created.
//
// With an endpoint the credentials are AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, by default "test". The
// region is AWS_REGION or AWS_DEFAULT_REGION, by default us-east-1.
func Start(ctx context.Context, optFns ...func(*Options)) (*Stack, error) {
	var o Options
	for _, fn := range optFns {
		fn(&o)
	}
	s := &Stack{QueueURL: map[string]string{}}
	if err := s.start(ctx, o); err != nil {
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func (s *Stack) start(ctx context.Context, o Options) error {
	if err := s.connect(o); err != nil {
		return err
	}
	for _, q := range o.Queues {
		if err := s.createQueue(ctx, q); err != nil {
			return err
		}
	}
	for _, t := range o.Tables {
		if err := s.createTable(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// connect creates the clients, and the in-memory services for those without an endpoint.
func (s *Stack) connect(o Options) error {
	var sqsURL, dynamoURL string
	switch {
	case o.InMemory && o.Endpoint != "":
		return fmt.Errorf("localstack: Options.Endpoint is %q, must be empty with InMemory", o.Endpoint)
	case !o.InMemory:
		endpoint := os.Getenv("AWS_ENDPOINT_URL")
		sqsURL = cmp.Or(o.Endpoint, os.Getenv("AWS_ENDPOINT_URL_SQS"), endpoint)
		dynamoURL = cmp.Or(o.Endpoint, os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"), endpoint)
	}
	s.sqsEndpoint, s.dynamoEndpoint = sqsURL, dynamoURL

	var sqsTransport, dynamoTransport http.RoundTripper
	// Listens before the services exist, because queue URLs begin with the address.
	var l net.Listener
	if o.HTTP && sqsURL == "" && dynamoURL == "" {
		var err error
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return fmt.Errorf("localstack: %w", err)
		}
		s.URL = "http://" + l.Addr().String()
	}
	if sqsURL == "" {
		s.memSQS = memsqs.New(func(o *memsqs.Options) { o.BaseURL = s.URL })
		sqsTransport = s.memSQS
		s.undo(func(context.Context) error { s.memSQS.Close(); return nil })
	}
	if dynamoURL == "" {
		s.memDynamoDB = memdynamodb.New()
		dynamoTransport = s.memDynamoDB
		s.undo(func(context.Context) error { s.memDynamoDB.Close(); return nil })
	}
	if l != nil {
		s.serve(l)
	}
	if sqsURL == dynamoURL && sqsURL != "" {
		s.URL = sqsURL
	}
	s.SQS = sqs.New(sqs.Options{
		Region: region(), Credentials: credentials(), HTTPClient: client(sqsTransport),
		BaseEndpoint: aws.String(cmp.Or(sqsURL, s.URL, "http://sqs.memory")),
	})
	s.DynamoDB = dynamodb.New(dynamodb.Options{
		Region: region(), Credentials: credentials(), HTTPClient: client(dynamoTransport),
		BaseEndpoint: aws.String(cmp.Or(dynamoURL, s.URL, "http://dynamodb.memory")),
	})
	return nil
}

func (s *Stack) serve(l net.Listener) {
	server := &http.Server{Handler: Handler(s.memSQS, s.memDynamoDB)}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	s.undo(func(context.Context) error {
		// Not Shutdown, which would wait for the long polls of clients.
		err := server.Close()
		if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
			err = errors.Join(err, serveErr)
		}
		return err
	})
}

func (s *Stack) undo(fn func(context.Context) error) { s.created = append(s.created, fn) }

// Close deletes the queues and tables that Start created, and stops the in-memory services. Don't use the clients after it.
func (s *Stack) Close(ctx context.Context) error {
	var errs []error
	for i := len(s.created) - 1; i >= 0; i-- {
		errs = append(errs, s.created[i](ctx))
	}
	s.created = nil
	return errors.Join(errs...)
}

func client(t http.RoundTripper) *http.Client {
	if t == nil {
		// The SDK's default has at most ten idle connections per host. Tests with more workers would dial for most calls.
		d := http.DefaultTransport.(*http.Transport).Clone()
		d.MaxIdleConnsPerHost = 256
		t = d
	}
	return &http.Client{Transport: t}
}

func region() string {
	return cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1")
}

func credentials() aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{
			AccessKeyID:     cmp.Or(os.Getenv("AWS_ACCESS_KEY_ID"), "test"),
			SecretAccessKey: cmp.Or(os.Getenv("AWS_SECRET_ACCESS_KEY"), "test"),
			SessionToken:    os.Getenv("AWS_SESSION_TOKEN"),
		}, nil
	})
}

// Handler serves both services on one port. The X-Amz-Target header of a call names its service. A GET or HEAD of any path
// returns status 200, for health checks. A request of the query protocol gets an error of that protocol, which lists the offered
// protocols.
func Handler(q *memsqs.Server, d *memdynamodb.Server) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case awsjson.Health(r):
			w.WriteHeader(http.StatusOK)
		case d.Serves(r):
			d.ServeHTTP(w, r)
		default:
			q.ServeHTTP(w, r) // also returns the error for a call of neither service
		}
	})
}
